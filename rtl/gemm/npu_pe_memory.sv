// SPDX-License-Identifier: Apache-2.0
//
// The weights of a row of an array of 4: two sets of 64 for 16 parts of a tile, 4 at a time. Part (p, c)
// of the tile lies in the memory p + c modulo 4, at the place p. So what a strip brings, a row or a
// column of parts, is written at once.

module npu_pe_memory (
  input logic clk_i,  // clock

  input  npu_gemm_pkg::weight_sel_t            sel_i,    // set and part of the tile
  output logic                      [3:0][7:0] weight_o, // of each element, from sel_i at once

  input logic [  3:0] wt_valid_i,      // elements that take weights; no refusal
  input logic         wt_set_i,        // weight set to load
  input logic         wt_by_column_i,  // parts of a column, else of a row of parts
  input logic [  1:0] wt_line_i,       // which one
  input logic [127:0] wt_data_i        // weights by memory and element
);

  typedef logic [3:0][3:0][7:0] weights_t;  // by memory and element

  weights_t read, arriving;
  assign arriving = weights_t'(wt_data_i);

  for (genvar b = 0; b < 4; b++) begin : gen_memory
    logic [3:0][7:0] mem_q[8];
    logic [1:0] inner;

    assign inner   = wt_by_column_i ? 2'(b) - wt_line_i : wt_line_i;
    assign read[b] = mem_q[{sel_i.set, sel_i.inner}];

    always_ff @(posedge clk_i) begin
      for (int unsigned n = 0; n < 4; n++) begin
        if (wt_valid_i[n]) mem_q[{wt_set_i, inner}][n] <= arriving[b][n];
      end
    end
  end

  assign weight_o = read[2'(sel_i.inner+sel_i.column)];

endmodule
