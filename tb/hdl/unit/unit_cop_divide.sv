// SPDX-License-Identifier: Apache-2.0
//
// Bench of the quotients. Operation 0 is an element, 1 a divisor, which has no result and waits until
// no element is inside.

module unit_cop_divide;

  unit_elements_if bench ();

  unit_elements u_elements (.bench);

  logic loads, element_ready;
  npu_cop_float_pkg::float_t result;

  assign loads = bench.element.choice == 8'd1;
  assign bench.ready = loads || element_ready;
  assign bench.result = 64'(result);

  npu_cop_divide u_divide (
    .clk_i    (bench.clk),
    .rst_ni   (bench.rst_n),
    .clear_i  (bench.clear),
    .load_i   (bench.valid && loads),
    .divisor_i(bench.element.a),
    .valid_i  (bench.valid && !loads),
    .ready_o  (element_ready),
    .a_i      (bench.element.a),
    .valid_o  (bench.result_valid),
    .ready_i  (bench.result_ready),
    .y_o      (result)
  );

endmodule
