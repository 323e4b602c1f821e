// SPDX-License-Identifier: Apache-2.0
//
// The writing side of the load engine: takes the words of one operation after another from memory's
// queue or from the SRAM reader, makes the bytes past the end of a row zero and writes them into
// SRAM.

module npu_dma_fill
  import npu_pkg::*;
  import npu_sram_pkg::*;
  import npu_dma_pkg::*;
#(
  parameter int unsigned ArrayDim = 16  // rows and columns of the systolic array: 4, 8, 16 or 32
) (
  input logic clk_i,  // clock
  input logic rst_ni, // reset, active low

  input  logic  valid_i,  // an operation; stays until ready, data stable
  output logic  ready_o,  // taken, into a queue of eight; independent of valid_i
  input  fill_t fill_i,   // what to write where, with valid_i

  input  logic  memory_valid_i,  // in the order of operations; stays until taken, data stable
  output logic  memory_take_o,   // taken; only with memory_valid_i
  input  word_t memory_word_i,   // of the memory, with memory_valid_i
  input  logic  copy_valid_i,    // the same; counts only if the operation copies
  output logic  copy_take_o,     // taken; only with copy_valid_i
  input  word_t copy_word_i,     // of the SRAM, with copy_valid_i

  output sram_wr_req_t wr_req_o,   // stays until ready, all stable
  input  logic         wr_ready_i, // taken; may depend on wr_req_o

  output engine_status_t status_o  // done: the last word of the oldest operation is written
);

  // What a word's transfer says of it
  typedef struct packed {
    logic [3:0] tail;
    logic       copy;
  } tag_t;

  fill_t fill;
  tag_t tag_in, tag;
  logic fill_valid, fill_ready, valid, write, last_piece, piece_end;
  mem_word_t left;
  word_t word, mask;

  npu_fifo #(
    .DataT(fill_t),
    .Depth(8)
  ) u_fills (
    .clk_i,
    .rst_ni,
    .valid_i,
    .ready_o,
    .data_i (fill_i),
    .valid_o(fill_valid),
    .ready_i(fill_ready),
    .data_o (fill)
  );

  assign tag_in = '{tail: fill.tail, copy: fill.copy};

  npu_dma_walk #(
    .ArrayDim(ArrayDim),
    .AddrBits($bits(sram_addr_t)),
    .TagT    (tag_t)
  ) u_walk (
    .clk_i,
    .rst_ni,
    .valid_i(fill_valid),
    .ready_o(fill_ready),
    .base_i (fill.sram),
    .pitch_i(fill.pitch),
    .shape_i(fill.shape),
    .tag_i  (tag_in),
    .valid_o(valid),
    .at_o   (wr_req_o.addr),
    .left_o (left),
    .last_o (last_piece),
    .tag_o  (tag),
    .step_i (write),
    .words_i(6'd1),
    .end_i  (piece_end)
  );

  assign piece_end = left == mem_word_t'(1);
  always_comb begin
    mask = '1;
    if (piece_end && tag.tail != '0) mask = (word_t'(1) << {tag.tail, 3'b0}) - 1'b1;
  end

  assign word           = tag.copy ? copy_word_i : memory_word_i;
  assign wr_req_o.valid = valid && (tag.copy ? copy_valid_i : memory_valid_i);
  assign wr_req_o.data  = word & mask;

  assign write          = wr_req_o.valid && wr_ready_i;
  assign memory_take_o  = write && !tag.copy;
  assign copy_take_o    = write && tag.copy;
  assign status_o.done  = write && last_piece && piece_end;
  assign status_o.busy  = fill_valid || valid;
  assign status_o.stall = status_o.busy && !write;

endmodule
