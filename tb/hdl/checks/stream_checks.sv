// SPDX-License-Identifier: Apache-2.0
//
// Checks the stream: a line counts for the engine that holds the oldest ticket. Reads of npu_streamer
// are not checked, as a seek lets their valid go.

`STREAM(npu_stream_fifo, u_check, rd_valid_o, rd_ready_i, 1'b0, flush_i)
`STREAM(npu_streamer, u_check, line_valid_o != '0, (line_valid_o & line_ready_i) != '0, {
        line_valid_o, line_data_o})
