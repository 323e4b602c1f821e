// SPDX-License-Identifier: Apache-2.0
//
// Measures one kind of wait for the memory: `expired_o` rises when `waiting_i` has been high for
// `limit_i` cycles in a row and falls with it. A limit of zero never expires.

module npu_mem_timer (
  input logic clk_i,  // clock
  input logic rst_ni, // reset, active low

  input  logic        waiting_i,  // a level: the wait lasts; a cycle without it ends the count
  input  logic [23:0] limit_i,    // cycles; 0: never; may change at any time
  output logic        expired_o   // after limit_i cycles of waiting_i, in its cycle; a level
);

  logic [23:0] cycles_q;

  assign expired_o = waiting_i && limit_i != '0 && cycles_q >= limit_i;

  always_ff @(posedge clk_i) begin
    if (!rst_ni) cycles_q <= '0;
    else if (!waiting_i) cycles_q <= '0;
    else if (!expired_o) cycles_q <= cycles_q + 1'b1;
  end

endmodule
