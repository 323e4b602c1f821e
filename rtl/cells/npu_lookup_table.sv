// SPDX-License-Identifier: Apache-2.0
//
// A table of 256 bytes that many lanes read at once, each from small memories of its own. It is
// filled in order, by lines of four words, one in every cycle if need be, or word by word. Three
// words of a line go straight to the columns, which are memories of 16-byte words; the fourth ones
// wait and follow behind the last line in two more writes. So a row has 48 bytes, and the first
// look-up may come in the third cycle after the last line or word.

module npu_lookup_table
  import npu_pkg::*;
#(
  parameter int unsigned Lanes = 16  // bytes looked up in every cycle, at least 1
) (
  input logic clk_i,  // clock
  input logic rst_ni, // reset, active low

  // Line by line, or word by word. Not in the two cycles after the last one of a table.
  input logic        line_valid_i,  // writes a line; no refusal; never together with word_valid_i
  input logic  [1:0] line_i,        // which line of the table, 0 to 3; 3 comes last
  input line_t       line_data_i,   // four words, the first in the lowest bits
  input logic        word_valid_i,  // writes a word; no refusal
  input logic  [3:0] word_i,        // which word of the table, 0 to 15; 15 comes last
  input word_t       word_data_i,   // 16 entries, the first in the lowest byte

  // Not before the third cycle after the last line or word
  input  logic                  lookup_i,  // index_i counts
  input  logic [Lanes-1:0][7:0] index_i,   // entry that each lane wants, 0 to 255
  output logic [Lanes-1:0][7:0] value_o    // the entry, in the same cycle
);

  localparam int unsigned Columns = 3;
  localparam int unsigned Rows = 8;  // 0 to 3: of lines, 4 and 5: of fourth words

  typedef logic [$clog2(Rows)-1:0] row_t;

  // ---------------------------------------------------------------------------------------------
  // Fourth words, and the writes that they wait for
  // ---------------------------------------------------------------------------------------------
  logic [1:0] line;
  logic [3:0] write;  // words of the line
  word_t fourth;
  word_t [3:0] fourth_q;
  logic [1:0] flush_q;  // one after the other: words 3, 7 and 11, then word 15

  assign line   = line_valid_i ? line_i : word_i[3:2];
  assign fourth = word_valid_i ? word_data_i : line_data_i[3*WordBits+:WordBits];

  always_comb begin
    write = {4{line_valid_i}};
    if (word_valid_i) write[word_i[1:0]] = 1'b1;
  end

  always_ff @(posedge clk_i) begin
    for (int unsigned b = 0; b < 4; b++) begin
      if (write[3] && line == 2'(b)) fourth_q[b] <= fourth;
    end
  end

  always_ff @(posedge clk_i) begin
    if (!rst_ni) flush_q <= '0;
    else flush_q <= {flush_q[0], write[3] && line == 2'd3};
  end

  // ---------------------------------------------------------------------------------------------
  // One write of a row
  // ---------------------------------------------------------------------------------------------
  logic [Columns-1:0] column_write;
  word_t [Columns-1:0] column_data;
  row_t write_row;

  always_comb begin
    column_write = write[2:0];
    write_row    = {1'b0, line};
    if (flush_q[0]) begin
      column_write = '1;
      write_row    = 3'd4;
    end else if (flush_q[1]) begin
      column_write = 3'b001;
      write_row    = 3'd5;
    end
    for (int unsigned c = 0; c < Columns; c++) begin
      unique case ({
        flush_q[0], word_valid_i
      })
        2'b00:   column_data[c] = line_data_i[c*WordBits+:WordBits];
        2'b01:   column_data[c] = word_data_i;
        default: column_data[c] = fourth_q[c];
      endcase
    end
    if (flush_q[1]) column_data[0] = fourth_q[3];
  end

  // ---------------------------------------------------------------------------------------------
  // Lanes
  // ---------------------------------------------------------------------------------------------
  for (genvar l = 0; l < int'(Lanes); l++) begin : gen_lane
    logic [1:0] quarter, place, column;
    row_t row;
    assign {quarter, place} = index_i[l][7:4];

    always_comb begin
      column = place;
      row    = {1'b0, quarter};
      if (place == 2'd3) begin
        column = (quarter == 2'd3) ? 2'd0 : quarter;
        row    = (quarter == 2'd3) ? 3'd5 : 3'd4;
      end
    end

    logic [Columns-1:0][7:0] bytes;
    for (genvar c = 0; c < int'(Columns); c++) begin : gen_column
      word_t rows_q[Rows];

      always_ff @(posedge clk_i) begin
        if (column_write[c]) rows_q[write_row] <= column_data[c];
      end

      assign bytes[c] = rows_q[row][{index_i[l][3:0], 3'b0}+:8];
    end

    assign value_o[l] = bytes[column];
  end

`ifndef SYNTHESIS
  NoLookupInWrites_A :
  assert property (@(posedge clk_i) disable iff (!rst_ni) lookup_i |-> write == '0 && flush_q == '0)
  else $error("npu_lookup_table: look-up in a table that is being written");
  NoWriteInFlush_A :
  assert property (@(posedge clk_i) disable iff (!rst_ni) write != '0 |-> flush_q == '0)
  else $error("npu_lookup_table: the next table comes before the last one is written");
`endif

endmodule
