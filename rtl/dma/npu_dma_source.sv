// SPDX-License-Identifier: Apache-2.0
//
// The places in SRAM of the words of stores, in the order in which their destinations take them.
// Rows go one after the other; the rows of K/V heads go in tile order: stripes of positions, in a
// stripe tile by tile, in a tile position by position. Tells of each word how many of its bytes
// count; they stand in registers, and the next one is found beside them. A token, which needs no word
// from SRAM, is one word as well.

module npu_dma_source
  import npu_pkg::*;
  import npu_operation_pkg::*;
  import npu_dma_pkg::*;
#(
  parameter int unsigned ArrayDim = 16  // rows and columns of the systolic array: 4, 8, 16 or 32
) (
  input logic clk_i,  // clock
  input logic rst_ni, // reset, active low

  input logic op_valid_i,  // an operation; stays until ready, all stable
  output logic op_ready_o,  // its last word is shown a cycle later; only with op_valid_i
  input store_operation_t op_i,  // the operation, with op_valid_i
  input logic [5:0] stripe_i,  // K/V: rows of its first stripe, with op_valid_i

  output logic             valid_o,  // a word; stays until ready, all stable
  input  logic             ready_i,  // taken; may depend on valid_o
  output logic             read_o,   // it is read from SRAM, with valid_o
  output sram_addr_t       addr_o,   // where, with read_o
  // Bytes of it that count, 0 to 16; 0: past the end of its row, any word of the row will do
  output logic       [4:0] bytes_o,
  output logic             last_o    // the last word of its operation, with valid_o
);

  localparam int unsigned Edge = tile_edge(ArrayDim);
  localparam int unsigned TileRowWords = Edge / WordBytes;

  logic kv, load;
  assign kv   = op_i.op == StoreKv;
  assign load = op_valid_i && (!valid_o || ready_i);

  // A plain row is a stripe of one position whose tiles are one word wide.
  logic begun_q;  // it is not the first word of its operation
  sram_addr_t head_q, stripe_q, row_q;  // places of the head, the stripe's first row, the row
  sram_addr_t tile_q;  // word of the row that its tile begins with
  logic word_q;  // word of the tile's row
  logic [4:0] in_stripe_q;  // rows of the stripe that are done
  logic later_q;  // it is not the first stripe of its head
  dim_t rows_left_q;  // from the stripe's first one on
  logic [8:0] heads_q;

  sram_addr_t head, stripe, row, next_row, next_head;
  sram_addr_t words, word, tile_words;
  logic [5:0] stripe_rows, rows_done;
  logic short;  // the stripe is the last one of its head, and has rows_left
  dim_t rows_left;
  logic word_last, row_last, tile_last, stripe_last, head_last, last;

  assign words = words_of(op_i.bytes);
  assign tile_words = kv ? sram_addr_t'(TileRowWords) : sram_addr_t'(1);
  assign rows_left = begun_q ? rows_left_q : op_i.rows;
  assign head = begun_q ? head_q : op_i.sram;
  assign stripe = begun_q ? stripe_q : op_i.sram;
  assign row = begun_q ? row_q : op_i.sram;
  assign next_row = row + op_i.sram_pitch;
  assign next_head = head + words;

  assign stripe_rows = !kv ? 6'd1 : later_q ? 6'(Edge) : stripe_i;
  assign short = rows_left <= {10'b0, stripe_rows};
  assign rows_done = {1'b0, in_stripe_q} + 6'd1;

  assign word_last = tile_words == sram_addr_t'(1) || word_q;
  assign row_last = word_last && (short ? rows_done == rows_left[5:0] : rows_done == stripe_rows);
  assign tile_last = row_last && 17'(tile_q) + 17'(tile_words) >= 17'(words);
  assign stripe_last = tile_last && short;
  assign head_last = !kv || heads_q + 1'b1 == op_i.heads;
  assign last = op_i.op == StoreToken || (stripe_last && head_last);
  assign op_ready_o = load && last;

  assign word = tile_q + sram_addr_t'(word_q);
  always_ff @(posedge clk_i) begin
    if (!rst_ni) begin
      valid_o     <= 1'b0;
      begun_q     <= 1'b0;
      tile_q      <= '0;
      word_q      <= 1'b0;
      in_stripe_q <= '0;
      later_q     <= 1'b0;
      heads_q     <= '0;
    end else if (load) begin
      valid_o <= 1'b1;
      begun_q <= !last;
      word_q  <= !word_last;
      if (word_last) in_stripe_q <= in_stripe_q + 1'b1;
      if (row_last) begin
        in_stripe_q <= '0;
        tile_q      <= tile_q + tile_words;
      end
      if (tile_last) begin
        tile_q  <= '0;
        later_q <= 1'b1;
      end
      if (stripe_last) begin
        later_q <= 1'b0;
        heads_q <= heads_q + 1'b1;
      end
      if (last) {word_q, in_stripe_q, tile_q, later_q, heads_q} <= '0;
    end else if (ready_i) begin
      valid_o <= 1'b0;
    end
  end

  always_ff @(posedge clk_i) begin
    if (load) begin
      row_q       <= row;
      stripe_q    <= stripe;
      rows_left_q <= rows_left;
      head_q      <= head;
      if (word_last) row_q <= next_row;
      if (row_last) row_q <= stripe;
      if (tile_last) {row_q, stripe_q} <= {2{next_row}};
      if (tile_last) rows_left_q <= rows_left - {10'b0, stripe_rows};
      if (stripe_last) {row_q, stripe_q, head_q} <= {3{next_head}};
      if (stripe_last) rows_left_q <= op_i.rows;

      read_o  <= op_i.op != StoreToken;
      addr_o  <= row + ((word == words) ? '0 : word);
      bytes_o <= 5'd16;
      if (word + 1'b1 == words && op_i.bytes[3:0] != '0) bytes_o <= {1'b0, op_i.bytes[3:0]};
      if (word == words) bytes_o <= '0;
      last_o <= last;
    end
  end

endmodule
