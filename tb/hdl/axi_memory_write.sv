// SPDX-License-Identifier: Apache-2.0
//
// Write half of the behavioural AXI4 memory. Bursts are taken and answered in order. The bytes of
// a burst reach the memory together with its response, the latest moment that AXI allows, so a
// master that does not wait for the response is found out. A beat that meets an error is not
// written.

module axi_memory_write #(
  // Bursts that may wait for their data, and for their response.
  parameter int unsigned Depth = 16
) (
  input logic                         clk_i,
  input logic                         rst_ni,
  input logic                  [63:0] cycle_i,
  input tb_pkg::memory_knobs_t        knobs_i,

  input  logic                         awvalid_i,
  output logic                         awready_o,
  input  logic [tb_pkg::AxiIdBits-1:0] awid_i,
  input  logic [                 31:0] awaddr_i,

  input  logic         wvalid_i,
  output logic         wready_o,
  input  logic [127:0] wdata_i,
  input  logic [ 15:0] wstrb_i,
  input  logic         wlast_i,

  output logic                         bvalid_o,
  input  logic                         bready_i,
  output logic [tb_pkg::AxiIdBits-1:0] bid_o,
  output logic [                  1:0] bresp_o
);
  import tb_pkg::*;

  localparam int unsigned PtrBits = $clog2(Depth);

  typedef struct packed {
    logic [AxiIdBits-1:0] id;
    logic [31:0]          address;
  } burst_t;

  typedef struct packed {
    logic [63:0]          ready_at;
    logic [AxiIdBits-1:0] id;
    logic [1:0]           resp;
    logic [8:0]           beats;     // held until the response
    logic [31:0]          address;   // of the last beat
  } reply_t;

  burst_t bursts[Depth];
  logic [PtrBits-1:0] burst_head;
  logic [PtrBits:0] burst_count;
  reply_t replies[Depth];
  logic [PtrBits-1:0] reply_head;
  logic [PtrBits:0] reply_count;
  logic [31:0] address;  // of the beat, once a burst has begun
  logic begun;
  logic [1:0] resp;
  logic [8:0] beats;
  logic [31:0] random;

  // A behavioural model: state is updated in program order within one clock edge.
  /* verilator lint_off BLKSEQ */
  always @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) begin
      tb_memory_forget();
      burst_head = '0;
      burst_count = '0;
      reply_head = '0;
      reply_count = '0;
      address = '0;
      begun = 1'b0;
      resp = RespOkay;
      beats = '0;
      random = ~knobs_i.seed;
      awready_o <= 1'b0;
      wready_o <= 1'b0;
      bvalid_o <= 1'b0;
      bid_o <= '0;
      bresp_o <= '0;
    end else begin
      random = next_random(random);

      if (awvalid_i && awready_o) begin
        bursts[PtrBits'(32'(burst_head)+32'(burst_count))] = '{
            id: awid_i,
            address: awaddr_i & ~32'hf
        };
        burst_count = burst_count + 1'b1;
      end

      if (wvalid_i && wready_o) begin
        if (!begun) begin
          address = bursts[burst_head].address;
          resp = RespOkay;
          beats = '0;
        end
        begun = 1'b1;
        if (resp == RespOkay) resp = response(knobs_i, address);
        if (response(knobs_i, address) == RespOkay) begin
          tb_memory_hold(address, wdata_i, wstrb_i);
          beats = beats + 9'd1;
        end
        address = address + 32'd16;
        if (wlast_i) begin
          replies[PtrBits'(32'(reply_head)+32'(reply_count))] = '{
              ready_at: cycle_i + delay(knobs_i, random[23:8]),
              id: bursts[burst_head].id,
              resp: resp,
              beats: beats,
              address: address - 32'd16
          };
          reply_count = reply_count + 1'b1;
          burst_head = burst_head + 1'b1;
          burst_count = burst_count - 1'b1;
          begun = 1'b0;
        end
      end

      if (!bvalid_o || bready_i) begin
        bvalid_o <= 1'b0;
        if (reply_count != '0 && replies[reply_head].ready_at <= cycle_i + 64'd1 && !withholds(
                knobs_i, replies[reply_head].address
            ) && !happens(
                knobs_i.gap_percent, random[11:0]
            )) begin
          tb_memory_commit(32'(replies[reply_head].beats));
          bvalid_o <= 1'b1;
          bid_o <= replies[reply_head].id;
          bresp_o <= replies[reply_head].resp;
          reply_head  = reply_head + 1'b1;
          reply_count = reply_count - 1'b1;
        end
      end

      awready_o <= !is_deaf(
          knobs_i
      ) && 32'(burst_count) < Depth - 1 && !happens(
          knobs_i.address_stall_percent, random[19:8]
      );
      // A beat may follow in the cycle after its address, and room for its reply must remain.
      wready_o <= !is_deaf(
          knobs_i
      ) && burst_count != '0 && 32'(reply_count) < Depth - 1 && !happens(
          knobs_i.data_stall_percent, random[31:20]
      );
    end
  end
  /* verilator lint_on BLKSEQ */

endmodule
