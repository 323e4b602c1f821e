// SPDX-License-Identifier: Apache-2.0
//
// First-in first-out queue with valid/ready on both sides. The head is visible as soon as it is
// stored (one cycle after the push); there is no path from one side's handshake to the other's.

module npu_fifo #(
  parameter type DataT = logic,
  parameter int unsigned Depth = 4
) (
  input logic clk_i,
  input logic rst_ni,

  input  logic valid_i,
  output logic ready_o,
  input  DataT data_i,

  output logic valid_o,
  input  logic ready_i,
  output DataT data_o,

  output logic [$clog2(Depth+1)-1:0] count_o
);

  npu_flush_fifo #(
    .DataT(DataT),
    .Depth(Depth)
  ) u_fifo (
    .clk_i,
    .rst_ni,
    .flush_i(1'b0),
    .valid_i,
    .ready_o,
    .data_i,
    .valid_o,
    .ready_i,
    .data_o,
    .count_o
  );

endmodule
