// SPDX-License-Identifier: Apache-2.0
//
// Behavioural memory as a reading client of the memory port sees it: takes bursts, and answers in
// order, word by word, as often as the knob lets it. No burst may leave its page of 4 KiB.

module unit_memory_read
  import npu_pkg::*;
  import npu_mem_pkg::*;
  import tb_pkg::*;
#(
  parameter logic [31:0] Salt = 32'd0  // makes random choices differ between instances
) (
  input logic             clk_i,
  input logic             rst_ni,
  input unit_pkg::world_t world_i,

  input mem_req_t req_i,
  output mem_rd_rsp_t rsp_o
);

  localparam int unsigned Depth = 16;

  mem_req_t bursts[$:Depth];
  logic [31:0] random;
  logic stalled;

  // A behavioural model: state is updated in program order within one clock edge.
  /* verilator lint_off BLKSEQ */
  always @(posedge clk_i) begin
    rsp_o.valid <= 1'b0;
    if (!rst_ni) begin
      bursts.delete();
      random = world_i.seed ^ Salt;
      rsp_o.ready <= 1'b0;
    end else begin
      random  = next_random(random);
      stalled = happens(world_i.memory_stall, random[31:20]);
      if (bursts.size() != 0 && !happens(world_i.memory_stall, random[19:8])) begin
        automatic mem_req_t burst = bursts.pop_front();
        automatic bit [127:0] data;
        tb_memory_read(burst.addr, data);
        rsp_o.valid <= 1'b1;
        rsp_o.data  <= data;
        burst.addr += 32'(WordBytes);
        burst.len -= 8'd1;
        if (burst.len != '1) bursts.push_front(burst);
      end
      if (req_i.valid && rsp_o.ready && {1'b0, req_i.addr[11:4]} + {1'b0, req_i.len} > 9'd255) begin
        $error("%m: a burst across 4 KiB, at %h", req_i.addr);
      end
      if (req_i.valid && rsp_o.ready) bursts.push_back(req_i);
      rsp_o.ready <= !stalled && bursts.size() < Depth - 1;
    end
  end
  /* verilator lint_on BLKSEQ */

endmodule
