// SPDX-License-Identifier: Apache-2.0
//
// The look-up table of VEC: loaded before the data of an instruction, four lines from the stream or
// 16 words from SRAM, then read by all lanes at once.

module npu_vec_table (
  input logic clk_i,  // clock
  input logic rst_ni, // reset, active low

  // A new instruction with a table
  input logic start_i,       // pulse: a new table begins, the old one is lost
  input logic from_stream_i, // with start_i: its bytes come from the stream, else from SRAM

  // From SRAM
  input logic           word_valid_i,  // the next of 16 words, in order; no refusal
  input npu_pkg::word_t word_i,        // 16 entries, the first in the lowest byte

  // From the stream
  input  npu_stream_pkg::share_line_t share_i,  // four lines of the share
  output npu_stream_pkg::share_take_t share_o,  // ready: from a register, until the fourth

  output logic ready_o,  // loaded: data may enter the lanes; low from the cycle after start_i

  // In the third cycle of ready_o at the earliest
  input  logic                                  lookup_i,  // index_i counts
  input  logic [npu_vec_pkg::VecLanes-1:0][7:0] index_i,   // entry that each lane wants, 0 to 255
  output logic [npu_vec_pkg::VecLanes-1:0][7:0] value_o    // the entry, in the same cycle
);

  logic [4:0] words_q;  // loaded so far
  logic streaming_q, last, pop;

  assign share_o.ready = streaming_q;
  assign share_o.last  = last;
  assign last          = streaming_q && words_q[3:2] == 2'd3;
  assign pop           = share_i.valid && streaming_q;
  assign ready_o       = words_q[4];

  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) begin
      streaming_q <= 1'b0;
      words_q     <= '0;
    end else if (start_i) begin
      streaming_q <= from_stream_i;
      words_q     <= '0;
    end else if (pop) begin
      words_q     <= words_q + 5'd4;
      streaming_q <= !last;
    end else if (word_valid_i) begin
      words_q <= words_q + 5'd1;
    end
  end

  npu_lookup_table #(
    .Lanes(npu_vec_pkg::VecLanes)
  ) u_table (
    .clk_i,
    .rst_ni,
    .line_valid_i(pop),
    .line_i      (words_q[3:2]),
    .line_data_i (share_i.data),
    .word_valid_i,
    .word_i      (words_q[3:0]),
    .word_data_i (word_i),
    .lookup_i,
    .index_i,
    .value_o
  );

`ifndef SYNTHESIS
  WordExpected_A :
  assert property (@(posedge clk_i) disable iff (!rst_ni) word_valid_i |-> !streaming_q && !ready_o)
  else $error("npu_vec_table: a word from SRAM for a table that is streamed or complete");
`endif

endmodule
