// SPDX-License-Identifier: Apache-2.0
//
// Checks the words that are read from the SRAM. Requests at its ports are checked where they are made.

bind npu_sram_reader stream_checker #(
  .DataT(logic [$bits(data_o)-1:0])
) u_check (
  .clk_i,
  .rst_ni,
  .valid_i(data_valid_o),
  .ready_i(data_ready_i),
  .data_i (data_o)
);
