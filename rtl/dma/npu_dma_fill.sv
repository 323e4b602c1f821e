// SPDX-License-Identifier: Apache-2.0
//
// The writing side of the load engine: takes the words of one command after the other from memory's
// queue or from the SRAM reader, makes the bytes past the end of a row zero and writes them into
// SRAM.

module npu_dma_fill
  import npu_pkg::*;
  import npu_dma_pkg::*;
#(
  parameter int unsigned ArrayDim = 16
) (
  input logic clk_i,
  input logic rst_ni,

  input  logic  valid_i,
  output logic  ready_o,
  input  fill_t fill_i,

  input  logic  memory_valid_i,
  output logic  memory_take_o,
  input  word_t memory_word_i,
  input  logic  copy_valid_i,
  output logic  copy_take_o,
  input  word_t copy_word_i,

  output sram_wr_req_t wr_req_o,
  input  logic         wr_ready_i,

  output logic       done_o,
  output logic       busy_o,
  output logic       stall_o,
  output instr_idx_t instr_o
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
    .ready_i(done_o),
    .data_o (fill),
    .count_o()
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
  assign wr_req_o.instr = fill.instr;

  assign write          = wr_req_o.valid && wr_ready_i;
  assign memory_take_o  = write && !fill.copy;
  assign copy_take_o    = write && fill.copy;
  assign done_o         = write && last_piece && piece_last_word;
  assign busy_o         = valid;
  assign stall_o        = valid && !write;
  assign instr_o        = fill.instr;

endmodule
