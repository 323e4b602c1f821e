// SPDX-License-Identifier: Apache-2.0
//
// The look-up table of VEC: loaded before the data of an instruction, four lines from the stream or
// 16 words from SRAM, a word a cycle, then read by all lanes at once.

module npu_vec_table #(
  parameter int unsigned Lanes = 16  // bytes looked up in every cycle, at least 1
) (
  input logic clk_i,  // clock
  input logic rst_ni, // reset, active low

  // A new instruction with a table
  input logic start_i,       // pulse: a new table begins, the old one is lost
  input logic from_stream_i, // with start_i: its bytes come from the stream, else from SRAM

  // From SRAM
  input logic           word_valid_i,  // the next of 16 words, in order; no refusal
  input npu_pkg::word_t word_i,        // 16 entries, the first in the lowest byte

  // From the stream
  input npu_stream_pkg::share_line_t share_i,  // four lines of the share
  output npu_stream_pkg::share_take_t share_o,  // ready: with the last word of a line
  output logic streaming_o,  // a level while lines are missing

  output logic ready_o,  // loaded: data may enter the lanes; low from the cycle after start_i

  input logic read_i,  // lanes read words; only with ready_o
  input logic [Lanes-1:0][3:0] row_i,  // which word each of them, with read_i
  input logic [Lanes-1:0][3:0] byte_i,  // which byte of the word that it read last
  output logic [Lanes-1:0][7:0] value_o  // that byte, in the same cycle
);

  import npu_pkg::*;

  logic [4:0] words_q;  // loaded so far
  logic streaming_q, write;
  word_t word;

  assign share_o.ready = streaming_q && words_q[1:0] == 2'd3;
  assign share_o.last  = streaming_q && words_q[3:2] == 2'd3;
  assign streaming_o   = streaming_q;
  assign ready_o       = words_q[4];
  assign write         = streaming_q ? share_i.valid : word_valid_i;
  assign word          = streaming_q ? share_i.data[WordBits*32'(words_q[1:0])+:WordBits] : word_i;

  always_ff @(posedge clk_i) begin
    if (!rst_ni) begin
      streaming_q <= 1'b0;
      words_q     <= '0;
    end else if (start_i) begin
      streaming_q <= from_stream_i;
      words_q     <= '0;
    end else if (write) begin
      words_q <= words_q + 5'd1;
      if (words_q[3:0] == 4'd15) streaming_q <= 1'b0;
    end
  end

  npu_lookup_table #(
    .Lanes(Lanes)
  ) u_table (
    .clk_i,
    .write_i(write),
    .word_i (words_q[3:0]),
    .data_i (word),
    .read_i,
    .row_i,
    .byte_i,
    .value_o
  );

`ifndef SYNTHESIS
  LookupLoaded_A :
  assert property (@(posedge clk_i) disable iff (!rst_ni) read_i |-> ready_o)
  else $error("npu_vec_table: look-up in a table that is not loaded");
  WordExpected_A :
  assert property (@(posedge clk_i) disable iff (!rst_ni) word_valid_i |-> !streaming_q && !ready_o)
  else $error("npu_vec_table: a word from SRAM for a table that is streamed or complete");
`endif

endmodule
