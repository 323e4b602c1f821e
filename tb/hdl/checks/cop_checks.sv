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

bind npu_cop_reader stream_checker #(
  .DataT(logic [$bits(chunk_o)-1:0])
) u_check (
  .clk_i,
  .rst_ni,
  .withdraw_i(range_i.start),
  .valid_i(chunk_o.valid),
  .ready_i(ready_i),
  .data_i(chunk_o)
);

bind npu_cop_pieces stream_checker #(
  .DataT(logic [$bits(piece_o)-1:0])
) u_check (
  .clk_i,
  .rst_ni,
  .withdraw_i(drop_i || start_i),
  .valid_i(piece_o.valid),
  .ready_i(ready_i),
  .data_i(piece_o)
);

bind npu_cop_writer stream_checker #(
  .DataT(logic [$bits(group_i)-1:0])
) u_check_group (
  .clk_i,
  .rst_ni,
  .withdraw_i(drop_i),
  .valid_i(group_i.valid),
  .ready_i(ready_o),
  .data_i(group_i)
);

bind npu_cop_writer stream_checker #(
  .DataT(logic [$bits(write_o)-1:0])
) u_check_word (
  .clk_i,
  .rst_ni,
  .withdraw_i(drop_i || range_i.start),
  .valid_i(write_o.valid),
  .ready_i(write_i.ready),
  .data_i(write_o)
);

bind npu_cop_divide stream_checker #(
  .DataT(logic [31:0])
) u_check (
  .clk_i,
  .rst_ni,
  .withdraw_i(clear_i),
  .valid_i(valid_o),
  .ready_i(ready_i),
  .data_i(y_o)
);

bind npu_cop_func stream_checker #(
  .DataT(logic [31:0])
) u_check (
  .clk_i,
  .rst_ni,
  .withdraw_i(clear_i),
  .valid_i(valid_o),
  .ready_i(ready_i),
  .data_i(y_o)
);

bind npu_cop_lane stream_checker #(
  .DataT(logic [31:0])
) u_check (
  .clk_i,
  .rst_ni,
  .withdraw_i(clear_i),
  .valid_i(valid_o),
  .ready_i(ready_i),
  .data_i(y_o)
);

bind npu_cop_root stream_checker #(
  .DataT(logic [31:0])
) u_check (
  .clk_i,
  .rst_ni,
  .withdraw_i(clear_i),
  .valid_i(valid_o),
  .ready_i(ready_i),
  .data_i(y_o)
);

bind npu_cop_func_front stream_checker #(
  .DataT(logic [$bits(ratio_o)-1:0])
) u_check_ratio (
  .clk_i,
  .rst_ni,
  .withdraw_i(clear_i),
  .valid_i(ratio_valid_o),
  .ready_i(ratio_ready_i && advance_i),
  .data_i(ratio_o)
);

bind npu_cop_func_front stream_checker #(
  .DataT(logic [$bits(power_o)-1:0])
) u_check_power (
  .clk_i,
  .rst_ni,
  .withdraw_i(clear_i),
  .valid_i(power_valid_o),
  .ready_i(power_ready_i && advance_i),
  .data_i(power_o)
);
