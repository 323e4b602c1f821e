// SPDX-License-Identifier: Apache-2.0
//
// Bench of exp and GELU. The operation is that of `func_e`. A result has in its upper half the lowest
// 32 bits of what was rounded to it.

module unit_cop_func;

  unit_elements_if bench ();

  unit_elements u_elements (.bench);

  logic [31:0] result, raw_q;
  logic [31:0] raws[$];

  // What is rounded is on its way to the result: it is looked at inside.
  /* verilator lint_off BLKSEQ */
  always @(posedge bench.clk) begin
    if (!bench.rst_n || bench.clear) begin
      raws.delete();
    end else if (u_func.advance) begin
      if (u_func.raw_valid) raws.push_back(u_func.u_ring.value[31:0]);
      if (u_func.u_round.valid_q[1]) raw_q <= raws.pop_front();
    end
  end
  /* verilator lint_on BLKSEQ */

  assign bench.result = {raw_q, result};

  npu_cop_func u_func (
    .clk_i  (bench.clk),
    .rst_ni (bench.rst_n),
    .clear_i(bench.clear),
    .valid_i(bench.valid),
    .ready_o(bench.ready),
    .func_i (npu_cop_float_pkg::func_e'(bench.element.choice[1:0])),
    .x_i    (bench.element.a),
    .valid_o(bench.result_valid),
    .ready_i(bench.result_ready),
    .y_o    (result)
  );

endmodule
