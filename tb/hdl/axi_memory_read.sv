// SPDX-License-Identifier: Apache-2.0
//
// Read half of the behavioural AXI4 memory: one beat per cycle once the latency has passed, or when a
// DRAM has it. Bursts are answered in the order of their addresses; with the interleave knob, beats of
// different identifiers alternate at random and only the order within an identifier is kept. A DRAM
// keeps the order.

module axi_memory_read #(
  // Bursts that may wait; more than any master under test may have outstanding.
  parameter int unsigned Depth = 32
) (
  input logic                         clk_i,
  input logic                         rst_ni,
  input logic                  [63:0] cycle_i,
  input tb_pkg::memory_knobs_t        knobs_i,

  input  npu_axi_pkg::axi_rd_req_t req_i,
  output npu_axi_pkg::axi_rd_rsp_t rsp_o
);
  import tb_pkg::*;

  typedef struct packed {
    logic [63:0]          ready_at;
    logic                 in_dram;   // a DRAM says when
    logic [AxiIdBits-1:0] id;
    logic [31:0]          address;
    logic [8:0]           beats;
  } burst_t;

  burst_t bursts[Depth];  // in order of arrival
  int unsigned count;
  logic [31:0] random;

  // The burst that gets the next beat: the oldest of its identifier.
  function automatic int unsigned choose();
    int unsigned pick;
    if (!knobs_i.interleave) return 0;
    for (int unsigned i = 0; i < count; i++) if (bursts[i].in_dram) return 0;
    pick = 32'(random[7:0]) % count;
    for (int unsigned i = 0; i < pick; i++) begin
      if (bursts[i].id == bursts[pick].id) return i;
    end
    return pick;
  endfunction

  // A behavioural model: state is updated in program order within one clock edge.
  /* verilator lint_off BLKSEQ */
  always @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) begin
      tb_dram_forget();
      count  = 0;
      random = knobs_i.seed;
      rsp_o.arready <= 1'b0;
      rsp_o.rvalid <= 1'b0;
      rsp_o.rid <= '0;
      rsp_o.rdata <= '0;
      rsp_o.rresp <= '0;
      rsp_o.rlast <= 1'b0;
    end else begin
      random = next_random(random);

      if (req_i.arvalid && rsp_o.arready) begin
        if (knobs_i.memory != MemoryFixed) begin
          tb_dram_choose(32'(knobs_i.memory), knobs_i.seed);
          tb_dram_read(cycle_i, req_i.araddr & ~32'hf, 32'(req_i.arlen) + 32'd1);
        end
        bursts[count] = '{
            ready_at: knobs_i.memory == MemoryFixed ? cycle_i + delay(knobs_i, random[23:8]) : '0,
            in_dram: knobs_i.memory != MemoryFixed,
            id: req_i.arid,
            address: req_i.araddr & ~32'hf,
            beats: 9'(req_i.arlen) + 9'd1
        };
        count = count + 1;
      end

      if (!rsp_o.rvalid || req_i.rready) begin
        rsp_o.rvalid <= 1'b0;
        if (count != 0 && !happens(knobs_i.gap_percent, random[19:8])) begin
          automatic int unsigned chosen = choose();
          if (bursts[chosen].ready_at <= cycle_i + 64'd1 &&
              (!bursts[chosen].in_dram || tb_dram_readable(
                  cycle_i
              )) && !withholds(
                  knobs_i, bursts[chosen].address
              )) begin
            automatic logic [ 31:0] address = bursts[chosen].address;
            automatic logic [  1:0] resp = response(knobs_i, address);
            automatic bit   [127:0] data = {4{random}};
            if (bursts[chosen].in_dram) tb_dram_take();
            if (resp == RespOkay) tb_memory_read(address, data);
            rsp_o.rvalid <= 1'b1;
            rsp_o.rid <= bursts[chosen].id;
            rsp_o.rdata <= data;
            rsp_o.rresp <= resp;
            rsp_o.rlast <= bursts[chosen].beats == 9'd1;
            bursts[chosen].address = address + 32'd16;
            bursts[chosen].beats   = bursts[chosen].beats - 9'd1;
            if (bursts[chosen].beats == '0) begin
              count = count - 1;
              for (int unsigned i = chosen; i < count; i++) bursts[i] = bursts[i+1];
            end
          end
        end
      end

      rsp_o.arready <= !is_deaf(
          knobs_i
      ) && count < Depth - 1 && !happens(
          knobs_i.address_stall_percent, random[31:20]
      );
    end
  end
  /* verilator lint_on BLKSEQ */

endmodule
