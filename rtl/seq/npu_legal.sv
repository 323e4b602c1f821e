// SPDX-License-Identifier: Apache-2.0
//
// What makes an instruction illegal by itself: opcode, fields, dimensions, in this order. For legal
// ones it lists the products that the remaining checks need: the ends of the SRAM operands, the
// bytes taken from the stream, the span in memory. Words of the sequencer itself need none; what is
// wrong with them is known earlier. Combinational.

module npu_legal
  import npu_pkg::*;
  import npu_isa_pkg::*;
  import npu_seq_pkg::*;
#(
  parameter int unsigned ArrayDim = 16,  // rows and columns of the systolic array: 4, 8, 16 or 32
  // Rows of an accumulator bank, a power of two of at least 4
  parameter int unsigned AccRows = 128,
  // Longest norm row in columns, a multiple of 16 from 32 to 8192
  parameter int unsigned NormMax = 8192,
  // Formats of weights in the stream other than int8
  parameter bit NarrowFormats = 1'b1
) (
  input instr_t         word_i,        // an instruction
  input logic           has_prefix_i,  // a prefix belongs to it
  input prefix_t        prefix_i,      // that prefix, zero without one
  input sizes_t         sizes_i,       // of word_i
  input logic    [31:0] length_i,      // words of the program

  output error_e error_o,  // the first error in that order; ErrNone: legal
  output logic bad_o,  // there is one
  output error_e own_error_o,  // the same of SET, LOOP, BARRIER, NOP, END and PFX
  output mem_addr_t error_addr_o,  // value that SET may not take, else zero
  // Products to form, without an error; no meaning with one
  output term_t term_o[NumTerms],
  // SOFTMAX: M must still be found to be a multiple of K
  output logic check_heads_o,
  // GEMM: lines of A must still be found to leave no rest
  output logic check_lines_o,
  output logic [16:0] lines_rest_o  // zero where lines are whole tiles and together a row
);

  localparam int unsigned Edge = tile_edge(ArrayDim);
  localparam logic [15:0] TableWords = 16'(TableBytes / WordBytes);
  localparam logic [19:0] TableLines = 20'(TableBytes / LineBytes);

  logic gemm_bad_field, gemm_bad_dim;
  term_t gemm_term  [NumTerms];
  logic  gemm_lined;

  npu_legal_gemm #(
    .ArrayDim(ArrayDim),
    .AccRows(AccRows),
    .NarrowFormats(NarrowFormats)
  ) u_gemm (
    .word_i,
    .has_prefix_i,
    .prefix_i,
    .sizes_i,
    .bad_field_o(gemm_bad_field),
    .bad_dim_o  (gemm_bad_dim),
    .lined_o    (gemm_lined),
    .rest_o     (lines_rest_o),
    .term_o     (gemm_term)
  );

  logic bad_common, bad_own, bad_field, bad_dim, bad_value, is_set, wrong_field, wrong_dim;
  logic [7:0] prefix_used, prefix_extra;  // prefix fields not zero, and those also not allowed
  logic bad_prefix;
  logic [127:0] bits, spare_set;  // the word, its bits that must be zero and are not
  logic [31:0] value;
  vec_imm_t vec;
  softmax_imm_t smx;
  layernorm_imm_t nrm;
  gelu_imm_t lookup;
  kv_append_imm_t kv;
  embed_imm_t embed;
  logic [16:0] heads;
  logic vec_table_sram, staged;
  dim_t m, n;  // the largest that they may be
  logic [15:0] n_words, smx_words;

  assign bits = word_i;
  assign value = {word_i.src1, word_i.src0};
  assign vec = vec_imm_t'(word_i.imm);
  assign smx = softmax_imm_t'(word_i.imm);
  assign nrm = layernorm_imm_t'(word_i.imm);
  assign lookup = gelu_imm_t'(word_i.imm);
  assign kv = kv_append_imm_t'(word_i.imm);
  assign embed = embed_imm_t'(word_i.imm);
  assign heads = 17'(kv.heads_minus_1) + 1'b1;
  assign smx_words = words_of(row_bytes(up16(n), smx.out == SmxOutNumer16));
  assign staged = word_i.flags[FlagStage];
  assign m = sizes_i.m;
  assign n = sizes_i.n;
  assign n_words = words_of({2'b0, n});
  assign vec_table_sram = vec_table(vec.op) && !vec.stream;
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
  assign bad_common = spare_set != '0 || bad_prefix || !has_legal_values(word_i);

  // A dimension that must be a number
  function automatic logic bad_number(dim_t x);
    return x == '0 || x >= Dynamic;
  endfunction

  // A matrix operand: rows at a pitch, the last of them `words` long
  function automatic term_t matrix(sram_addr_t start, dim_t rows, sram_addr_t pitch,
                                   logic [15:0] words);
    sram_addr_t given;
    given = pitch_or(pitch, words);
    return range_term(17'(rows) - 1'b1, 20'(given), 20'(words), start);
  endfunction

  // The same with the span as the length of a row
  function automatic term_t long_rows(sram_addr_t start, dim_t rows, sram_addr_t pitch);
    return '{1'b1, 1'b1, pitch == '0, 17'(rows) - 1'b1, 20'(pitch), '0, start};
  endfunction

  function automatic term_t product(logic [16:0] a, logic [19:0] b, logic [19:0] c);
    return range_term(a, b, c, '0);
  endfunction

  // Words of norm parameters behind their first 64 bytes, in units of 64 bytes
  logic [11:0] param_blocks;
  assign param_blocks = n_words[11:0];

  always_comb begin
    bad_field     = 1'b0;
    bad_dim       = 1'b0;
    check_heads_o = 1'b0;
    for (int unsigned t = 0; t < NumTerms; t++) term_o[t] = '0;

    unique case (word_i.opcode)
      OpDmaLoad, OpDmaStore: begin
        bad_dim = bad_number(word_i.m) || bad_number(word_i.n);
        term_o[TermRange] = matrix(word_i.dst, m, prefix_i.cp, n_words);
        term_o[TermSpan] =
            product(17'(m) - 1'b1, {pitch_or(word_i.k, n_words), 4'b0}, 20'(word_i.n));
      end

      OpEmbed: begin
        bad_field = embed.index != EmbedIndexList && word_i.src0 != '0;
        bad_dim   = bad_number(word_i.m) || bad_number(word_i.n);
        bad_dim |= embed.index == EmbedIndexToken && word_i.m != 16'd1;
        term_o[TermRange] = matrix(word_i.dst, m, prefix_i.cp, n_words);
        if (embed.index == EmbedIndexList) begin
          term_o[TermRange+1] = matrix(word_i.src0, 16'd1, '0, words_of({m, 2'b0}));
        end
        term_o[TermSpan] =
            product(17'(m) - 1'b1, {pitch_or(word_i.k, n_words), 4'b0}, 20'(word_i.n));
      end

      OpKvAppend: begin
        bad_field = !staged && (word_i.dst != '0 || word_i.src1 != '0);
        bad_dim = bad_number(word_i.n) || bad_number(word_i.k);
        term_o[TermRange+1] = long_rows(word_i.src0, word_i.k, prefix_i.ap);
        term_o[TermSpan] = product(heads, 20'(n_words), '0);
      end

      OpKvRead: begin
        bad_dim = bad_number(word_i.n) || word_i.k == '0;
        term_o[TermRange] = long_rows(word_i.dst, 16'(heads), prefix_i.cp);
        term_o[TermSpan] = product(sizes_i.tiles_k, 20'(tile_row_words(word_i.n, Edge)), '0);
      end

      OpGemm: begin
        term_o = gemm_term;
      end

      OpVec: begin
        bad_field = prefix_i.bp != '0 && !vec_two(vec.op);
        bad_field |= vec.a16 != vec.c16 && !vec_converts(vec.op);
        bad_field |= (vec.a16 || vec.c16) && !vec_wide(vec.op);
        bad_field |= vec.stream && !vec_table(vec.op);
        bad_field |= vec.sh != '0 && !vec_shift(vec.op);
        bad_field |= word_i.src1 != '0 && !(vec_two(vec.op) || vec_bound(vec.op) || vec_table_sram);
        bad_field |= word_i.k != '0 && !vec_k(vec.op);
        bad_dim = word_i.m == '0 || bad_number(word_i.n);
        term_o[TermRange] = matrix(word_i.dst, m, prefix_i.cp, words_of(row_bytes(n, vec.c16)));
        term_o[TermRange+1] = matrix(word_i.src0, m, prefix_i.ap, words_of(row_bytes(n, vec.a16)));
        if (vec_two(vec.op)) begin
          term_o[TermRange+2] =
              matrix(word_i.src1, m, prefix_i.bp, words_of(row_bytes(n, vec.a16)));
        end else if (vec_table_sram) begin
          term_o[TermRange+2] = matrix(word_i.src1, 16'd1, '0, TableWords);
        end
        if (vec.stream) term_o[TermShare] = product('0, '0, TableLines);
      end

      OpSoftmax: begin
        bad_field = smx.out == SmxOutProb8 && word_i.src1 != '0;
        bad_dim = word_i.m == '0 || word_i.n == '0 || word_i.k >= Dynamic;
        check_heads_o = word_i.k != '0 && word_i.k != word_i.m && word_i.m < Dynamic;
        term_o[TermRange] = matrix(word_i.dst, m, prefix_i.cp, smx_words);
        term_o[TermRange+1] =
            matrix(word_i.src0, m, prefix_i.ap, words_of(row_bytes(n, !smx.score8)));
        if (smx.out != SmxOutProb8) term_o[TermRange+2] = matrix(word_i.src1, m, 16'd1, 16'd1);
      end

      OpLayernorm, OpRmsnorm: begin
        bad_field = nrm.stream && word_i.src1 != '0;
        bad_dim = word_i.m == '0 || bad_number(word_i.n) || word_i.n > dim_t'(NormMax);
        term_o[TermRange] = matrix(word_i.dst, m, prefix_i.cp, words_of(row_bytes(n, nrm.out16)));
        term_o[TermRange+1] = matrix(word_i.src0, m, prefix_i.ap, words_of(row_bytes(n, 1'b1)));
        if (nrm.stream) begin
          term_o[TermShare] = product('0, '0, 20'd1 + 20'(param_blocks));
        end else begin
          term_o[TermRange+2] = matrix(word_i.src1, 16'd1, '0, 16'd4 + {2'b0, param_blocks, 2'b0});
        end
      end

      OpRope: begin
        bad_dim = word_i.m == '0 || bad_number(word_i.n) || bad_number(word_i.k) || word_i.n[0];
        term_o[TermRange] = long_rows(word_i.dst, m, prefix_i.cp);
        term_o[TermRange+1] = long_rows(word_i.src0, m, prefix_i.ap);
        term_o[TermRange+2] = matrix(word_i.src1, m, prefix_i.bp, words_of(row_bytes(n, 1'b1)));
        term_o[TermSpan] = product(17'(word_i.k), 20'(n_words), '0);
      end

      OpGelu, OpSilu: begin
        bad_field = lookup.stream && word_i.src1 != '0;
        bad_dim = word_i.m == '0 || bad_number(word_i.n);
        term_o[TermRange] = matrix(word_i.dst, m, prefix_i.cp, n_words);
        term_o[TermRange+1] = matrix(word_i.src0, m, prefix_i.ap, n_words);
        if (lookup.stream) term_o[TermShare] = product('0, '0, TableLines);
        else term_o[TermRange+2] = matrix(word_i.src1, 16'd1, '0, TableWords);
      end

      default: ;
    endcase
    if (word_i.opcode inside {OpKvAppend, OpKvRead}) begin
      bad_field |= prefix_i.base[$clog2(Edge)-1:0] != '0;
    end
  end

  assign check_lines_o = word_i.opcode == OpGemm && gemm_lined;

  assign is_set = word_i.opcode == OpSet;

  always_comb begin
    bad_own = word_i.opcode == OpBarrier && (word_i.m[15:6] != '0 || word_i.n > BarrierMost);
    bad_own |= word_i.opcode == OpLoop && value >= length_i;
    bad_own |= is_set && !is_set_register(word_i.dst);
    bad_own |= is_set && word_i.flags[FlagAdd] && !set_adds(word_i.dst);
    bad_value   = is_set && (value & set_spare_bits(word_i.dst)) != '0;

    own_error_o = ErrNone;
    if (bad_common || bad_own) own_error_o = ErrIllegalField;
    else if (bad_value) own_error_o = ErrBadAddress;
    error_addr_o = (own_error_o == ErrBadAddress) ? value : '0;
  end

  assign wrong_field = bad_field || (word_i.opcode == OpGemm && gemm_bad_field);
  assign wrong_dim   = bad_dim || (word_i.opcode == OpGemm && gemm_bad_dim);

  always_comb begin
    if (!is_opcode(word_i.opcode)) error_o = ErrIllegalOpcode;
    else if (own_error_o == ErrIllegalField || wrong_field) error_o = ErrIllegalField;
    else if (wrong_dim) error_o = ErrBadDimension;
    else error_o = own_error_o;
  end
  assign bad_o = !is_opcode(word_i.opcode) || own_error_o != ErrNone || wrong_field || wrong_dim;

endmodule
