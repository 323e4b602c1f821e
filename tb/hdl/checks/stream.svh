// SPDX-License-Identifier: Apache-2.0
//
// Binds the rules of a valid/ready stream (stream_checker) to a module that has one. Verilator reads
// this before the checks that use it.

`define STREAM(MODULE, NAME, VALID, READY, DATA, WITHDRAW = 1'b0) \
    bind MODULE stream_checker #( \
      .DataT(logic [$bits(DATA)-1:0]) \
    ) NAME ( \
      .clk_i, \
      .rst_ni, \
      .valid_i(VALID), \
      .ready_i(READY), \
      .data_i(DATA), \
      .withdraw_i(WITHDRAW) \
    );
