// SPDX-License-Identifier: Apache-2.0
//
// Checks the stream: a line counts for the engine that holds the oldest ticket. Reads of npu_streamer
// are not checked, as a seek lets their valid go.

bind npu_stream_fifo stream_checker u_check (
  .clk_i,
  .rst_ni,
  .withdraw_i(flush_i),
  .valid_i(rd_valid_o),
  .ready_i(rd_ready_i),
  .data_i(1'b0)
);

bind npu_streamer stream_checker #(
  .DataT(logic [$bits({line_valid_o, line_data_o})-1:0])
) u_check (
  .clk_i,
  .rst_ni,
  .valid_i(line_valid_o != '0),
  .ready_i((line_valid_o & line_ready_i) != '0),
  .data_i ({line_valid_o, line_data_o})
);
