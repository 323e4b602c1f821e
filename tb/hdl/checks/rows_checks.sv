// SPDX-License-Identifier: Apache-2.0
//
// Checks the streams of softmax, norms and RoPE.

bind npu_softmax engine_checker #(
  .OperationT(npu_operation_pkg::smx_operation_t)
) u_check (
  .clk_i,
  .rst_ni,
  .valid_i(op_valid_i),
  .ready_i(op_ready_o),
  .operation_i(op_i),
  .write_i(wr_req_o),
  .write_ready_i(wr_ready_i)
);

bind npu_nrm engine_checker #(
  .OperationT(npu_operation_pkg::nrm_operation_t)
) u_check (
  .clk_i,
  .rst_ni,
  .valid_i(op_valid_i),
  .ready_i(op_ready_o),
  .operation_i(op_i),
  .write_i(wr_req_o),
  .write_ready_i(wr_ready_i)
);

bind npu_norm_pipe stream_checker #(
  .DataT(logic [$bits({tag_i, word_i})-1:0])
) u_check_in (
  .clk_i,
  .rst_ni,
  .valid_i(valid_i),
  .ready_i(ready_o),
  .data_i ({tag_i, word_i})
);

bind npu_norm_pipe stream_checker #(
  .DataT(logic [$bits(word_o)-1:0])
) u_check_out (
  .clk_i,
  .rst_ni,
  .valid_i(word_o.valid),
  .ready_i(word_ready_i),
  .data_i (word_o)
);

bind npu_norm_stat stream_checker #(
  .DataT(logic [$bits(result_o)-1:0])
) u_check (
  .clk_i,
  .rst_ni,
  .valid_i(result_o.valid),
  .ready_i(pop_i),
  .data_i (result_o)
);

bind npu_rope_turn stream_checker #(
  .DataT(logic [$bits({tag_i, word_i})-1:0])
) u_check_in (
  .clk_i,
  .rst_ni,
  .valid_i(valid_i),
  .ready_i(ready_o),
  .data_i ({tag_i, word_i})
);

bind npu_rope_turn stream_checker #(
  .DataT(logic [$bits({tag_o, a_o, b_o})-1:0])
) u_check_out (
  .clk_i,
  .rst_ni,
  .valid_i(valid_o),
  .ready_i(ready_i),
  .data_i ({tag_o, a_o, b_o})
);

bind npu_rope_pack stream_checker #(
  .DataT(logic [$bits(word_o)-1:0])
) u_check (
  .clk_i,
  .rst_ni,
  .valid_i(word_o.valid),
  .ready_i(word_ready_i),
  .data_i (word_o)
);
