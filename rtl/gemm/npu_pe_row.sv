// SPDX-License-Identifier: Apache-2.0
//
// One row of processing elements. Its activation lane is broadcast along the row; partial sums come
// from the row above, gain activation * weight, and move to the row below one cycle later. Every
// element holds two weights: one set computes while the other is loaded. Weights arrive as lines of
// a tile, either a line that is this row (row by row) or lines that each hold one element of this
// row (column by column), which makes transposed operands free.

module npu_pe_row #(
  parameter int unsigned ArrayDim = 16,
  parameter int unsigned Index = 0,  // which row of the array
  localparam int unsigned LineBits = 8 * ArrayDim,
  localparam int unsigned LinesPerBeat = npu_pkg::BeatBits / LineBits,
  localparam int unsigned BeatIdxW = $clog2(ArrayDim / LinesPerBeat)
) (
  input logic clk_i,

  input logic              act_valid_i,
  input logic              act_set_i,
  input logic signed [8:0] act_i,

  input  logic signed [31:0] psum_i[ArrayDim],
  output logic signed [31:0] psum_o[ArrayDim],

  // Up to LinesPerBeat lines of the tile that is being loaded
  input logic [LinesPerBeat-1:0] wt_line_valid_i,
  input logic                    wt_set_i,
  input logic                    wt_by_column_i,
  input logic [    BeatIdxW-1:0] wt_beat_i,
  input npu_pkg::beat_t          wt_data_i
);

  logic signed [7:0] weight_q[2][ArrayDim];

  always_ff @(posedge clk_i) begin
    for (int unsigned l = 0; l < LinesPerBeat; l++) begin
      if (wt_line_valid_i[l]) begin
        if (wt_by_column_i) begin
          weight_q[wt_set_i][32'(wt_beat_i) * LinesPerBeat + l] <=
              wt_data_i[LineBits * l + 8 * Index +: 8];
        end else if (32'(wt_beat_i) * LinesPerBeat + l == Index) begin
          for (int unsigned n = 0; n < ArrayDim; n++) begin
            weight_q[wt_set_i][n] <= wt_data_i[LineBits * l + 8 * n +: 8];
          end
        end
      end
    end
  end

  always_ff @(posedge clk_i) begin
    if (act_valid_i) begin
      for (int unsigned n = 0; n < ArrayDim; n++) begin
        psum_o[n] <= psum_i[n] + 32'(act_i) * 32'(weight_q[act_set_i][n]);
      end
    end
  end

endmodule
