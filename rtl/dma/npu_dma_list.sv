// SPDX-License-Identifier: Apache-2.0
//
// The rows of a gather: reads row numbers from SRAM, four to a word, and turns them into addresses
// in memory, one per cycle: multiplied in one, judged in the next, and kept until they are asked for.
// It stops for good at a row outside the address space.

module npu_dma_list
  import npu_pkg::*;
  import npu_dma_pkg::*;
(
  input logic clk_i,  // clock
  input logic rst_ni, // reset, active low

  // An operation, steady until its last row is taken
  input logic              valid_i,  // stays until the last row is taken
  input sram_addr_t        list_i,   // SRAM word of the first four row numbers
  // Address of row number 0 in memory, bytes; a multiple of 16 or all rows are bad
  input mem_addr_t         mem_i,
  input logic       [15:0] pitch_i,  // words from row to row
  input dim_t              rows_i,   // row numbers in the list
  input dim_t              bytes_i,  // bytes of a row

  // Words of the list: addresses out, data in
  output logic       addr_valid_o,  // stays until ready, data stable
  input  logic       addr_ready_i,  // taken; may depend on addr_valid_o
  output sram_addr_t addr_o,        // SRAM word of the next four row numbers, with addr_valid_o
  input  logic       word_valid_i,  // in the order of the addresses; stays until ready, data stable
  output logic       word_ready_o,  // its last row number is used; only with word_valid_i
  input  word_t      word_i,        // four row numbers, lowest bits first, with word_valid_i

  // Rows
  output logic      row_valid_o,  // a row that can be asked for; stays until ready, data stable
  input  logic      row_ready_i,  // taken; may depend on row_valid_o
  output logic      row_last_o,   // the last row of the list, with row_valid_o
  output mem_word_t row_o,        // its address in memory, words, with row_valid_o
  output logic      bad_o,        // a row that cannot be asked for: a level until reset
  output mem_addr_t bad_addr_o    // its address in memory, bytes, cut to 32 bits; with bad_o
);

  typedef struct packed {
    mem_addr_t addr;
    logic      bad;
    logic      last;
  } row_t;

  logic begun_q;
  logic [13:0] rest_q;  // words that are not asked for
  dim_t numbers_q;
  logic [47:0] product_q, product;
  logic product_valid_q, product_last_q, ask, load, number_last, room, row_there, end_of_list;
  row_t judged, row;
  logic [31:0] number;
  logic [52:0] first, past;
  logic bad;

  assign ask = addr_valid_o && addr_ready_i;

  assign number = word_i[{numbers_q[1:0], 5'b0}+:32];
  assign product = 48'(number) * 48'(pitch_i);
  assign number_last = numbers_q + 1'b1 == rows_i;
  assign load = valid_i && word_valid_i && (!product_valid_q || room) && numbers_q != rows_i;
  assign word_ready_o = load && (numbers_q[1:0] == 2'd3 || number_last);

  assign first = {21'b0, mem_i} + {1'b0, product_q, 4'b0};
  assign past = first + {37'b0, bytes_i};
  assign bad = mem_i[3:0] != '0 || past > 53'h1_0000_0000;
  assign judged = '{addr: first[31:0], bad: bad, last: product_last_q};

  npu_fifo #(
    .DataT(row_t),
    .Depth(2)
  ) u_rows (
    .clk_i,
    .rst_ni,
    .valid_i(product_valid_q),
    .ready_o(room),
    .data_i (judged),
    .valid_o(row_there),
    .ready_i(row_valid_o && row_ready_i),
    .data_o (row)
  );

  assign row_valid_o = row_there && !row.bad;
  assign row_last_o  = row.last;
  assign row_o       = row.addr[31:4];
  assign bad_o       = row_there && row.bad;
  assign bad_addr_o  = row.addr;
  assign end_of_list = row_valid_o && row_ready_i && row.last;

  always_ff @(posedge clk_i) begin
    if (!rst_ni) begin
      begun_q         <= 1'b0;
      addr_valid_o    <= 1'b0;
      numbers_q       <= '0;
      product_valid_q <= 1'b0;
    end else if (end_of_list) begin
      begun_q   <= 1'b0;
      numbers_q <= '0;
    end else begin
      begun_q <= valid_i;
      if (valid_i && !begun_q) addr_valid_o <= 1'b1;
      else if (ask) addr_valid_o <= rest_q != 14'd1;
      if (load) numbers_q <= numbers_q + 1'b1;
      if (load) product_valid_q <= 1'b1;
      else if (room) product_valid_q <= 1'b0;
    end
  end

  always_ff @(posedge clk_i) begin
    if (!begun_q) begin
      addr_o <= list_i;
      rest_q <= 14'((17'(rows_i) + 17'd3) >> 2);
    end else if (ask) begin
      addr_o <= addr_o + 1'b1;
      rest_q <= rest_q - 1'b1;
    end
    if (load) begin
      product_q      <= product;
      product_last_q <= number_last;
    end
  end

endmodule
