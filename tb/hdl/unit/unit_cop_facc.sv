// SPDX-License-Identifier: Apache-2.0
//
// Bench of the double accumulator. Operation 0 is a term, which has a result where it answers: the sum
// once the term is in it; 1 sets the sum to {b, a}; 2 narrows the sum to float32 for its result.

module unit_cop_facc;

  unit_elements_if bench ();

  unit_elements u_elements (.bench);

  logic term_ready, idle, asked_q, narrows_q;
  npu_cop_float_pkg::double_t sum;

  assign bench.ready = !asked_q && (bench.element.choice == 8'd0 ? term_ready : idle);
  assign bench.result_valid = asked_q && idle;

  always_ff @(posedge bench.clk) begin
    if (!bench.rst_n || bench.clear) asked_q <= 1'b0;
    else if (bench.valid && bench.ready) asked_q <= bench.element.answers;
    else if (bench.result_valid && bench.result_ready) asked_q <= 1'b0;
    if (bench.valid && bench.ready) narrows_q <= bench.element.choice == 8'd2;
  end

  assign bench.result = narrows_q ? 64'(npu_cop_float_pkg::narrow(sum)) : sum;

  npu_cop_facc u_facc (
    .clk_i      (bench.clk),
    .rst_ni     (bench.rst_n),
    .clear_i    (bench.clear),
    .load_i     (bench.valid && bench.ready && bench.element.choice == 8'd1),
    .value_i    ({bench.element.b, bench.element.a}),
    .valid_i    (bench.valid && !asked_q && bench.element.choice == 8'd0),
    .ready_o    (term_ready),
    .a_i        (bench.element.a),
    .b_i        (bench.element.b),
    .idle_o     (idle),
    .idle_next_o(),
    .value_o    (sum)
  );

endmodule
