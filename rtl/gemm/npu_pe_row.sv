// SPDX-License-Identifier: Apache-2.0
//
// One row of processing elements. Each element has its activation, the row's lane or, depthwise, its
// column's channel; partial sums come from the row above, gain activation * weight, and move to the row below one cycle later. Every
// element holds two sets of weights: one computes while the other is loaded. A set is the element's
// share of a whole tile: one weight if the array is as large as a tile, else one for each part of
// the tile. Weights arrive as strips of a tile, either a strip that belongs to this row (row by row)
// or strips that each hold one cell of every row (column by column), which makes transposed operands
// free. An array of 4 has 32 weights for each element, in memories; a larger one has 8 or less, in
// registers.

module npu_pe_row #(
  parameter int unsigned ArrayDim = 16,  // rows and columns of the array: 4, 8, 16 or 32
  parameter int unsigned Edge = 16,  // tile edge in elements, 16 or 32
  parameter int unsigned Index = 0,  // which row of the array, from 0 on
  localparam int unsigned StripBits = 8 * Edge,  // bits of a strip
  // Strips in a line: 4 or 2
  localparam int unsigned StripsPerLine = npu_pkg::LineBits / StripBits,
  localparam bit Memories = Edge == 4 * ArrayDim,  // weights lie in memories
  // Weights that a line has for the row, or all of it
  localparam int unsigned WeightBits = Memories ? StripBits : npu_pkg::LineBits,
  localparam int unsigned LineIdxW = $clog2(Edge / StripsPerLine)  // bits of a wt_line
) (
  input logic clk_i,  // clock

  input logic                            act_valid_i,           // an activation passes; no refusal
  input npu_gemm_pkg::weight_sel_t       act_sel_i,             // weight set and part of the tile
  input logic signed               [8:0] act_i      [ArrayDim], // int8, uint8, or a byte of 16 bits

  input  logic signed [31:0] psum_i[ArrayDim],  // sums of the rows above, with act_valid_i
  output logic signed [31:0] psum_o[ArrayDim],  // one cycle later; stays until the next

  // Up to StripsPerLine strips of the tile that is being loaded, to be used from the next cycle on
  input logic [StripsPerLine-1:0] wt_strip_valid_i,  // strips to load; no refusal
  input logic                     wt_set_i,          // weight set to load
  input logic                     wt_by_column_i,    // strips are columns, else rows
  input logic [     LineIdxW-1:0] wt_line_i,         // which line of the tile
  // Strips of int8, the first lowest; or what npu_pe_share has for the row
  input logic [   WeightBits-1:0] wt_data_i
);

  localparam int unsigned Parts = Edge / ArrayDim;
  localparam int unsigned PartW = (Parts > 1) ? $clog2(Parts) : 1;
  // A product of int8 and an activation, which is no less than -255, has 16 bits; so many of them
  localparam int unsigned SumBits = 16 + $clog2(Index + 1);

  logic [ArrayDim-1:0][7:0] weight;

  if (Memories) begin : gen_memories
    npu_pe_memory u_memory (
      .clk_i,
      .sel_i     (act_sel_i),
      .weight_o  (weight),
      .wt_valid_i(wt_by_column_i ? wt_strip_valid_i : {4{wt_strip_valid_i[Index]}}),
      .wt_set_i,
      .wt_by_column_i,
      .wt_line_i,
      .wt_data_i
    );
  end else begin : gen_registers
    // Row r of the tile belongs to row r mod ArrayDim of the array. Packed: these are registers
    // between multiplexers, not a memory with a port for every cell.
    logic [1:0][Parts-1:0][Edge-1:0][7:0] weight_q;

    // Whether a strip of the tile is in this line, and one of its cells
    function automatic logic arrives(int unsigned strip);
      return wt_strip_valid_i[strip%StripsPerLine] && wt_line_i == LineIdxW'(strip / StripsPerLine);
    endfunction

    function automatic logic [7:0] cell_of(int unsigned strip, int unsigned place);
      return wt_data_i[StripBits*(strip%StripsPerLine)+8*place+:8];
    endfunction

    always_ff @(posedge clk_i) begin
      if (|wt_strip_valid_i) begin
        for (int unsigned p = 0; p < Parts; p++) begin
          for (int unsigned n = 0; n < Edge; n++) begin
            automatic int unsigned r = ArrayDim * p + Index;
            if (wt_by_column_i ? arrives(n) : arrives(r)) begin
              if (wt_set_i) weight_q[1][p][n] <= wt_by_column_i ? cell_of(n, r) : cell_of(r, n);
              else weight_q[0][p][n] <= wt_by_column_i ? cell_of(n, r) : cell_of(r, n);
            end
          end
        end
      end
    end

    // The element's share of a set, by part of the tile's rows and columns
    typedef logic [1:0][Parts-1:0][Parts-1:0][ArrayDim-1:0][7:0] by_part_t;
    by_part_t by_part;
    assign by_part = by_part_t'(weight_q);
    assign weight  = by_part[act_sel_i.set][PartW'(act_sel_i.inner)][PartW'(act_sel_i.column)];
  end

  // The sums of the rows down to this one have no more bits. What the first row adds to is zero,
  // which synthesis module by module does not know.
  logic signed [SumBits-1:0] sum_q[ArrayDim];

  always_ff @(posedge clk_i) begin
    if (act_valid_i) begin
      for (int unsigned n = 0; n < ArrayDim; n++) begin
        sum_q[n] <= (Index == 0 ? SumBits'(0) : SumBits'(psum_i[n])) +
            SumBits'(act_i[n]) * SumBits'($signed(weight[n]));
      end
    end
  end

  for (genvar n = 0; n < int'(ArrayDim); n++) begin : gen_sum
    assign psum_o[n] = 32'(sum_q[n]);
  end

endmodule
