// SPDX-License-Identifier: Apache-2.0
//
// exp of float32 and of Q16.16 numbers and GELU of float32, correctly rounded for every operand, in
// order: an exp every six cycles, 34 after its operand; a GELU every fifteen, 46 after it.
//
//   exp(x)  = 2^n * 2^f       with x * log2(e) = n + f; 2^f by two tables and a polynomial
//   GELU(x) = x * exp(-x^2/2) * M(-x)       for x < 0, with M(u) = erfcx(u / sqrt 2) / 2, piecewise
//             x * (1 - exp(-x^2/2) * M(x))  for x > 0   polynomials: no difference cancels
//
// The error is below 2^-58 of a result. No operand's result is nearer to a boundary than 2^-53:
// `npu cop-sweep` looks at all of them with a model of these modules.

module npu_cop_func (
  input logic clk_i,   // clock
  input logic rst_ni,  // reset, active low
  input logic clear_i, // drops what is inside

  input logic valid_i,  // may be withdrawn
  output logic ready_o,  // whether the operand is taken
  input npu_cop_float_pkg::func_e func_i,  // with valid_i
  input logic [31:0] x_i,  // with valid_i

  output logic valid_o,  // stays until ready_i
  input logic ready_i,  // takes the result
  output logic [31:0] y_o  // with valid_o
);

  import npu_cop_func_pkg::*;

  logic advance, front_ready, empty;
  logic ratio_valid, ratio_ready, power_valid, power_ready, raw_valid;
  step_t ratio, power;
  outcome_t outcome;
  logic [31:0] raw;

  assign advance = ready_i || !valid_o;
  assign ready_o = advance && front_ready;

  npu_cop_func_front u_front (
    .clk_i        (clk_i),
    .rst_ni       (rst_ni),
    .clear_i      (clear_i),
    .advance_i    (advance),
    .valid_i      (valid_i),
    .ready_o      (front_ready),
    .func_i       (func_i),
    .x_i          (x_i),
    .empty_i      (empty),
    .ratio_valid_o(ratio_valid),
    .ratio_ready_i(ratio_ready),
    .ratio_o      (ratio),
    .power_valid_o(power_valid),
    .power_ready_i(power_ready),
    .power_o      (power)
  );

  npu_cop_func_ring u_ring (
    .clk_i        (clk_i),
    .rst_ni       (rst_ni),
    .clear_i      (clear_i),
    .advance_i    (advance),
    .ratio_valid_i(ratio_valid),
    .ratio_ready_o(ratio_ready),
    .ratio_i      (ratio),
    .power_valid_i(power_valid),
    .power_ready_o(power_ready),
    .power_i      (power),
    .empty_o      (empty),
    .valid_o      (raw_valid),
    .outcome_o    (outcome),
    .value_o      (raw)
  );

  npu_cop_func_round u_round (
    .clk_i    (clk_i),
    .rst_ni   (rst_ni),
    .clear_i  (clear_i),
    .advance_i(advance),
    .valid_i  (raw_valid),
    .outcome_i(outcome),
    .value_i  (raw),
    .valid_o  (valid_o),
    .y_o      (y_o)
  );

endmodule
