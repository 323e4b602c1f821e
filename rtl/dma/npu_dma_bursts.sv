// SPDX-License-Identifier: Apache-2.0
//
// Cuts transfers into requests for memory: bursts that end with their piece, at a 4 KiB boundary or
// after MaxBurst words, one per cycle. For a transfer inside the SRAM it gives single words instead.

module npu_dma_bursts
  import npu_pkg::*;
  import npu_mem_pkg::*;
  import npu_dma_pkg::*;
#(
  parameter int unsigned ArrayDim = 16  // rows and columns of the systolic array: 4, 8, 16 or 32
) (
  input logic clk_i,  // clock
  input logic rst_ni, // reset, active low

  // A transfer
  input  logic       valid_i,  // stays until ready, all stable
  output logic       ready_o,  // the rest of it goes on by itself; only with valid_i
  input  mem_word_t  base_i,   // address of the first unit, in words
  input  mem_word_t  pitch_i,  // words from unit to unit
  input  shape_t     shape_i,  // which words of every unit
  input  instr_idx_t instr_i,  // index of its instruction, for the requests
  input  logic       single_i, // word by word

  // Requests; `last_o` and `single_o` go with them
  output mem_req_t req_o,     // two cycles after valid_i or later; stays until ready, all stable
  output logic     last_o,    // the last one of its transfer, with req_o.valid
  output logic     single_o,  // its transfer goes word by word, with req_o.valid
  input  logic     ready_i,   // taken; may depend on req_o.valid
  output logic     busy_o     // a level: requests of what was taken are left
);

  typedef struct packed {
    instr_idx_t instr;
    logic       single;
  } tag_t;

  typedef struct packed {
    mem_word_t  addr;
    logic [7:0] len;
    logic       last;
    tag_t       tag;
  } burst_t;

  tag_t tag_in, tag;
  burst_t cut, burst;
  mem_word_t left;
  logic valid, room, step, piece_end, last_piece;
  logic [5:0] most, words;
  logic [6:0] past_page;
  logic crosses;

  assign tag_in = '{instr: instr_i, single: single_i};

  npu_dma_walk #(
    .ArrayDim(ArrayDim),
    .AddrBits($bits(mem_word_t)),
    .TagT    (tag_t)
  ) u_walk (
    .clk_i,
    .rst_ni,
    .valid_i,
    .ready_o,
    .base_i,
    .pitch_i,
    .shape_i,
    .tag_i  (tag_in),
    .valid_o(valid),
    .at_o   (cut.addr),
    .left_o (left),
    .last_o (last_piece),
    .tag_o  (tag),
    .step_i (step),
    .words_i(words),
    .end_i  (piece_end)
  );

  // Whether the piece ends with the burst, found beside the burst's length
  assign past_page = {1'b0, cut.addr[4:0]} + left[5:0];
  assign crosses   = cut.addr[7:5] == '1 && past_page > 7'(MaxBurst);
  always_comb begin
    piece_end = left <= mem_word_t'(MaxBurst) && !crosses;
    if (tag.single) piece_end = left == mem_word_t'(1);
  end

  assign most     = tag.single ? 6'd1 : most_words({cut.addr, 4'b0});
  assign words    = piece_end ? left[5:0] : most;
  assign cut.len  = {2'b0, words} - 8'd1;
  assign cut.last = piece_end && last_piece;
  assign cut.tag  = tag;
  assign step     = valid && room;

  npu_fifo #(
    .DataT(burst_t),
    .Depth(2)
  ) u_bursts (
    .clk_i,
    .rst_ni,
    .valid_i(valid),
    .ready_o(room),
    .data_i (cut),
    .valid_o(req_o.valid),
    .ready_i,
    .data_o (burst)
  );

  assign req_o.addr  = {burst.addr, 4'b0};
  assign req_o.len   = burst.len;
  assign req_o.instr = burst.tag.instr;
  assign last_o      = burst.last;
  assign single_o    = burst.tag.single;
  assign busy_o      = valid || req_o.valid;

endmodule
