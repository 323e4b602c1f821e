// SPDX-License-Identifier: Apache-2.0
//
// Checks the streams of the command port. The end of the work, however it comes, withdraws what it
// asks for. Not checked: what goes into its unit, whose valid may go at any time; the ring's operation and
// its record, which nobody ever makes wait.

bind npu_cmd_mem axi_checker u_check (
  .clk_i,
  .rst_ni,
  .axi_req_i(axi_req_o),
  .axi_rsp_i(axi_rsp_i)
);

bind npu_cmd_fetch stream_checker #(
  .DataT(logic [$bits(entry_o)-1:0])
) u_check_entry (
  .clk_i,
  .rst_ni,
  .withdraw_i(!run_i),
  .valid_i(entry_o.valid),
  .ready_i(ready_i),
  .data_i(entry_o)
);

bind npu_cmd_fetch stream_checker #(
  .DataT(logic [$bits(read_o)-1:0])
) u_check_read (
  .clk_i,
  .rst_ni,
  .withdraw_i(!run_i),
  .valid_i(read_o.valid),
  .ready_i(read_i.ready || read_i.denied),
  .data_i(read_o)
);

bind npu_cmd_stream stream_checker #(
  .DataT(logic [$bits(read_o)-1:0])
) u_check_read (
  .clk_i,
  .rst_ni,
  .withdraw_i(!active_i),
  .valid_i(read_o.valid),
  .ready_i(read_i.ready || read_i.denied),
  .data_i(read_o)
);

bind npu_cmd_writeback stream_checker #(
  .DataT(logic [$bits(write_o)-1:0])
) u_check_write (
  .clk_i,
  .rst_ni,
  .withdraw_i(!active_i || (write_i.valid && write_i.error)),
  .valid_i(write_o.valid),
  .ready_i(write_i.ready || write_i.denied),
  .data_i(write_o)
);

bind npu_cmd stream_checker #(
  .DataT(logic [$bits(launch_o)-1:0])
) u_check_launch (
  .clk_i,
  .rst_ni,
  .withdraw_i(soft_reset_i),
  .valid_i(launch_o.valid),
  .ready_i(launch_i.ready),
  .data_i(launch_o)
);
