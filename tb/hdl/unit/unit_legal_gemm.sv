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

  logic clk, rst_n, start, ended;
  unit_pkg::world_t   world;
  unit_pkg::program_t played;
  unit_pkg::element_t element;
  logic valid, ready, answered_q, taken;

  unit_control u_control (
    .clk_o    (clk),
    .rst_no   (rst_n),
    .world_o  (world),
    .program_o(played),
    .start_o  (start),
    .end_i    (ended)
  );

  logic [1:0] refused, refused_q;
  instr_t word;

  assign taken = valid && (!answered_q || ready);

  unit_elements u_elements (
    .clk_i    (clk),
    .rst_ni   (rst_n),
    .world_i  (world),
    .start_i  (start),
    .count_i  (played.words),
    .end_o    (ended),
    .clear_o  (),
    .valid_o  (valid),
    .ready_i  (taken),
    .element_o(element),
    .valid_i  (answered_q),
    .ready_o  (ready),
    .result_i (64'(refused_q))
  );

  always_ff @(posedge clk or negedge rst_n) begin
    if (!rst_n) answered_q <= 1'b0;
    else if (taken) answered_q <= 1'b1;
    else if (ready) answered_q <= 1'b0;
  end

  always_ff @(posedge clk) begin
    if (taken) refused_q <= refused;
  end

  always_comb begin
    word                     = '0;
    word.opcode              = OpGemm;
    word.imm                 = element.a[15:0];
    word.flags               = element.b[7:0];
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
      .bad_field_o (refused[f]),
      .bad_dim_o   (),
      .term_o      ()
    );
  end

endmodule
