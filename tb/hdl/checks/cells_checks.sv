// SPDX-License-Identifier: Apache-2.0
//
// Checks what engines share: FIFOs, rows on their way from and to the SRAM.

// A FIFO shows what it stores: that valid stays is what can go wrong.
bind npu_flush_fifo stream_checker u_check (
  .clk_i,
  .rst_ni,
  .withdraw_i(flush_i),
  .valid_i(valid_o),
  .ready_i(ready_i),
  .data_i(1'b0)
);

bind npu_row_fetch stream_checker #(
  .DataT(logic [$bits({step_i, step_tag_i})-1:0])
) u_check_in (
  .clk_i,
  .rst_ni,
  .valid_i(step_i.valid),
  .ready_i(step_ready_o),
  .data_i ({step_i, step_tag_i})
);

bind npu_row_fetch stream_checker #(
  .DataT(logic [$bits(tag_o)-1:0])
) u_check_out (
  .clk_i,
  .rst_ni,
  .valid_i(valid_o),
  .ready_i(ready_i),
  .data_i (tag_o)
);

bind npu_row_writer stream_checker #(
  .DataT(logic [$bits(wr_req_o)-1:0])
) u_check (
  .clk_i,
  .rst_ni,
  .valid_i(wr_req_o.valid),
  .ready_i(wr_ready_i),
  .data_i (wr_req_o)
);

bind npu_multicast_fifo multicast_checker #(
  .NumReaders(NumReaders)
) u_check (
  .clk_i,
  .rst_ni,
  .valid_i(valid_o),
  .ready_i(ready_i)
);
