// SPDX-License-Identifier: Apache-2.0
//
// Bench of the quotients. Operation 0 is an element, 1 a divisor, which has no result and waits until
// no element is inside.

module unit_cop_divide;

  logic clk, rst_n, start, ended;
  unit_pkg::world_t   world;
  unit_pkg::program_t played;
  unit_pkg::element_t element;
  logic clear, valid, ready, result_valid, result_ready;
  logic loads, element_ready;
  npu_cop_float_pkg::float_t result;

  assign loads = element.choice == 8'd1;
  assign ready = loads || element_ready;

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

  npu_cop_divide u_divide (
    .clk_i    (clk),
    .rst_ni   (rst_n),
    .clear_i  (clear),
    .load_i   (valid && loads),
    .divisor_i(element.a),
    .valid_i  (valid && !loads),
    .ready_o  (element_ready),
    .a_i      (element.a),
    .valid_o  (result_valid),
    .ready_i  (result_ready),
    .y_o      (result)
  );

endmodule
