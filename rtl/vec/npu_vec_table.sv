// SPDX-License-Identifier: Apache-2.0
//
// The look-up table of VEC: loaded before the data of an instruction, four beats of 64 bytes from the
// stream or 16 words from SRAM, then read by all lanes at once.

module npu_vec_table (
  input logic clk_i,
  input logic rst_ni,

  // A new instruction with a table
  input logic start_i,
  input logic from_stream_i,

  // From SRAM
  input logic           word_valid_i,
  input npu_pkg::word_t word_i,

  // From the stream
  input  logic           stream_valid_i,
  input  npu_pkg::beat_t stream_data_i,
  output logic           stream_ready_o,
  output logic           stream_last_o,

  output logic ready_o,  // loaded: data may enter the lanes

  input  logic                                  lookup_i,
  input  logic [npu_vec_pkg::VecLanes-1:0][7:0] index_i,
  output logic [npu_vec_pkg::VecLanes-1:0][7:0] value_o
);

  logic [4:0] words_q;  // loaded so far
  logic streaming_q, pop;

  assign stream_ready_o = streaming_q;
  assign stream_last_o  = streaming_q && words_q[3:2] == 2'd3;
  assign pop            = stream_valid_i && stream_ready_o;
  assign ready_o        = words_q[4];

  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) begin
      streaming_q <= 1'b0;
      words_q     <= '0;
    end else if (start_i) begin
      streaming_q <= from_stream_i;
      words_q     <= '0;
    end else if (pop) begin
      words_q     <= words_q + 5'd4;
      streaming_q <= !stream_last_o;
    end else if (word_valid_i) begin
      words_q <= words_q + 5'd1;
    end
  end

  npu_lookup_table #(
    .Lanes(npu_vec_pkg::VecLanes)
  ) u_table (
    .clk_i,
    .rst_ni,
    .beat_valid_i(pop),
    .beat_i      (words_q[3:2]),
    .beat_data_i (stream_data_i),
    .word_valid_i,
    .word_i      (words_q[3:0]),
    .word_data_i (word_i),
    .lookup_i,
    .index_i,
    .value_o
  );

`ifndef SYNTHESIS
  assert property (@(posedge clk_i) disable iff (!rst_ni)
                   word_valid_i |-> !streaming_q && !ready_o);
`endif

endmodule
