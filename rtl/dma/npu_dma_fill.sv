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

  fill_t fill;
  logic valid, write, last_piece, piece_last_word;
  sram_addr_t at;
  mem_word_t  left;
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
    .valid_o(valid),
    .ready_i(status_o.done),
    .data_o (fill)
  );

  npu_dma_walk #(
    .ArrayDim(ArrayDim),
    .AddrBits($bits(sram_addr_t))
  ) u_walk (
    .clk_i,
    .rst_ni,
    .shape_i(fill.shape),
    .pitch_i(fill.pitch),
    .step_i (write),
    .words_i(6'd1),
    .at_o   (at),
    .left_o (left),
    .last_o (last_piece)
  );

  assign piece_last_word = left == mem_word_t'(1);
  always_comb begin
    mask = '1;
    if (piece_last_word && fill.tail != '0) mask = (word_t'(1) << {fill.tail, 3'b0}) - 1'b1;
  end

  assign word           = fill.copy ? copy_word_i : memory_word_i;
  assign wr_req_o.valid = valid && (fill.copy ? copy_valid_i : memory_valid_i);
  assign wr_req_o.addr  = fill.sram + at;
  assign wr_req_o.data  = word & mask;

  assign write          = wr_req_o.valid && wr_ready_i;
  assign memory_take_o  = write && !fill.copy;
  assign copy_take_o    = write && fill.copy;
  assign status_o.done  = write && last_piece && piece_last_word;
  assign status_o.busy  = valid;
  assign status_o.stall = valid && !write;

endmodule
