// SPDX-License-Identifier: Apache-2.0
//
// Turns a checked instruction into the operations of the engines: flags and mode bits become named
// fields, natural pitches are filled in. Combinational; only the operation of the instruction's own
// engine means anything.

module npu_decode
  import npu_pkg::*;
  import npu_operation_pkg::*;
  import npu_start_pkg::*;
  import npu_isa_pkg::*;
  import npu_seq_pkg::*;
#(
  parameter bit Depthwise = 1'b1  // with depthwise GEMM
) (
  input entry_t     entry_i,       // a checked instruction
  input registers_t registers_i,   // machine registers
  input extents_t   extents_i,     // dimensions, dynamic ones resolved
  input place_t     place_i,       // places of K/V transfers and EMBED
  input mem_addr_t  plain_addr_i,  // DMA, ARGMAX: first byte in memory
  input argmax_t    argmax_i,      // column of the best value, the token of an ARGMAX

  output operations_t operations_o  // that of the instruction's engine holds
);

  machine_t regs;
  dim_t m, n, k;
  assign regs = registers_i.regs;
  assign m    = extents_i.m;
  assign n    = extents_i.n;
  assign k    = extents_i.k;

  instr_t word;
  prefix_t pfx;
  logic [15:0] n_words;  // of a row of bytes
  assign word    = entry_i.word;
  assign pfx     = entry_i.prefix;
  assign n_words = words_of({2'b0, word.n});

  // ---------------------------------------------------------------------------------------------
  // Transfers
  // ---------------------------------------------------------------------------------------------
  logic is_argmax, is_embed, is_kv;
  kv_append_imm_t kv;
  embed_imm_t embed;
  assign kv        = kv_append_imm_t'(word.imm);
  assign embed     = embed_imm_t'(word.imm);
  assign is_argmax = word.opcode == OpArgmax;
  assign is_embed  = word.opcode == OpEmbed;
  assign is_kv     = word.opcode inside {OpKvAppend, OpKvRead};

  // KV_READ and KV_APPEND: the span is the natural pitch.
  sram_addr_t dst_pitch, rows_pitch;
  logic [31:0] mem_pitch;
  dim_t heads;
  assign dst_pitch  = pitch_or(pfx.cp, is_kv ? entry_i.span[15:0] : n_words);
  assign rows_pitch = pitch_or(pfx.ap, entry_i.span[15:0]);
  assign mem_pitch  = is_kv ? regs.kv_head : {12'b0, pitch_or(word.k, n_words), 4'b0};
  assign heads      = 16'(kv.heads_minus_1) + 1'b1;

  load_op_e load_op;
  always_comb begin
    load_op = LoadRows;
    if (is_kv) load_op = LoadKv;
    else if (is_embed && embed.index == EmbedIndexList) load_op = LoadList;
  end

  store_op_e store_op;
  always_comb begin
    store_op = StoreRows;
    if (is_kv) store_op = StoreKv;
    else if (is_argmax) store_op = StoreToken;
  end

  mem_addr_t mem;
  assign mem = (is_kv || is_embed) ? place_i.mem : plain_addr_i;

  assign operations_o.load = '{
          instr: entry_i.index,
          op: load_op,
          sram: word.dst,
          sram_pitch: dst_pitch,
          mem: mem,
          mem_pitch: mem_pitch,
          rows: is_kv ? heads : word.m,
          bytes: word.n,
          list: word.src0,
          positions: k,
          cache_in_sram: !regs.kv_in_memory
      };

  assign operations_o.store = '{
          instr: entry_i.index,
          op: store_op,
          sram: is_kv ? word.src0 : word.dst,
          sram_pitch: is_kv ? rows_pitch : dst_pitch,
          mem: mem,
          mem_pitch: mem_pitch,
          rows: is_kv ? word.k : word.m,
          bytes: word.n,
          token: argmax_i.column,
          heads: heads[8:0],
          phase: place_i.phase,
          stage_valid: word.flags[FlagStage],
          stage: place_i.stage,
          stage_pitch: word.src1,
          cache_in_sram: !regs.kv_in_memory
      };

  // ---------------------------------------------------------------------------------------------
  // GEMM
  // ---------------------------------------------------------------------------------------------
  gemm_mode_t mode;
  gemm_scale_imm_t scale;
  logic mode_word, stream, depthwise;
  dim_t b_row;
  logic [15:0] a_words;  // of a row of A
  assign mode = gemm_mode(word);
  assign stream = gemm_stream(mode);
  assign scale = gemm_scale_imm_t'(word.imm);
  assign depthwise = Depthwise && mode.depthwise;
  assign b_row = extent((word.flags[FlagTransposeB] && !stream) ? word.k : word.n);
  assign a_words = depthwise ? n_words : words_of(row_bytes(extent(word.k), gemm_wide(mode)));
  assign mode_word = word.flags[FlagMode];

  assign operations_o.gemm = '{
          c: word.dst,
          c_pitch: pitch_or(pfx.cp, words_of(gemm_c_bytes(word, mode))),
          a: word.src0,
          a_pitch: pitch_or(pfx.ap, a_words),
          b: stream ? gemm_line(pfx) : word.src1,
          b_pitch: pitch_or(pfx.bp, words_of({2'b0, b_row})),
          d: gemm_d(word, mode, entry_i.has_prefix, pfx),
          d_pitch: pitch_or(pfx.dp, words_of(gemm_d_bytes(word, mode))),
          sums: pfx.mul,
          m: m,
          n: n,
          k: k,
          a_type: mode.a_type,
          b_form: stream ? GemmBStream : mode.b_form,
          format: stream ? gemm_format(mode) : WeightFormatInt8,
          group: gemm_group(word),
          transpose_b: word.flags[FlagTransposeB] && !stream,
          depthwise: depthwise,
          bias: word.flags[FlagBiasEn],
          requant: word.flags[FlagRequant],
          relu: word.flags[FlagRelu],
          accumulate: word.flags[FlagAccumulate],
          q: mode.q,
          activation: mode.activation,
          out: mode.out,
          op: mode.op,
          argmax: mode.argmax,
          mult: mode_word ? pfx.mul : {8'b0, scale.scale},
          shift: mode_word ? pfx.sh : scale.shift[5:0]
      };

  // ---------------------------------------------------------------------------------------------
  // Row and vector engines
  // ---------------------------------------------------------------------------------------------
  softmax_imm_t smx;
  layernorm_imm_t nrm;
  vec_imm_t vec;
  gelu_imm_t lookup;
  rope_imm_t rope;
  logic is_table, is_rope;
  dim_t smx_cols;
  logic [15:0] smx_dst_words;
  assign smx = softmax_imm_t'(word.imm);
  assign nrm = layernorm_imm_t'(word.imm);
  assign vec = vec_imm_t'(word.imm);
  assign lookup = gelu_imm_t'(word.imm);
  assign rope = rope_imm_t'(word.imm);
  assign is_table = word.opcode inside {OpGelu, OpSilu};
  assign is_rope = word.opcode == OpRope;
  assign smx_cols = extent(word.n);
  assign smx_dst_words = words_of(row_bytes(up16(smx_cols), smx.out == SmxOutNumer16));

  assign operations_o.smx = '{
          dst: word.dst,
          dst_pitch: pitch_or(pfx.cp, smx_dst_words),
          src: word.src0,
          src_pitch: pitch_or(pfx.ap, words_of(row_bytes(smx_cols, !smx.score8))),
          sums: word.src1,
          rows: m,
          cols: n,
          rows_per_head: (word.k == '0) ? m : word.k,
          out: smx.out,
          score8: smx.score8,
          causal: word.flags[FlagCausalMask],
          pos: regs.pos - registers_i.wstart,
          window: regs.window
      };

  nrm_op_e nrm_op;
  logic [15:0] nrm_dst_words, nrm_src_words;
  always_comb begin
    unique case (word.opcode)
      OpRmsnorm: nrm_op = NrmRms;
      OpRope:    nrm_op = NrmRope;
      default:   nrm_op = NrmLayer;
    endcase
    nrm_dst_words = is_rope ? entry_i.span[15:0] : words_of(row_bytes(word.n, nrm.out16));
    nrm_src_words = is_rope ? entry_i.span[15:0] : words_of(row_bytes(word.n, 1'b1));
  end

  assign operations_o.nrm = '{
          op: nrm_op,
          dst: word.dst,
          dst_pitch: pitch_or(pfx.cp, nrm_dst_words),
          src: word.src0,
          src_pitch: pitch_or(pfx.ap, nrm_src_words),
          param: word.src1,
          param_pitch: pitch_or(pfx.bp, words_of(row_bytes(word.n, 1'b1))),
          rows: m,
          cols: word.n,
          heads: word.k,
          pairs: rope.pairs,
          stream: !is_rope && nrm.stream,
          out16: !is_rope && nrm.out16
      };

  logic c16, a16;
  assign c16 = !is_table && vec.c16;
  assign a16 = !is_table && vec.a16;

  assign operations_o.vec = '{
          op: is_table ? VecTable : vec.op,
          dst: word.dst,
          dst_pitch: pitch_or(pfx.cp, words_of(row_bytes(word.n, c16))),
          a: word.src0,
          a_pitch: pitch_or(pfx.ap, words_of(row_bytes(word.n, a16))),
          b: word.src1,
          b_pitch: pitch_or(pfx.bp, words_of(row_bytes(word.n, a16))),
          rows: m,
          elements: word.n,
          hi: word.k,
          lo: word.src1,
          shift: is_table ? '0 : vec.sh,
          a16: a16,
          c16: c16,
          stream: is_table ? lookup.stream : vec.stream
      };

endmodule
