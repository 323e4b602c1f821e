// SPDX-License-Identifier: Apache-2.0
//
// Behavioural memory as a writing client of the memory port sees it: takes a burst, then its words,
// and answers some time later, burst by burst. What was written is there with the answer, no earlier.
// No burst may leave its page of 4 KiB.

module unit_memory_write
  import npu_pkg::*;
  import npu_mem_pkg::*;
  import tb_pkg::*;
(
  input logic             clk_i,
  input logic             rst_ni,
  input unit_pkg::world_t world_i,

  input  mem_req_t    req_i,
  input  mem_wdata_t  w_i,
  output mem_wr_rsp_t rsp_o
);

  localparam int unsigned Depth = 16;

  mem_req_t burst;
  logic active;
  logic [8:0] answers[$:Depth];  // words of the bursts that have no answer yet
  logic [8:0] words;
  logic [31:0] random;

  // A behavioural model: state is updated in program order within one clock edge.
  /* verilator lint_off BLKSEQ */
  always @(posedge clk_i) begin
    rsp_o.done <= 1'b0;
    if (!rst_ni) begin
      tb_memory_forget();
      answers.delete();
      random = world_i.seed ^ 32'h5A5A_0F0F;
      active = 1'b0;
      rsp_o.ready <= 1'b0;
      rsp_o.word_ready <= 1'b0;
    end else begin
      random = next_random(random);
      if (answers.size() != 0 && !happens(world_i.memory_stall, random[11:0])) begin
        tb_memory_commit(32'(answers.pop_front()));
        rsp_o.done <= 1'b1;
      end
      if (w_i.valid && rsp_o.word_ready) begin
        tb_memory_hold(burst.addr, w_i.data, w_i.strb);
        burst.addr += 32'(WordBytes);
        words += 9'd1;
        active = words != 9'(burst.len) + 9'd1;
        if (!active) answers.push_back(words);
      end
      if (req_i.valid && rsp_o.ready && {1'b0, req_i.addr[11:4]} + {1'b0, req_i.len} > 9'd255) begin
        $error("%m: a burst across 4 KiB, at %h", req_i.addr);
      end
      if (req_i.valid && rsp_o.ready) begin
        burst  = req_i;
        words  = '0;
        active = 1'b1;
      end
      rsp_o.ready <= !active && answers.size() < Depth - 1 && !happens(
          world_i.memory_stall, random[23:12]
      );
      rsp_o.word_ready <= active && !happens(world_i.memory_stall, random[31:20]);
    end
  end
  /* verilator lint_on BLKSEQ */

endmodule
