// SPDX-License-Identifier: Apache-2.0
//
// First-in first-out queue with valid/ready on both sides. The head is visible as soon as it is
// stored (one cycle after the push); there is no path from one side's handshake to the other's.

module npu_fifo #(
  parameter type DataT = logic,  // what an entry is, any type
  parameter int unsigned Depth = 4  // entries, at least 1
) (
  input logic clk_i,  // clock
  input logic rst_ni, // reset, active low

  input  logic valid_i,  // push; may be withdrawn before ready_o
  output logic ready_o,  // room for one more; depends on neither valid_i nor ready_i
  input  DataT data_i,   // counts where valid_i and ready_o meet

  output logic valid_o,  // an entry is there; stays until ready_i
  input  logic ready_i,  // pop; may depend on valid_o
  output DataT data_o    // oldest entry, stable while valid_o
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
    .count_o()
  );

endmodule
