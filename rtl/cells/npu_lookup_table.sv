// SPDX-License-Identifier: Apache-2.0
//
// A table of 256 bytes that many lanes read at once, each from a small memory of its own. It is
// written a word a cycle, so that a row of a memory has no more than the 16 bytes of a word.

module npu_lookup_table
  import npu_pkg::*;
#(
  parameter int unsigned Lanes = 16  // bytes looked up in every cycle, at least 1
) (
  input logic clk_i,  // clock

  input logic        write_i,  // writes a word; look-ups of later cycles see it
  input logic  [3:0] word_i,   // which word of the table, with write_i
  input word_t       data_i,   // 16 entries, the first in the lowest byte, with write_i

  input  logic [Lanes-1:0][7:0] index_i,  // entry that each lane wants, 0 to 255
  output logic [Lanes-1:0][7:0] value_o   // the entry, in the same cycle
);

  for (genvar l = 0; l < int'(Lanes); l++) begin : gen_lane
    word_t rows_q[16];

    always_ff @(posedge clk_i) begin
      if (write_i) rows_q[word_i] <= data_i;
    end

    assign value_o[l] = rows_q[index_i[l][7:4]][{index_i[l][3:0], 3'b0}+:8];
  end

endmodule
