// SPDX-License-Identifier: Apache-2.0
//
// What makes a GEMM illegal beyond the bits that every form must leave zero, and the products that
// its remaining checks need. Combinational.

module npu_legal_gemm
  import npu_pkg::*;
  import npu_isa_pkg::*;
  import npu_seq_pkg::*;
#(
  parameter int unsigned ArrayDim = 16,  // rows and columns of the systolic array: 4, 8, 16 or 32
  // Rows of an accumulator bank, a power of two of at least 4
  parameter int unsigned AccRows = 128,
  parameter bit NarrowFormats = 1'b1  // with formats of the stream other than int8
) (
  input instr_t  word_i,        // an instruction, read as a GEMM
  input logic    has_prefix_i,  // a prefix belongs to it
  input prefix_t prefix_i,      // that prefix, zero without one
  input sizes_t  sizes_i,       // of word_i

  output logic bad_field_o,  // a field of it or of its prefix does not fit its form
  output logic bad_dim_o,  // a dimension is zero, too large or may not be dynamic
  output logic lined_o,  // rows of A are in lines, which must be found to leave no rest
  output logic [16:0] rest_o,  // of lines: zero where they are whole tiles and all of a row
  output term_t term_o[NumTerms]  // products to form; no meaning if either is high
);

  localparam int unsigned Edge = tile_edge(ArrayDim);

  gemm_mode_t mode, said;  // said: of a mode word
  gemm_scale_imm_t scale;  // MODE clear
  logic mode_word, requant, stream, has_d, uses_mul, uses_sums, wide, transpose, no_output;
  logic depthwise, lined;  // lined: rows of A are in lines
  logic dynamic_m, dynamic_n, dynamic_k;
  dim_t m, n, k;  // the largest that they may be
  assign mode      = gemm_mode(word_i);
  assign scale     = gemm_scale_imm_t'(word_i.imm);
  assign mode_word = word_i.flags[FlagMode];
  assign requant   = word_i.flags[FlagRequant];
  assign transpose = word_i.flags[FlagTransposeB] && !stream;
  assign stream    = gemm_stream(mode);
  assign has_d     = gemm_has_d(word_i, mode);
  assign uses_mul  = mode.op == GemmOpMul || (mode_word && requant && mode.q == GemmQPrefix);
  assign uses_sums = mode_word && requant && mode.q == GemmQRow;
  assign wide      = gemm_wide(mode);
  assign no_output = mode.out == GemmOutNone;
  assign said      = gemm_mode_t'(word_i.imm);
  assign depthwise = mode_word && said.depthwise && Edge == ArrayDim;
  assign lined     = stream && !said.depthwise && prefix_i.d != '0;
  assign dynamic_m = word_i.m >= Dynamic;
  assign dynamic_n = word_i.n >= Dynamic;
  assign dynamic_k = word_i.k >= Dynamic;
  assign m         = sizes_i.m;
  assign n         = sizes_i.n;
  assign k         = sizes_i.k;

  // ---------------------------------------------------------------------------------------------
  // Format of B in the stream
  // ---------------------------------------------------------------------------------------------
  weight_format_e format;
  weight_group_e  group;
  logic multiplied, bad_format;
  assign format = gemm_format(mode);
  assign group = gemm_group(word_i);
  assign multiplied = stream && weight_multiplied(format);

  always_comb begin
    bad_format = stream ? !weight_exists(format) : mode.fmt != '0;
    bad_format |= stream && !NarrowFormats && format != WeightFormatInt8;
    bad_format |= stream && !multiplied && group != WeightGroupG32;
    bad_format |= !stream && word_i.flags[FlagGroupHigh];
    bad_format |= multiplied && Edge == 32 && group == WeightGroupG16;
  end

  // ---------------------------------------------------------------------------------------------
  // Fields
  // ---------------------------------------------------------------------------------------------
  logic bad_plain, bad_mode, bad_operand, bad_prefix;

  always_comb begin
    bad_plain = word_i.flags[FlagBiasEn] || (!requant && word_i.imm != '0) ||
                scale.shift > ShiftMax || (!requant && word_i.flags[FlagRelu]);

    bad_mode = mode.argmax && mode.out == GemmOutInt32;
    bad_mode |= said.depthwise && (!gemm_stream(said) || gemm_wide(said) || Edge > ArrayDim);
    bad_mode |= no_output && (!mode.argmax || word_i.dst != '0);
    if (!requant) begin
      bad_mode |= mode.q != GemmQPrefix || mode.out != GemmOutInt32 || word_i.flags[FlagRelu] ||
                  mode.activation || mode.op != GemmOpNone;
    end else begin
      bad_mode |= mode.out == GemmOutInt32;
    end
    bad_mode |= word_i.flags[FlagBiasEn] && !(requant && mode.q == GemmQChannel);
    bad_mode |= word_i.flags[FlagAccumulate] && mode.op != GemmOpNone;
    bad_mode |= mode.op == GemmOpMul &&
                (mode.q inside {GemmQPrefix, GemmQRow} || mode.out != GemmOutInt8);
    bad_mode |= mode.activation && mode.out != GemmOutInt8;

    bad_operand = stream && !has_d && word_i.src1 != '0;
    bad_operand |= has_d && mode_word && !stream && !has_prefix_i;
    bad_operand |= word_i.flags[FlagAccumulate] && mode.out != GemmOutInt32 && gemm_d(
        word_i, mode, has_prefix_i, prefix_i
    ) == word_i.dst;
    bad_operand |= mode_word && requant && mode.q == GemmQPrefix &&
                   (prefix_i.mul == '0 || prefix_i.mul > MultMax);
    bad_operand |= uses_sums && !has_prefix_i;

    bad_prefix = prefix_i.cp != '0 && no_output;
    bad_prefix |= prefix_i.bp != '0 && mode.b_form == GemmBTile;
    bad_prefix |= prefix_i.bp != '0 && stream && !said.depthwise && prefix_i.d == '0;
    bad_prefix |= prefix_i.d != '0 && (stream ? said.depthwise : !has_d);
    bad_prefix |= prefix_i.d != '0 && stream && prefix_i.bp == '0;
    bad_prefix |= prefix_i.d != '0 && stream && gemm_more_lines(prefix_i) == '0;
    bad_prefix |= prefix_i.dp != '0 && !has_d;
    bad_prefix |= prefix_i.mul != '0 && !uses_mul && !uses_sums;
    bad_prefix |= prefix_i.sh != '0 && !uses_mul;
    bad_prefix |= prefix_i.base != '0 && !(dynamic_m || dynamic_n || dynamic_k);
    bad_prefix |= prefix_i.base[$clog2(Edge)-1:0] != '0;

    bad_field_o = (mode_word ? bad_mode : bad_plain) || bad_format || bad_operand || bad_prefix;
  end

  // ---------------------------------------------------------------------------------------------
  // Dimensions
  // ---------------------------------------------------------------------------------------------
  localparam logic [15:0] TileWords = 16'(Edge / 16);  // of an inner tile of 8-bit elements
  logic [15:0] a_words, line, lined_words;  // words of a row of A, of a line, of all lines
  logic [15:0] tile_rest;  // words of an inner tile behind its first
  assign a_words = depthwise ? words_of({2'b0, n}) : words_of(row_bytes(k, wide));
  assign line = gemm_line(prefix_i);
  assign lined_o = lined;
  assign rest_o = {(line & tile_rest) != '0, lined_words - a_words};
  assign tile_rest = (wide ? 2 * TileWords : TileWords) - 1'b1;

  always_comb begin
    unique case (gemm_more_lines(
        prefix_i
    ))
      2'd1:    lined_words = line << 1;
      2'd2:    lined_words = line + (line << 1);
      default: lined_words = line << 2;
    endcase
  end

  localparam int unsigned RowW = $clog2(AccRows);
  logic [16:0] sums;  // rows of an accumulator bank
  assign sums = wide ? {m, 1'b0} : {1'b0, m};

  always_comb begin
    bad_dim_o = word_i.m == '0 || word_i.n == '0 || word_i.k == '0;
    bad_dim_o |= sums[16:RowW+1] != '0 || (sums[RowW] && sums[RowW-1:0] != '0);  // > AccRows
    bad_dim_o |= stream && (dynamic_n || dynamic_k);
    bad_dim_o |= mode_word && mode.q == GemmQChannel && dynamic_n;
    bad_dim_o |= wide && mode.out == GemmOutInt32 && dynamic_m;
    bad_dim_o |= mode.argmax && word_i.m != 16'd1;
    bad_dim_o |= depthwise && !(word_i.k inside {
        16'(Edge), 16'(2 * Edge), 16'(3 * Edge), 16'(GemmLines * Edge)});
  end

  // ---------------------------------------------------------------------------------------------
  // Ranges and share
  // ---------------------------------------------------------------------------------------------
  logic [15:0] c_words, b_words, d_words;
  logic [16:0] n_edge, k_edge;

  assign c_words = words_of(gemm_c_bytes(word_i, mode));
  assign b_words = words_of({2'b0, transpose ? k : n});
  assign d_words = words_of(gemm_d_bytes(word_i, mode));
  assign n_edge  = 17'(32'(sizes_i.tiles_n) * Edge);
  assign k_edge  = 17'(32'(sizes_i.tiles_k) * Edge);

  logic [16:0] c_rows, d_rows;
  assign c_rows = (wide && !requant) ? {m, 1'b0} : {1'b0, m};
  assign d_rows = (wide && word_i.flags[FlagAccumulate]) ? {m, 1'b0} : {1'b0, m};

  sram_addr_t c_pitch, a_pitch, b_pitch, d_pitch, d_start;
  logic [16:0] b_rows;
  assign c_pitch = pitch_or(prefix_i.cp, c_words);
  assign a_pitch = pitch_or(prefix_i.ap, a_words);
  assign b_pitch = pitch_or(prefix_i.bp, b_words);
  assign d_pitch = pitch_or(prefix_i.dp, d_words);
  assign d_start = gemm_d(word_i, mode, has_prefix_i, prefix_i);
  assign b_rows  = {1'b0, transpose ? n : k};

  // Of A: rows, and from the first word of the last one to its end. Lines lie further on, at most
  // three pitches.
  logic [16:0] a_rows;
  logic [19:0] a_last;
  logic [ 1:0] lines;  // behind the first
  assign lines  = depthwise ? 2'(sizes_i.tiles_k - 1'b1) : lined ? gemm_more_lines(prefix_i) : 2'd0;
  assign a_rows = 17'(m) + (depthwise ? 17'(DepthwiseTaps - 1) : 17'd0);
  always_comb begin
    a_last = 20'(lined ? line : a_words) + (lines[0] ? 20'(b_pitch) : 20'd0) +
             (lines[1] ? {3'b0, b_pitch, 1'b0} : 20'd0);
  end

  // Lines of weights, side bytes and planes of a column of tiles: sums of powers of two times the
  // number of tiles. A line of side bytes reaches 64 * G / (Edge * Edge) tiles.
  localparam int unsigned QuarterLog = $clog2(Edge * Edge / LineBytes / 4);
  logic [19:0] tiles, weight_quarters, weight_lines, side_lines, position_lines;
  logic [2:0] reach_log;
  assign tiles = 20'(sizes_i.tiles_k);

  always_comb begin
    unique case (weight_bits(
        format
    ))
      4'd2:    weight_quarters = tiles;
      4'd6:    weight_quarters = tiles + (tiles << 1);
      4'd8:    weight_quarters = tiles << 2;
      default: weight_quarters = tiles << 1;
    endcase
    unique case (group)
      WeightGroupG16:  reach_log = 3'd2;
      WeightGroupG64:  reach_log = (Edge == 16) ? 3'd4 : 3'd2;
      WeightGroupG128: reach_log = (Edge == 16) ? 3'd5 : 3'd3;
      default:         reach_log = (Edge == 16) ? 3'd3 : 3'd1;
    endcase
    weight_lines   = weight_quarters << QuarterLog;
    side_lines     = (tiles + ((20'd1 << reach_log) - 20'd1)) >> reach_log;
    position_lines = (Edge == 16) ? (tiles + 20'd1) >> 1 : tiles << 1;
    if (weight_sparse(format)) begin
      weight_lines = weight_lines + position_lines;
    end else if (multiplied || weight_halved(format)) begin
      weight_lines = weight_lines + side_lines;
    end
  end

  always_comb begin
    for (int unsigned t = 0; t < NumTerms; t++) term_o[t] = '0;

    if (!no_output) begin
      term_o[TermRange] = range_term(c_rows - 1'b1, 20'(c_pitch), 20'(c_words), word_i.dst);
    end
    term_o[TermRange+1] = range_term(a_rows - 1'b1, 20'(a_pitch), a_last, word_i.src0);
    if (mode.b_form == GemmBRowMajor) begin
      term_o[TermRange+2] = range_term(b_rows - 1'b1, 20'(b_pitch), 20'(b_words), word_i.src1);
    end else if (mode.b_form == GemmBTile) begin
      term_o[TermRange+2] = range_term(n_edge, 20'(k_edge >> 4), '0, word_i.src1);
    end
    if (has_d) begin
      term_o[TermRange+3] = range_term(d_rows - 1'b1, 20'(d_pitch), 20'(d_words), d_start);
    end
    if (uses_sums) begin
      term_o[TermRange+4] = range_term(17'(m) - 1'b1, 20'd1, 20'd1, prefix_i.mul);
    end

    // In units of 64 bytes, so that the factor stays short
    term_o[TermShare].valid = 1'b1;
    term_o[TermShare].a     = sizes_i.tiles_n;
    if (requant && mode.q == GemmQChannel) term_o[TermShare].b = 20'(8 * Edge / LineBytes);
    if (stream) begin
      term_o[TermShare].b = term_o[TermShare].b + weight_lines;
    end
    term_o[TermShare].c = (mode.activation ? 20'(TableBytes / LineBytes) : 20'd0) +
                          ((requant && mode.q == GemmQTensor) ? 20'd1 : 20'd0);
  end

endmodule
