// SPDX-License-Identifier: Apache-2.0
//
// Bench of the checks of GEMM, of chips with and without narrow formats. `a` is what stands in the
// field imm, the low byte of `b` the flags; the result has a bit for a chip that refuses a field, the
// one without narrow formats in bit 0.

module unit_legal_gemm
  import npu_pkg::*;
  import npu_isa_pkg::*;
  import npu_seq_pkg::*;
#(
  parameter int unsigned ArrayDim = 16  // rows and columns of the systolic array: 4, 8, 16 or 32
);

  unit_elements_if bench ();

  unit_elements u_elements (.bench);

  logic [1:0] refused, refused_q;
  logic answered_q, taken;
  instr_t word;

  assign taken = bench.valid && (!answered_q || bench.result_ready);
  assign bench.ready = taken;
  assign bench.result_valid = answered_q;
  assign bench.result = 64'(refused_q);

  always_ff @(posedge bench.clk or negedge bench.rst_n) begin
    if (!bench.rst_n) answered_q <= 1'b0;
    else if (taken) answered_q <= 1'b1;
    else if (bench.result_ready) answered_q <= 1'b0;
  end

  always_ff @(posedge bench.clk) begin
    if (taken) refused_q <= refused;
  end

  always_comb begin
    word                     = '0;
    word.opcode              = OpGemm;
    word.imm                 = bench.element.a[15:0];
    word.flags               = bench.element.b[7:0];
    {word.m, word.n, word.k} = {3{16'd16}};
  end

  for (genvar f = 0; f < 2; f++) begin : gen_chip
    npu_legal_gemm #(
      .ArrayDim     (ArrayDim),
      .NarrowFormats(1'(f))
    ) u_legal (
      .word_i      (word),
      .has_prefix_i(1'b0),
      .prefix_i    ('0),
      .sizes_i     (sizes_of(word, tile_edge(ArrayDim))),
      .bad_field_o (refused[f]),
      .bad_dim_o   (),
      .lined_o     (),
      .rest_o      (),
      .term_o      ()
    );
  end

endmodule
