// SPDX-License-Identifier: Apache-2.0
//
// What makes an instruction illegal by itself: opcode, fields, dimensions, in this order. For legal
// ones it lists the products that the remaining checks need: the ends of the SRAM operands, the
// bytes taken from the stream, the span in memory. Combinational.

module npu_legal
  import npu_pkg::*;
  import npu_isa_pkg::*;
  import npu_seq_pkg::*;
#(
  parameter int unsigned ArrayDim = 16,
  parameter int unsigned AccRows  = 128,
  parameter int unsigned NormMax  = 8192
) (
  input  instr_t  word_i,
  input  logic    has_prefix_i,
  input  prefix_t prefix_i,

  output error_e    error_o,
  output mem_addr_t error_addr_o,
  output term_t     term_o       [NumTerms],
  output logic      check_heads_o             // M must still be found to be a multiple of K
);

  logic gemm_bad_field, gemm_bad_dim;
  term_t gemm_term[NumTerms];

  npu_legal_gemm #(
    .ArrayDim(ArrayDim),
    .AccRows (AccRows)
  ) u_gemm (
    .word_i,
    .has_prefix_i,
    .prefix_i,
    .bad_field_o(gemm_bad_field),
    .bad_dim_o  (gemm_bad_dim),
    .term_o     (gemm_term)
  );

  logic bad_common, bad_field, bad_dim, bad_value;
  logic [7:0] prefix_used, prefix_extra;  // prefix fields not zero, and those also not allowed
  logic bad_prefix;
  logic [127:0] bits, spare_set;  // the word, its bits that must be zero and are not
  logic [31:0] value;
  vec_imm_t vec;
  softmax_imm_t smx;
  layernorm_imm_t nrm;
  logic vec_binary, vec_table_sram;

  assign bits = word_i;
  assign value = {word_i.src1, word_i.src0};
  assign vec = vec_imm_t'(word_i.imm);
  assign smx = softmax_imm_t'(word_i.imm);
  assign nrm = layernorm_imm_t'(word_i.imm);
  assign vec_binary = vec.op inside {VecAdd, VecSub, VecMul};
  assign vec_table_sram = vec.op == VecTable && !vec.stream;
  assign prefix_used = {
    prefix_i.sh != '0,
    prefix_i.mul != '0,
    prefix_i.base != '0,
    prefix_i.dp != '0,
    prefix_i.d != '0,
    prefix_i.bp != '0,
    prefix_i.ap != '0,
    prefix_i.cp != '0
  };
  // What holds for every form of an opcode comes from the table of the instruction set.
  assign spare_set = bits & spare_bits(word_i.opcode);
  assign prefix_extra = prefix_used & ~prefix_fields(word_i.opcode);
  assign bad_prefix = prefix_extra != '0 || (has_prefix_i && !takes_prefix(word_i.opcode));
  assign bad_common = spare_set != '0 || bad_prefix;

  function automatic logic bad_extent(dim_t x);
    return x == '0 || x >= DynamicDim;
  endfunction

  // A matrix operand: rows at a pitch, the last of them `words` long
  function automatic term_t matrix(sram_addr_t start, dim_t rows, sram_addr_t pitch,
                                   logic [15:0] words);
    return '{1'b1, 17'(rows) - 1'b1, 20'(pitch_or(pitch, words)), 20'(words), start};
  endfunction

  always_comb begin
    bad_field     = 1'b0;
    bad_dim       = 1'b0;
    bad_value     = 1'b0;
    check_heads_o = 1'b0;
    for (int unsigned t = 0; t < NumTerms; t++) term_o[t] = '0;

    unique case (word_i.opcode)
      OpDmaLoad, OpDmaStore: begin
        bad_dim = bad_extent(word_i.m) || bad_extent(word_i.n);
        term_o[0] = matrix(word_i.dst, word_i.m, prefix_i.cp, words_of({2'b0, word_i.n}));
        term_o[TermSpan] = '{
            1'b1,
            17'(word_i.m) - 1'b1,
            (word_i.k == '0) ? 20'({words_of({2'b0, word_i.n}), 4'b0}) : {word_i.k, 4'b0},
            20'(word_i.n),
            '0
        };
      end

      OpGemm: begin
        bad_field = gemm_bad_field;
        bad_dim   = gemm_bad_dim;
        term_o    = gemm_term;
      end

      OpVec: begin
        bad_field = vec.op > 4'(VecTable) || (prefix_i.bp != '0 && !vec_binary);
        bad_field |= vec.a16 != vec.c16 && vec.op != VecScaleShift;
        bad_field |= vec.op == VecTable && vec.a16;
        bad_field |= vec.stream && vec.op != VecTable;
        bad_field |= vec.sh != '0 && !(vec.op inside {VecMul, VecScaleShift});
        bad_field |= word_i.src1 != '0 && !(vec_binary || vec.op == VecClamp || vec_table_sram);
        bad_field |= word_i.k != '0 && !(vec.op inside {VecScaleShift, VecClamp});
        bad_dim = bad_extent(word_i.m) || bad_extent(word_i.n);
        term_o[0] =
            matrix(word_i.dst, word_i.m, prefix_i.cp, words_of(row_bytes(word_i.n, vec.c16)));
        term_o[1] =
            matrix(word_i.src0, word_i.m, prefix_i.ap, words_of(row_bytes(word_i.n, vec.a16)));
        if (vec_binary) begin
          term_o[2] =
              matrix(word_i.src1, word_i.m, prefix_i.bp, words_of(row_bytes(word_i.n, vec.a16)));
        end else if (vec_table_sram) begin
          term_o[2] = matrix(word_i.src1, 16'd1, '0, 16'd16);
        end
        if (vec.stream) term_o[TermShare] = '{1'b1, '0, '0, 20'd4, '0};
      end

      OpSoftmax: begin
        bad_field = smx.out == 2'd3 || (smx.out == 2'd0 && word_i.src1 != '0);
        bad_dim = bad_extent(word_i.m) || bad_extent(word_i.n) || word_i.k >= DynamicDim;
        check_heads_o = word_i.k != '0 && word_i.k != word_i.m;
        term_o[0] = matrix(word_i.dst, word_i.m, prefix_i.cp,
                           words_of(row_bytes(up16(word_i.n), smx.out == 2'd2)));
        term_o[1] =
            matrix(word_i.src0, word_i.m, prefix_i.ap, words_of(row_bytes(word_i.n, !smx.score8)));
        if (smx.out != 2'd0) term_o[2] = matrix(word_i.src1, word_i.m, 16'd1, 16'd1);
      end

      OpLayernorm: begin
        bad_field = nrm.stream && word_i.src1 != '0;
        bad_dim = bad_extent(word_i.m) || bad_extent(word_i.n) || word_i.n > dim_t'(NormMax);
        term_o[0] =
            matrix(word_i.dst, word_i.m, prefix_i.cp, words_of(row_bytes(word_i.n, nrm.out16)));
        term_o[1] = matrix(word_i.src0, word_i.m, prefix_i.ap, words_of(row_bytes(word_i.n, 1'b1)));
        if (nrm.stream) begin
          term_o[TermShare] = '{1'b1, '0, '0, 20'd1 + 20'(up16(word_i.n) >> 4), '0};
        end else begin
          term_o[2] = matrix(word_i.src1, 16'd1, '0, 16'd4 + 16'(up16(word_i.n) >> 2));
        end
      end

      OpGelu: begin
        bad_field = word_i.imm[0] && word_i.src1 != '0;
        bad_dim   = bad_extent(word_i.m) || bad_extent(word_i.n);
        term_o[0] = matrix(word_i.dst, word_i.m, prefix_i.cp, words_of({2'b0, word_i.n}));
        term_o[1] = matrix(word_i.src0, word_i.m, prefix_i.ap, words_of({2'b0, word_i.n}));
        if (word_i.imm[0]) term_o[TermShare] = '{1'b1, '0, '0, 20'd4, '0};
        else term_o[2] = matrix(word_i.src1, 16'd1, '0, 16'd16);
      end

      OpBarrier: bad_field = word_i.m[15:6] != '0 || word_i.n > 16'd4;

      OpSet: begin
        if (word_i.dst == SetStream) begin
          bad_field = word_i.flags[FlagAdd];
          bad_value = value[5:0] != '0;
        end else if (word_i.dst >= SetBase0 && word_i.dst <= SetBase7) begin
          bad_value = value[3:0] != '0;
        end else if (word_i.dst != SetPos) begin
          bad_field = 1'b1;
        end
      end

      default: ;
    endcase
  end

  always_comb begin
    error_addr_o = '0;
    if (!is_opcode(word_i.opcode)) error_o = ErrIllegalOpcode;
    else if (bad_common || bad_field) error_o = ErrIllegalField;
    else if (bad_dim) error_o = ErrBadDimension;
    else if (bad_value) begin
      error_o      = ErrBadAddress;
      error_addr_o = value;
    end else error_o = ErrNone;
  end

endmodule
