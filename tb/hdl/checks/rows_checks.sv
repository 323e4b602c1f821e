// SPDX-License-Identifier: Apache-2.0
//
// Checks the streams of softmax, norms and RoPE.

`STREAM(npu_softmax, u_check_operation, op_valid_i, op_ready_o, op_i)
`STREAM(npu_softmax, u_check_write, wr_req_o.valid, wr_ready_i, wr_req_o)
`STREAM(npu_nrm, u_check_operation, op_valid_i, op_ready_o, op_i)
`STREAM(npu_nrm, u_check_write, wr_req_o.valid, wr_ready_i, wr_req_o)
`STREAM(npu_norm_pipe, u_check_in, valid_i, ready_o, {tag_i, word_i})
`STREAM(npu_norm_pipe, u_check_out, word_o.valid, word_ready_i, word_o)
`STREAM(npu_norm_stat, u_check, result_o.valid, pop_i, result_o)
`STREAM(npu_rope_turn, u_check_in, valid_i, ready_o, {tag_i, word_i})
`STREAM(npu_rope_turn, u_check_out, valid_o, ready_i, {tag_o, a_o, b_o})
`STREAM(npu_rope_pack, u_check, word_o.valid, word_ready_i, word_o)
