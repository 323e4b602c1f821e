// SPDX-License-Identifier: Apache-2.0
//
// Bench of a lane of float32 operations. The operation is that of `lane_op_e`.

module unit_cop_lane;

  logic clk, rst_n, start, ended;
  unit_pkg::world_t   world;
  unit_pkg::program_t played;
  unit_pkg::element_t element;
  logic clear, valid, ready, result_valid, result_ready;
  npu_cop_float_pkg::float_t result;

  unit_control u_control (
    .clk_o    (clk),
    .rst_no   (rst_n),
    .world_o  (world),
    .program_o(played),
    .start_o  (start),
    .end_i    (ended)
  );

  unit_elements u_elements (
    .clk_i    (clk),
    .rst_ni   (rst_n),
    .world_i  (world),
    .start_i  (start),
    .count_i  (played.words),
    .end_o    (ended),
    .clear_o  (clear),
    .valid_o  (valid),
    .ready_i  (ready),
    .element_o(element),
    .valid_i  (result_valid),
    .ready_o  (result_ready),
    .result_i (64'(result))
  );

  npu_cop_lane u_lane (
    .clk_i  (clk),
    .rst_ni (rst_n),
    .clear_i(clear),
    .valid_i(valid),
    .ready_o(ready),
    .op_i   (npu_cop_float_pkg::lane_op_e'(element.choice[1:0])),
    .a_i    (element.a),
    .b_i    (element.b),
    .valid_o(result_valid),
    .ready_i(result_ready),
    .y_o    (result)
  );

endmodule
