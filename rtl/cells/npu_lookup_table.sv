// SPDX-License-Identifier: Apache-2.0
//
// A table of 256 bytes that many lanes read at once, each from a small memory of its own. A row of a
// memory is a word of 16 bytes: a word is written in a cycle, and read in one, its byte chosen in the
// next.

module npu_lookup_table
  import npu_pkg::*;
#(
  parameter int unsigned Lanes = 16  // bytes looked up in every cycle, at least 1
) (
  input logic clk_i,  // clock

  input logic        write_i,  // writes a word; reads of later cycles see it
  input logic  [3:0] word_i,   // which word of the table, with write_i
  input word_t       data_i,   // 16 entries, the first in the lowest byte, with write_i

  input logic read_i,  // lanes read words; not with write_i
  input logic [Lanes-1:0][3:0] row_i,  // which word each of them, with read_i
  input logic [Lanes-1:0][3:0] byte_i,  // which byte of the word that it read last
  output logic [Lanes-1:0][7:0] value_o  // that byte, in the same cycle
);

  for (genvar l = 0; l < int'(Lanes); l++) begin : gen_lane
    word_t word;

    npu_memory #(
      .DataT(word_t),
      .Rows (16)
    ) u_memory (
      .clk_i,
      .rd_en_i  (read_i),
      .rd_row_i (row_i[l]),
      .rd_data_o(word),
      .wr_en_i  (write_i),
      .wr_row_i (word_i),
      .wr_data_i(data_i)
    );

    assign value_o[l] = word[{byte_i[l], 3'b0}+:8];
  end

endmodule
