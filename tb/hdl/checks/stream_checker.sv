// SPDX-License-Identifier: Apache-2.0
//
// The rules of a valid/ready stream: once valid, it stays valid until ready, and its data stay as they
// are. What the contract lets withdraw it, a flush for instance, is `withdraw_i`. CHECKER holds a
// module's own signals against them, STREAM those of another one that it is bound to; Verilator reads
// this file before those that use them.

`define CHECKER(NAME, VALID, READY, DATA, WITHDRAW = 1'b0) \
    stream_checker #( \
      .DataT(logic [$bits(DATA)-1:0]) \
    ) NAME ( \
      .clk_i, \
      .rst_ni, \
      .valid_i(VALID), \
      .ready_i(READY), \
      .data_i(DATA), \
      .withdraw_i(WITHDRAW) \
    );

`define STREAM(MODULE, NAME, VALID, READY, DATA, WITHDRAW = 1'b0) \
    bind MODULE `CHECKER(NAME, VALID, READY, DATA, WITHDRAW)

module stream_checker #(
  parameter type DataT = logic  // what the stream carries
) (
  input logic clk_i,             // clock
  input logic rst_ni,            // reset, active low
  input logic valid_i,           // of the stream
  input logic ready_i,           // of the stream
  input DataT data_i,            // of the stream
  // In this cycle or the one before, valid may have gone; most streams have no such thing
  input logic withdraw_i = 1'b0
);

  logic waits_q;  // it was valid in the cycle before, and nobody took it
  DataT data_q;

  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) begin
      waits_q <= 1'b0;
    end else begin
      waits_q <= valid_i && !ready_i && !withdraw_i;
      if (valid_i && !ready_i) data_q <= data_i;
    end
  end

  StaysValid_A :
  assert property (@(posedge clk_i) disable iff (!rst_ni) waits_q && !withdraw_i |-> valid_i)
  else $error("%m: valid was withdrawn before ready");

  KeepsData_A :
  assert property (@(posedge clk_i) disable iff (!rst_ni) waits_q && valid_i && !withdraw_i |->
                   data_i == data_q)
  else $error("%m: data changed before ready");

endmodule
