// SPDX-License-Identifier: Apache-2.0
//
// Checks the streams of the vector engine.

bind npu_vec engine_checker #(
  .OperationT(npu_operation_pkg::vec_operation_t)
) u_check (
  .clk_i,
  .rst_ni,
  .valid_i(op_valid_i),
  .ready_i(op_ready_o),
  .operation_i(op_i),
  .write_i(wr_req_o),
  .write_ready_i(wr_ready_i)
);

bind npu_vec_lanes stream_checker #(
  .DataT(logic [$bits({tag_i, word_i})-1:0])
) u_check_in (
  .clk_i,
  .rst_ni,
  .valid_i(valid_i),
  .ready_i(ready_o),
  .data_i ({tag_i, word_i})
);

bind npu_vec_lanes stream_checker #(
  .DataT(logic [$bits(word_o)-1:0])
) u_check_out (
  .clk_i,
  .rst_ni,
  .valid_i(word_o.valid),
  .ready_i(word_ready_i),
  .data_i (word_o)
);
