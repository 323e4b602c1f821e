// SPDX-License-Identifier: Apache-2.0
//
// Checks the streams of the coprocessor. A new range and a failed instruction withdraw what was before;
// units forget when they are told to. Its port is checked where the bench has it.

bind npu_cop_mem axi_checker u_check (
  .clk_i,
  .rst_ni,
  .axi_req_i(axi_req_o),
  .axi_rsp_i(axi_rsp_i)
);

`STREAM(npu_cop_reader, u_check, chunk_o.valid, ready_i, chunk_o, range_i.start)
// A piece that has to wait has 8 bytes of either operand at most.
`STREAM(npu_cop_pieces, u_check, piece_o.valid, ready_i, {
        piece_o.a[63:0], piece_o.b[63:0], piece_o.count, size_o}, drop_i || start_i)
`STREAM(npu_cop_writer, u_check_group, group_i.valid, ready_o, group_i, drop_i)
`STREAM(npu_cop_writer, u_check_word, write_o.valid, write_i.ready, write_o,
        drop_i || range_i.start)
bind npu_cop_reader cop_range_checker u_check_range (
  .clk_i,
  .rst_ni,
  .range_i,
  .asks_i  (read_o.valid),
  .taken_i (read_i.ready),
  .group_i (1'b0),
  .eights_i(1'b0),
  .size_i  ('0)
);
bind npu_cop_writer cop_range_checker u_check_range (
  .clk_i,
  .rst_ni,
  .range_i,
  .asks_i (1'b0),
  .taken_i(1'b0),
  .group_i(group_i.valid),
  .eights_i,
  .size_i
);
`STREAM(npu_cop_func, u_check, valid_o, ready_i, y_o, clear_i)
`STREAM(npu_cop_lane, u_check, valid_o, ready_i, y_o, clear_i)
`STREAM(npu_cop_root, u_check, valid_o, ready_i, y_o, clear_i)
`STREAM(npu_cop_func_front, u_check_ratio, ratio_valid_o, ratio_ready_i && advance_i, ratio_o,
        clear_i)
`STREAM(npu_cop_func_front, u_check_power, power_valid_o, power_ready_i && advance_i, power_o,
        clear_i)
