// SPDX-License-Identifier: Apache-2.0
//
// From operand A and loaded weights to rows of sums: feeder, array, accumulators and drain. Sums
// leave column tile after column tile, as wide as a tile whatever the size of the array.

module npu_gemm_sums
  import npu_sram_pkg::*;
  import npu_operation_pkg::*;
  import npu_gemm_pkg::*;
#(
  parameter int unsigned ArrayDim = 16,  // rows and columns of the array: 4, 8, 16 or 32
  parameter int unsigned Edge = 16,  // tile edge in elements, 16 or 32
  parameter int unsigned AccRows = 128,  // rows of a bank, a power of two of at least 4
  localparam type SumsT = logic [Edge-1:0][31:0]  // a row of int32 sums, one per column of a tile
) (
  input logic clk_i,  // clock
  input logic rst_ni, // reset, active low

  // The same operation for feeder and, maybe later, drain
  input  logic            feed_valid_i,   // stays until feed_ready_o
  output logic            feed_ready_o,   // high as its last row enters the array
  input  gemm_operation_t feed_op_i,      // stable while feed_valid_i
  input  logic            drain_valid_i,  // stays until drain_ready_o
  output logic            drain_ready_o,  // high as its last row of sums is read
  input  gemm_operation_t drain_op_i,     // stable while drain_valid_i

  // Operand A
  output sram_rd_req_t rd_req_o,  // stays, address stable, until rd_rsp_i.ready
  input  sram_rd_rsp_t rd_rsp_i,  // ready may depend on the request; words in order

  // Weights from the loader
  input  weights_t weights_i,      // strips to load
  input  logic     tile_loaded_i,  // pulse, with the last weights of a tile
  output logic     tile_used_o,    // pulse: the oldest tile is no longer needed

  output logic sums_valid_o,  // stays until sums_ready_i
  input  logic sums_ready_i,  // may depend on sums_valid_o
  output SumsT sums_o,        // a row of sums, stable while sums_valid_o

  output logic        row_valid_o,  // a row enters the array
  // Multiplications on valid lanes of the row in the cycle before, 0 without one
  output logic [11:0] macs_o
);

  localparam int unsigned RowW = $clog2(AccRows);

  // Where the sums of a row go
  typedef struct packed {
    logic            bank;    // accumulator bank
    logic [RowW-1:0] index;   // row of the bank; two rows for 16 bits
    logic [1:0]      column;  // part of the columns, 0 where a tile has one
    logic            first;   // first inner part: these sums replace the row
    logic            last;    // last inner part and columns: the row is complete
  } tag_t;

  logic bank_free;
  weight_sel_t row_sel;
  logic signed [8:0] row_act[ArrayDim], channels[ArrayDim];
  logic channels_valid;
  tag_t row_tag;

  npu_gemm_feeder #(
    .ArrayDim(ArrayDim),
    .Edge    (Edge),
    .AccRows (AccRows),
    .TagT    (tag_t)
  ) u_feeder (
    .clk_i,
    .rst_ni,
    .op_valid_i      (feed_valid_i),
    .op_ready_o      (feed_ready_o),
    .op_i            (feed_op_i),
    .rd_req_o,
    .rd_rsp_i,
    .tile_loaded_i,
    .tile_used_o,
    .bank_free_i     (bank_free),
    .row_valid_o,
    .row_sel_o       (row_sel),
    .row_act_o       (row_act),
    .channels_valid_o(channels_valid),
    .channels_o      (channels),
    .row_tag_o       (row_tag),
    .macs_o
  );

  logic signed [31:0] psum[ArrayDim];
  logic [ArrayDim-2:0] held;

  npu_systolic_array #(
    .ArrayDim(ArrayDim),
    .Edge    (Edge)
  ) u_array (
    .clk_i,
    .rst_ni,
    .act_valid_i     (row_valid_o),
    .act_sel_i       (row_sel),
    .act_i           (row_act),
    .channels_valid_i(channels_valid),
    .channels_i      (channels),
    .held_o          (held),
    .psum_o          (psum),
    .weights_i
  );

  // The tag travels beside the array, one cycle ahead of the sums, and waits where they wait.
  tag_t tag_q[ArrayDim-1];
  logic [ArrayDim-2:0] tag_valid_q;

  always_ff @(posedge clk_i) begin
    if (!rst_ni) begin
      tag_valid_q <= '0;
      for (int unsigned s = 0; s < ArrayDim - 1; s++) tag_q[s] <= '0;
    end else begin
      tag_valid_q <= {tag_valid_q[ArrayDim-3:0] & ~held[ArrayDim-3:0], row_valid_o} | held;
      if (row_valid_o) tag_q[0] <= row_tag;
      for (int unsigned s = 1; s < ArrayDim - 1; s++) begin
        if (tag_valid_q[s-1] && !held[s-1]) tag_q[s] <= tag_q[s-1];
      end
    end
  end

  logic final_row, drain_valid, drain_ready, drain_bank;
  logic [RowW-1:0] drain_row;
  logic signed [31:0] drain_sum[Edge];

  npu_accumulator #(
    .ArrayDim(ArrayDim),
    .Edge    (Edge),
    .Rows    (AccRows),
    .TagT    (tag_t)
  ) u_accumulator (
    .clk_i,
    .rst_ni,
    .next_valid_i (tag_valid_q[ArrayDim-2]),
    .next_tag_i   (tag_q[ArrayDim-2]),
    .psum_i       (psum),
    .final_row_o  (final_row),
    .drain_valid_i(drain_valid),
    .drain_ready_o(drain_ready),
    .drain_bank_i (drain_bank),
    .drain_row_i  (drain_row),
    .drain_sum_o  (drain_sum)
  );

  npu_gemm_drain #(
    .Edge   (Edge),
    .AccRows(AccRows)
  ) u_drain (
    .clk_i,
    .rst_ni,
    .op_valid_i   (drain_valid_i),
    .op_ready_o   (drain_ready_o),
    .op_i         (drain_op_i),
    .final_row_i  (final_row),
    .drain_valid_o(drain_valid),
    .drain_ready_i(drain_ready),
    .drain_bank_o (drain_bank),
    .drain_row_o  (drain_row),
    .drain_sum_i  (drain_sum),
    .bank_free_o  (bank_free),
    .sums_valid_o,
    .sums_ready_i,
    .sums_o
  );

endmodule
