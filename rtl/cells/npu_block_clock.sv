// SPDX-License-Identifier: Apache-2.0
//
// Clock of a block that has often nothing to do. It runs in every cycle in which the block is awake
// or reset, and for some cycles after, in which registers that only follow others come to rest.

module npu_block_clock #(
  parameter int unsigned Rest = 4  // cycles after the last one awake, at least 2
) (
  input logic clk_i,  // clock
  input logic rst_ni, // reset, active low

  input  logic awake_i,  // a level: the block works, or something is said to it or by it
  output logic clk_o     // clock of the block; stands still while it sleeps
);

  if (Rest < 2) begin : gen_bad_rest
    $fatal(1, "npu_block_clock: Rest = %0d, must be at least 2", Rest);
  end

  logic awake;
  logic [Rest-1:0] rest_q;  // the cycles before; of no matter before a reset

  assign awake = awake_i || !rst_ni;

  always_ff @(posedge clk_i) rest_q <= {rest_q[Rest-2:0], awake};

  npu_clock_gate u_gate (
    .clk_i,
    .enable_i(awake || rest_q != '0),
    .clk_o
  );

endmodule
