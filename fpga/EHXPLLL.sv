// SPDX-License-Identifier: Apache-2.0
//
// Stands for the PLL of an ECP5 where there is none: a simulator, whose clock is that of the chip.

module EHXPLLL #(
  parameter int CLKI_DIV = 1,  // as Lattice has them
  parameter int CLKFB_DIV = 1,
  parameter int CLKOP_DIV = 8,
  parameter int CLKOP_CPHASE = 0,
  parameter string CLKOP_ENABLE = "ENABLED",
  parameter string FEEDBK_PATH = "CLKOP"
) (
  input logic CLKI,  // clock in
  input logic CLKFB,  // clock that is kept in step with it
  input logic RST,  // begins again
  input logic STDBY,  // stands still
  input logic PHASESEL0,  // of moving its phase, which nobody does
  input logic PHASESEL1,
  input logic PHASEDIR,
  input logic PHASESTEP,
  input logic PHASELOADREG,
  input logic PLLWAKESYNC,
  input logic ENCLKOP,  // gates it
  output logic CLKOP,  // clock out
  output logic LOCK  // it is steady
);

  assign CLKOP = CLKI;
  assign LOCK  = !RST && !STDBY;

endmodule
