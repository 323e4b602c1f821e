// SPDX-License-Identifier: Apache-2.0
//
// The places in SRAM of the words of a store, in the order in which the destination takes them.
// Rows go one after the other; the rows of K/V heads go in tile order: stripes of positions, in a
// stripe tile by tile, in a tile position by position. Tells of each word how many of its bytes
// count.

module npu_dma_source
  import npu_pkg::*;
  import npu_operation_pkg::*;
  import npu_dma_pkg::*;
#(
  parameter int unsigned ArrayDim = 16  // rows and columns of the systolic array: 4, 8, 16 or 32
) (
  input logic clk_i,  // clock
  input logic rst_ni, // reset, active low

  input store_operation_t op_i,  // an operation; steady from its first step to its last
  input logic step_i,  // the word is taken; the next one is shown one cycle later
  output sram_addr_t addr_o,  // SRAM word to read, while op_i holds
  // Bytes of it that count, 0 to 16; 0: past the end of its row, any word of the row will do
  output logic [4:0] bytes_o,
  output logic last_o  // the last word of the operation
);

  localparam int unsigned Edge = tile_edge(ArrayDim);
  localparam int unsigned TileRowWords = Edge / WordBytes;

  logic kv;
  assign kv = op_i.op == StoreKv;

  // A plain row is a stripe of one position whose tiles are one word wide.
  sram_addr_t head_q, stripe_q, row_q;  // places of the head, the stripe's first row, the row
  sram_addr_t tile_q;  // word of the row that its tile begins with
  logic word_q;  // word of the tile's row
  logic [4:0] in_stripe_q;  // rows of the stripe that are done
  dim_t rows_q;  // rows done in stripes before
  logic [8:0] heads_q;

  sram_addr_t words, word, tile_words;
  logic [5:0] stripe_rows;
  dim_t rows_left;
  logic word_last, row_last, tile_last, stripe_last, head_last;

  assign words      = words_of(op_i.bytes);
  assign tile_words = kv ? sram_addr_t'(TileRowWords) : sram_addr_t'(1);
  assign rows_left  = op_i.rows - rows_q;

  always_comb begin
    stripe_rows = 6'd1;
    if (kv) stripe_rows = 6'(Edge) - ((rows_q == '0) ? {1'b0, op_i.phase} : '0);
    if (rows_left < {10'b0, stripe_rows}) stripe_rows = rows_left[5:0];
  end

  assign word_last   = tile_words == sram_addr_t'(1) || word_q;
  assign row_last    = word_last && {1'b0, in_stripe_q} + 6'd1 == stripe_rows;
  assign tile_last   = row_last && 17'(tile_q) + 17'(tile_words) >= 17'(words);
  assign stripe_last = tile_last && rows_left == {10'b0, stripe_rows};
  assign head_last   = !kv || heads_q + 1'b1 == op_i.heads;
  assign last_o      = stripe_last && head_last;

  assign word        = tile_q + sram_addr_t'(word_q);
  always_comb begin
    addr_o  = op_i.sram + head_q + row_q + word;
    bytes_o = 5'd16;
    if (word + 1'b1 == words && op_i.bytes[3:0] != '0) bytes_o = {1'b0, op_i.bytes[3:0]};
    if (word == words) begin
      addr_o  = op_i.sram + head_q + row_q;
      bytes_o = '0;
    end
  end

  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) begin
      head_q      <= '0;
      stripe_q    <= '0;
      row_q       <= '0;
      tile_q      <= '0;
      word_q      <= 1'b0;
      in_stripe_q <= '0;
      rows_q      <= '0;
      heads_q     <= '0;
    end else if (step_i) begin
      word_q <= !word_last;
      if (word_last) begin
        in_stripe_q <= in_stripe_q + 1'b1;
        row_q       <= row_q + op_i.sram_pitch;
      end
      if (row_last) begin
        in_stripe_q <= '0;
        row_q       <= stripe_q;
        tile_q      <= tile_q + tile_words;
      end
      if (tile_last) begin
        tile_q   <= '0;
        row_q    <= row_q + op_i.sram_pitch;
        stripe_q <= row_q + op_i.sram_pitch;
        rows_q   <= rows_q + {10'b0, stripe_rows};
      end
      if (stripe_last) begin
        row_q    <= '0;
        stripe_q <= '0;
        rows_q   <= '0;
        head_q   <= head_last ? '0 : head_q + words;
        heads_q  <= head_last ? '0 : heads_q + 1'b1;
      end
    end
  end

endmodule
