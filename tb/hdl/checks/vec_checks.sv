// SPDX-License-Identifier: Apache-2.0
//
// Checks the streams of the vector engine.

`STREAM(npu_vec, u_check_operation, op_valid_i, op_ready_o, op_i)
`STREAM(npu_vec, u_check_write, wr_req_o.valid, wr_ready_i, wr_req_o)
`STREAM(npu_vec_lanes, u_check_in, valid_i, ready_o, {tag_i, tag_i.upper ? 128'd0 : word_i})
`STREAM(npu_vec_lanes, u_check_out, word_o.valid, word_ready_i, word_o)
