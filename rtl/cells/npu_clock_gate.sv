// SPDX-License-Identifier: Apache-2.0
//
// Clock gate: the clock without the cycles in which it is not wanted. The enable of a cycle counts
// when the cycle ends, with the rising edge; until then it may change as it likes. A technology has
// a cell for this, and this file is the one to replace: with that cell, or, where clocks must not be
// gated, with a wire, for every block behind a gate works as well with a clock that never stops.

module npu_clock_gate (
  input  logic clk_i,     // clock
  input  logic enable_i,  // a level: the cycle ends with an edge of clk_o
  output logic clk_o      // clock without some of its pulses
);

  logic enable_q;

  always_latch begin
    if (!clk_i) enable_q = enable_i;
  end

  assign clk_o = clk_i && enable_q;

endmodule
