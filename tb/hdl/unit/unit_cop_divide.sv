// SPDX-License-Identifier: Apache-2.0
//
// Bench of the quotients, with the lane that multiplies and rounds. Operation 0 is an element, 1 a
// divisor, which has no result and waits until no element is inside.

module unit_cop_divide;

  import npu_cop_float_pkg::*;

  unit_elements_if bench ();

  unit_elements u_elements (.bench);

  logic loads, divide_ready, lane_ready;
  unrounded_t dividend;
  logic [50:0] reciprocal;
  float_t result;

  assign loads = bench.element.choice == 8'd1;
  assign bench.ready = loads || (divide_ready && lane_ready);
  assign bench.result = 64'(result);

  npu_cop_divide u_divide (
    .clk_i       (bench.clk),
    .rst_ni      (bench.rst_n),
    .clear_i     (bench.clear),
    .load_i      (bench.valid && loads),
    .divisor_i   (bench.element.a),
    .ready_o     (divide_ready),
    .reciprocal_o(reciprocal),
    .a_i         (bench.element.a),
    .dividend_o  (dividend)
  );

  npu_cop_lane #(
    .Divides(1'b1)
  ) u_lane (
    .clk_i       (bench.clk),
    .rst_ni      (bench.rst_n),
    .clear_i     (bench.clear),
    .valid_i     (bench.valid && !loads && divide_ready),
    .ready_o     (lane_ready),
    .op_i        (LaneDiv),
    .a_i         (bench.element.a),
    .b_i         ('0),
    .dividend_i  (dividend),
    .reciprocal_i(reciprocal),
    .valid_o     (bench.result_valid),
    .ready_i     (bench.result_ready),
    .y_o         (result)
  );

endmodule
