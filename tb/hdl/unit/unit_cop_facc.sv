// SPDX-License-Identifier: Apache-2.0
//
// Bench of the double accumulator. Operation 0 is a term, which has a result where it answers: the sum
// once the term is in it; 1 sets the sum to {b, a}; 2 narrows the sum to float32 for its result.

module unit_cop_facc;

  logic clk, rst_n, start, ended;
  unit_pkg::world_t   world;
  unit_pkg::program_t played;
  unit_pkg::element_t element;
  logic clear, valid, ready, result_valid, result_ready;
  logic term_ready, idle, asked_q, narrows_q;
  npu_cop_float_pkg::double_t sum;

  unit_control u_control (
    .clk_o    (clk),
    .rst_no   (rst_n),
    .world_o  (world),
    .program_o(played),
    .start_o  (start),
    .end_i    (ended)
  );

  assign ready = !asked_q && (element.choice == 8'd0 ? term_ready : idle);
  assign result_valid = asked_q && idle;

  always_ff @(posedge clk) begin
    if (!rst_n || clear) asked_q <= 1'b0;
    else if (valid && ready) asked_q <= element.answers;
    else if (result_valid && result_ready) asked_q <= 1'b0;
    if (valid && ready) narrows_q <= element.choice == 8'd2;
  end

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
    .result_i (narrows_q ? 64'(npu_cop_float_pkg::narrow(sum)) : sum)
  );

  npu_cop_facc u_facc (
    .clk_i  (clk),
    .rst_ni (rst_n),
    .clear_i(clear),
    .load_i (valid && ready && element.choice == 8'd1),
    .value_i({element.b, element.a}),
    .valid_i(valid && !asked_q && element.choice == 8'd0),
    .ready_o(term_ready),
    .a_i    (element.a),
    .b_i    (element.b),
    .idle_o (idle),
    .value_o(sum)
  );

endmodule
