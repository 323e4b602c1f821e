// SPDX-License-Identifier: Apache-2.0
//
// Bench of the reciprocal roots. The operation is that of `root_op_e`.

module unit_cop_root;

  unit_elements_if bench ();

  unit_elements u_elements (.bench);

  logic [31:0] result;

  assign bench.result = 64'(result);

  npu_cop_root u_root (
    .clk_i  (bench.clk),
    .rst_ni (bench.rst_n),
    .clear_i(bench.clear),
    .valid_i(bench.valid),
    .ready_o(bench.ready),
    .op_i   (npu_cop_float_pkg::root_op_e'(bench.element.choice[0])),
    .x_i    (bench.element.a),
    .valid_o(bench.result_valid),
    .ready_i(bench.result_ready),
    .y_o    (result)
  );

endmodule
