// SPDX-License-Identifier: Apache-2.0
//
// What the rows of an array of 4 take of a line of weights. A line is four strips of a tile of 16: rows,
// of which each row of the array takes one, or columns, of which each takes every fourth cell. In both
// cases four weights go to each of its four elements, for the parts of the tile that lie in one row
// or one column of parts. They are ordered by the memory that they belong to: part (p, c) to the
// memory p + c modulo 4, so that no two are written to one memory. Combinational.

module npu_pe_share
  import npu_pkg::*;
(
  input logic        by_column_i,  // strips are columns, else rows
  input logic  [1:0] line_i,       // which line of the tile
  input line_t       data_i,       // strips of int8, the first lowest

  output line_t share_o  // weights by row, memory and element
);

  // By strip, part and cell of the part; by row, memory and element
  typedef logic [3:0][3:0][3:0][7:0] strips_t;

  strips_t strips, share;
  assign strips = strips_t'(data_i);

  always_comb begin
    for (int unsigned k = 0; k < 4; k++) begin
      for (int unsigned b = 0; b < 4; b++) begin
        automatic logic [1:0] part = 2'(b) - line_i;
        for (int unsigned n = 0; n < 4; n++) begin
          share[k][b][n] = by_column_i ? strips[n][part][k] : strips[k][part][n];
        end
      end
    end
  end

  assign share_o = line_t'(share);

endmodule
