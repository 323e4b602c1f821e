// SPDX-License-Identifier: Apache-2.0
//
// The 256-entry look-up table of VEC: loaded before the data of an instruction, four beats of 64
// bytes from the stream or 16 words from SRAM, then read in every lane at once by the lanes.

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

  output logic              ready_o,  // complete
  output logic [255:0][7:0] table_o
);

  import npu_pkg::*;

  typedef logic [255:0][7:0] table_t;

  word_t [15:0] table_q;
  logic  [ 4:0] words_q;  // loaded so far
  logic streaming_q, pop;

  assign stream_ready_o = streaming_q;
  assign stream_last_o  = streaming_q && words_q[3:2] == 2'd3;
  assign pop            = stream_valid_i && stream_ready_o;
  assign ready_o        = words_q[4];
  assign table_o        = table_t'(table_q);

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

  always_ff @(posedge clk_i) begin
    if (pop) begin
      for (int unsigned i = 0; i < 4; i++) begin
        table_q[{words_q[3:2], 2'(i)}] <= stream_data_i[WordBits*i+:WordBits];
      end
    end else if (word_valid_i) begin
      table_q[words_q[3:0]] <= word_i;
    end
  end

`ifndef SYNTHESIS
  assert property (@(posedge clk_i) disable iff (!rst_ni)
                   word_valid_i |-> !streaming_q && !ready_o);
`endif

endmodule
