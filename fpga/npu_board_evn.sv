// SPDX-License-Identifier: Apache-2.0
//
// Top of the ECP5 evaluation board (LFE5UM5G-85F-EVN): a PLL makes the clock of everything out of the
// board's 12 MHz, and the reset ends when it is steady.

module npu_board_evn #(
  parameter int unsigned ArrayDim = 4,  // as npu_board has them
  parameter int unsigned SramKiB = 32,
  parameter int unsigned AccRows = 128,
  parameter int unsigned FifoKiB = 4,
  parameter int unsigned NormMax = 128,
  parameter int unsigned MemoryKiB = 128,
  parameter int unsigned Divisor = 32,
  parameter int unsigned IdleCycles = 1 << 23,
  parameter int unsigned Times = 8,  // clock of everything, in shares of 12 MHz: 24 to 96 MHz
  parameter int unsigned Shares = 3  // that 12 MHz has: 1 to 3, each 3.125 MHz or more
) (
  input  logic       clk_12_i,   // 12 MHz
  input  logic       rst_ni,     // push button, active low; asynchronous
  input  logic       uart_rx_i,  // from the host, asynchronous
  output logic       uart_tx_o,  // to the host
  output logic [1:0] led_no      // lights, active low: the clock is steady; the chip's interrupt
);

  if (Shares < 1 || Shares > 3) begin : gen_bad_shares
    $fatal(1, "npu_board_evn: Shares = %0d, must be 1 to 3", Shares);
  end

  if (Times < 2 * Shares || Times > 8 * Shares) begin : gen_bad_times
    $fatal(1, "npu_board_evn: Times = %0d, must be %0d to %0d", Times, 2 * Shares, 8 * Shares);
  end

  // The oscillator inside runs at 400 to 800 MHz.
  localparam int unsigned Divided = 600 * Shares / (12 * Times);

  logic clk, locked, irq;

  // Filters and charge pump as `ecppll` of Project Trellis chooses them for this oscillator.
  (* FREQUENCY_PIN_CLKI = "12", ICP_CURRENT = "12", LPF_RESISTOR = "8" *)
  (* MFG_ENABLE_FILTEROPAMP = "1", MFG_GMCREF_SEL = "2" *)
  EHXPLLL #(
    .CLKI_DIV(Shares),
    .CLKFB_DIV(Times),
    .CLKOP_DIV(Divided),
    .CLKOP_CPHASE(Divided / 2 - 1),
    .CLKOP_ENABLE("ENABLED"),
    .FEEDBK_PATH("CLKOP")
  ) u_pll (
    .CLKI        (clk_12_i),
    .CLKFB       (clk),
    .RST         (1'b0),
    .STDBY       (1'b0),
    .PHASESEL0   (1'b0),
    .PHASESEL1   (1'b0),
    .PHASEDIR    (1'b1),
    .PHASESTEP   (1'b1),
    .PHASELOADREG(1'b1),
    .PLLWAKESYNC (1'b0),
    .ENCLKOP     (1'b0),
    .CLKOP       (clk),
    .LOCK        (locked)
  );

  npu_board #(
    .ArrayDim(ArrayDim),
    .SramKiB(SramKiB),
    .AccRows(AccRows),
    .FifoKiB(FifoKiB),
    .NormMax(NormMax),
    .MemoryKiB(MemoryKiB),
    .Divisor(Divisor),
    .IdleCycles(IdleCycles)
  ) u_board (
    .clk_i (clk),
    .rst_ni(rst_ni && locked),
    .uart_rx_i,
    .uart_tx_o,
    .irq_o (irq)
  );

  assign led_no = {~irq, ~locked};

endmodule
