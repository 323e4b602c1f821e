// SPDX-License-Identifier: Apache-2.0
//
// Checks the streams of the sequencer; a redirect or a flush withdraws what was fetched and checked.
// Reads of npu_fetch are not checked, as a redirect lets their valid go; tickets and operations of
// npu_dispatch are pulses.

bind npu_fetch stream_checker #(
  .DataT(logic [$bits({fetched_o.word, fetched_o.index})-1:0])
) u_check (
  .clk_i,
  .rst_ni,
  .withdraw_i(redirect_i.valid),
  .valid_i(fetched_o.valid),
  .ready_i(ready_i),
  .data_i({fetched_o.word, fetched_o.index})
);

bind npu_check stream_checker #(
  .DataT(logic [$bits(entry_o)-1:0])
) u_check (
  .clk_i,
  .rst_ni,
  .withdraw_i(flush_i),
  .valid_i(entry_valid_o),
  .ready_i(entry_ready_i),
  .data_i(entry_o)
);
