// SPDX-License-Identifier: Apache-2.0
//
// Bench of exp and GELU. The operation is that of `func_e`. A result has in its upper half the lowest
// 32 bits of what was rounded to it.

module unit_cop_func;

  logic clk, rst_n, start, ended;
  unit_pkg::world_t   world;
  unit_pkg::program_t played;
  unit_pkg::element_t element;
  logic clear, valid, ready, result_valid, result_ready;
  logic [31:0] result, raw_q;
  logic [31:0] raws[$];

  // What is rounded is on its way to the result: it is looked at inside.
  /* verilator lint_off BLKSEQ */
  always @(posedge clk) begin
    if (!rst_n || clear) begin
      raws.delete();
    end else if (u_func.advance) begin
      if (u_func.raw_valid) raws.push_back(u_func.raw[31:0]);
      if (u_func.u_round.valid_q[1]) raw_q <= raws.pop_front();
    end
  end
  /* verilator lint_on BLKSEQ */

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
    .result_i ({raw_q, result})
  );

  npu_cop_func u_func (
    .clk_i  (clk),
    .rst_ni (rst_n),
    .clear_i(clear),
    .valid_i(valid),
    .ready_o(ready),
    .func_i (npu_cop_float_pkg::func_e'(element.choice[1:0])),
    .x_i    (element.a),
    .valid_o(result_valid),
    .ready_i(result_ready),
    .y_o    (result)
  );

endmodule
