// SPDX-License-Identifier: Apache-2.0
//
// One row of processing elements. Its activation lane is broadcast along the row; partial sums come
// from the row above, gain activation * weight, and move to the row below one cycle later. Every
// element holds two sets of weights: one computes while the other is loaded. A set is the element's
// share of a whole tile: one weight if the array is as large as a tile, else one for each part of
// the tile. Weights arrive as lines of a tile, either a line that belongs to this row (row by row)
// or lines that each hold one cell of every row (column by column), which makes transposed operands
// free.

module npu_pe_row #(
  parameter int unsigned ArrayDim = 16,
  parameter int unsigned Edge = 16,  // of a tile
  parameter int unsigned Index = 0,  // which row of the array
  localparam int unsigned LineBits = 8 * Edge,
  localparam int unsigned LinesPerBeat = npu_pkg::BeatBits / LineBits,
  localparam int unsigned BeatIdxW = $clog2(Edge / LinesPerBeat)
) (
  input logic clk_i,

  input logic                            act_valid_i,
  input npu_gemm_pkg::weight_sel_t       act_sel_i,
  input logic signed               [8:0] act_i,

  input  logic signed [31:0] psum_i[ArrayDim],
  output logic signed [31:0] psum_o[ArrayDim],

  // Up to LinesPerBeat lines of the tile that is being loaded
  input logic           [LinesPerBeat-1:0] wt_line_valid_i,
  input logic                              wt_set_i,
  input logic                              wt_by_column_i,
  input logic           [    BeatIdxW-1:0] wt_beat_i,
  input npu_pkg::beat_t                    wt_data_i
);

  localparam int unsigned Parts = Edge / ArrayDim;

  // Row r of the tile belongs to row r mod ArrayDim of the array.
  logic signed [7:0] weight_q[2][Parts][Edge];

  always_ff @(posedge clk_i) begin
    for (int unsigned l = 0; l < LinesPerBeat; l++) begin
      for (int unsigned p = 0; p < Parts; p++) begin
        if (wt_line_valid_i[l]) begin
          if (wt_by_column_i) begin
            weight_q[wt_set_i][p][32'(wt_beat_i) * LinesPerBeat + l] <=
                wt_data_i[LineBits * l + 8 * (ArrayDim * p + Index) +: 8];
          end else if (32'(wt_beat_i) * LinesPerBeat + l == ArrayDim * p + Index) begin
            for (int unsigned n = 0; n < Edge; n++) begin
              weight_q[wt_set_i][p][n] <= wt_data_i[LineBits*l+8*n+:8];
            end
          end
        end
      end
    end
  end

  logic signed [7:0] weight[ArrayDim];
  if (Parts == 1) begin : gen_whole
    assign weight = weight_q[act_sel_i.set][0];
  end else begin : gen_parts
    for (genvar n = 0; n < int'(ArrayDim); n++) begin : gen_element
      assign weight[n] = weight_q[act_sel_i.set][act_sel_i.inner][act_sel_i.column?ArrayDim+n : n];
    end
  end

  always_ff @(posedge clk_i) begin
    if (act_valid_i) begin
      for (int unsigned n = 0; n < ArrayDim; n++) begin
        psum_o[n] <= psum_i[n] + 32'(act_i) * 32'(weight[n]);
      end
    end
  end

endmodule
