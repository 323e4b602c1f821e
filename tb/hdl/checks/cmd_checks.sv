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

`STREAM(npu_cmd_fetch, u_check_entry, entry_o.valid, ready_i, entry_o, !run_i)
`STREAM(npu_cmd_fetch, u_check_read, read_o.valid, read_i.ready || read_i.denied, read_o, !run_i)
`STREAM(npu_cmd_stream, u_check_read, read_o.valid, read_i.ready || read_i.denied, read_o,
        !active_i)
`STREAM(npu_cmd_writeback, u_check_write, write_o.valid, write_i.ready || write_i.denied, write_o,
        !active_i || (write_i.valid && write_i.error))
`STREAM(npu_cmd, u_check_launch, launch_o.valid, launch_i.ready, launch_o, soft_reset_i)
