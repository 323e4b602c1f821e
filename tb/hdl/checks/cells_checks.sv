// SPDX-License-Identifier: Apache-2.0
//
// Checks what engines share: FIFOs, rows on their way from and to the SRAM.

// A FIFO shows what it stores: that valid stays is what can go wrong.
`STREAM(npu_flush_fifo, u_check, valid_o, ready_i, 1'b0, flush_i)
`STREAM(npu_row_fetch, u_check_in, step_i.valid, step_ready_o, {step_i, step_tag_i})
`STREAM(npu_row_fetch, u_check_out, valid_o, ready_i, tag_o)
`STREAM(npu_row_writer, u_check, wr_req_o.valid, wr_ready_i, wr_req_o)

bind npu_multicast_fifo multicast_checker #(
  .NumReaders(NumReaders)
) u_check (
  .clk_i,
  .rst_ni,
  .valid_i(valid_o),
  .ready_i(ready_i)
);
