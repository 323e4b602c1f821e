// SPDX-License-Identifier: Apache-2.0
//
// Bench of a lane of float32 operations. The operation is that of `lane_op_e`.

module unit_cop_lane;

  unit_elements_if bench ();

  unit_elements u_elements (.bench);

  npu_cop_float_pkg::float_t result;

  assign bench.result = 64'(result);

  npu_cop_lane u_lane (
    .clk_i       (bench.clk),
    .rst_ni      (bench.rst_n),
    .clear_i     (bench.clear),
    .valid_i     (bench.valid),
    .ready_o     (bench.ready),
    .op_i        (npu_cop_float_pkg::lane_op_e'(bench.element.choice[2:0])),
    .a_i         (bench.element.a),
    .b_i         (bench.element.b),
    .dividend_i  ('0),
    .reciprocal_i('0),
    .valid_o     (bench.result_valid),
    .ready_i     (bench.result_ready),
    .y_o         (result)
  );

endmodule
