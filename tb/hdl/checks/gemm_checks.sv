// SPDX-License-Identifier: Apache-2.0
//
// Checks the streams of GEMM from its operands to the row that is written.

bind npu_gemm engine_checker #(
  .OperationT(npu_operation_pkg::gemm_operation_t)
) u_check (
  .clk_i,
  .rst_ni,
  .valid_i(op_valid_i),
  .ready_i(op_ready_o),
  .operation_i(op_i),
  .write_i(wr_req_o),
  .write_ready_i(wr_ready_i)
);

bind npu_gemm_loader stream_checker #(
  .DataT(logic [$bits(param_o)-1:0])
) u_check (
  .clk_i,
  .rst_ni,
  .valid_i(param_valid_o),
  .ready_i(param_ready_i),
  .data_i (param_o)
);

bind npu_gemm_operand_a stream_checker #(
  .DataT(logic [$bits(slice_o)-1:0])
) u_check (
  .clk_i,
  .rst_ni,
  .valid_i(slice_valid_o),
  .ready_i(slice_ready_i),
  .data_i (slice_o)
);

bind npu_gemm_operand_b stream_checker #(
  .DataT(logic [$bits({pair_o[0], pair_o[1]})-1:0])
) u_check (
  .clk_i,
  .rst_ni,
  .valid_i(pair_valid_o),
  .ready_i(pair_ready_i),
  .data_i ({pair_o[0], pair_o[1]})
);

bind npu_gemm_operand_d stream_checker #(
  .DataT(logic [$bits(word_o)-1:0])
) u_check (
  .clk_i,
  .rst_ni,
  .valid_i(word_valid_o),
  .ready_i(word_ready_i),
  .data_i (word_o)
);

bind npu_gemm_drain stream_checker #(
  .DataT(logic [$bits({drain_bank_o, drain_row_o})-1:0])
) u_check_drain (
  .clk_i,
  .rst_ni,
  .valid_i(drain_valid_o),
  .ready_i(drain_ready_i),
  .data_i ({drain_bank_o, drain_row_o})
);

bind npu_gemm_drain stream_checker #(
  .DataT(logic [$bits(sums_o)-1:0])
) u_check_sums (
  .clk_i,
  .rst_ni,
  .valid_i(sums_valid_o),
  .ready_i(sums_ready_i),
  .data_i (sums_o)
);

// `done` follows ready, and without a second operand its words may be anything.
bind npu_gemm_collect stream_checker #(
  .DataT(logic [$bits(
{row_ctrl_o.addr, row_columns_o}
)-1:0])
) u_check (
  .clk_i,
  .rst_ni,
  .valid_i(row_valid_o),
  .ready_i(row_ready_i),
  .data_i ({row_ctrl_o.addr, row_columns_o})
);

bind npu_gemm_post stream_checker #(
  .DataT(logic [$bits({out_ctrl_o, out_o})-1:0])
) u_check (
  .clk_i,
  .rst_ni,
  .valid_i(out_valid_o),
  .ready_i(out_ready_i),
  .data_i ({out_ctrl_o, out_o})
);

bind npu_gemm_argmax stream_checker #(
  .DataT(logic [$bits({row_ctrl_i, row_i})-1:0])
) u_check (
  .clk_i,
  .rst_ni,
  .valid_i(row_valid_o),
  .ready_i(row_ready_i),
  .data_i ({row_ctrl_i, row_i})
);
