// SPDX-License-Identifier: Apache-2.0
//
// Checks the streams of GEMM from its operands to the row that is written.

`STREAM(npu_gemm, u_check_operation, op_valid_i, op_ready_o, op_i)
`STREAM(npu_gemm, u_check_write, wr_req_o.valid, wr_ready_i, wr_req_o)
`STREAM(npu_gemm_loader, u_check, param_valid_o, param_ready_i, param_o)
`STREAM(npu_gemm_operand_a, u_check, slice_valid_o, slice_ready_i, slice_o)
`STREAM(npu_gemm_operand_b, u_check, pair_valid_o, pair_ready_i, {pair_o[0], pair_o[1]})
`STREAM(npu_gemm_operand_d, u_check, word_valid_o, word_ready_i, word_o)
`STREAM(npu_gemm_drain, u_check_drain, drain_valid_o, drain_ready_i, {drain_bank_o, drain_row_o})
`STREAM(npu_gemm_drain, u_check_sums, sums_valid_o, sums_ready_i, sums_o)

// `done` follows ready, and without a second operand its words may be anything.
`STREAM(npu_gemm_collect, u_check, beat_valid_o, beat_ready_i, {beat_ctrl_o.addr, beat_columns_o})
`STREAM(npu_gemm_post, u_check, out_valid_o, out_ready_i, {out_ctrl_o, out_o})
`STREAM(npu_gemm_argmax, u_check, beat_valid_o, beat_ready_i, {beat_ctrl_i, beat_i})
