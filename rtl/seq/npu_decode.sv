// SPDX-License-Identifier: Apache-2.0
//
// Turns a checked instruction into the commands of the engines: flags and mode bits become named
// fields, natural pitches are filled in, memory addresses get their base. Combinational; only the
// command of the instruction's own engine means anything.

module npu_decode
  import npu_pkg::*;
  import npu_isa_pkg::*;
  import npu_seq_pkg::*;
(
  input entry_t    entry_i,
  input mem_addr_t base_i [8],
  input logic [31:0] pos_i,

  output logic       is_engine_o,    // goes to an engine at all
  output engine_e    engine_o,
  output logic       bad_address_o,  // transfer outside the 32-bit address space, or misaligned
  output mem_addr_t  mem_addr_o,
  output load_cmd_t  load_o,
  output store_cmd_t store_o,
  output gemm_cmd_t  gemm_o,
  output smx_cmd_t   smx_o,
  output nrm_cmd_t   nrm_o,
  output vec_cmd_t   vec_o
);

  instr_t  word;
  prefix_t pfx;
  assign word = entry_i.word;
  assign pfx  = entry_i.prefix;

  assign engine_o    = engine_of(word.opcode);
  assign is_engine_o = engine_o != EngSeq;

  // ---------------------------------------------------------------------------------------------
  // Transfers
  // ---------------------------------------------------------------------------------------------
  logic [32:0] mem_first;
  logic [37:0] mem_end;
  assign mem_first = {1'b0, base_i[word.imm[2:0]]} + {1'b0, word.src1, word.src0};
  assign mem_end = {5'b0, mem_first} + {1'b0, entry_i.span};
  assign mem_addr_o = mem_first[31:0];
  assign bad_address_o = engine_o inside {EngLd, EngSt} &&
                         (mem_first[3:0] != '0 || mem_end > 38'h1_0000_0000);

  sram_addr_t sram_pitch;
  logic [31:0] mem_pitch;
  assign sram_pitch = pitch_or(pfx.cp, words_of({2'b0, word.n}));
  assign mem_pitch = {12'b0, (word.k == '0) ? words_of({2'b0, word.n}) : word.k, 4'b0};

  assign load_o = '{
          instr: entry_i.index,
          op: LoadRows,
          sram: word.dst,
          sram_pitch: sram_pitch,
          mem: mem_first[31:0],
          mem_pitch: mem_pitch,
          rows: word.m,
          bytes: word.n,
          default: '0
      };

  assign store_o = '{
          instr: entry_i.index,
          op: StoreRows,
          sram: word.dst,
          sram_pitch: sram_pitch,
          mem: mem_first[31:0],
          mem_pitch: mem_pitch,
          rows: word.m,
          bytes: word.n,
          default: '0
      };

  // ---------------------------------------------------------------------------------------------
  // GEMM
  // ---------------------------------------------------------------------------------------------
  gemm_mode_t mode;
  gemm_scale_imm_t scale;
  logic mode_word;
  assign mode = gemm_mode(word);
  assign scale = gemm_scale_imm_t'(word.imm);
  assign mode_word = word.flags[FlagMode];

  assign gemm_o = '{
          instr: entry_i.index,
          c: word.dst,
          c_pitch: pitch_or(pfx.cp, words_of(gemm_c_bytes(word, mode))),
          a: word.src0,
          a_pitch: pitch_or(pfx.ap, words_of(row_bytes(word.k, mode.a_type[1]))),
          b: word.src1,
          b_pitch:
          pitch_or
          (
              pfx.bp, words_of({2'b0, word.flags[FlagTransposeB] ? word.k : word.n})
          ),
          d: gemm_d(word, mode, entry_i.has_prefix, pfx),
          d_pitch: pitch_or(pfx.dp, words_of(gemm_d_bytes(word, mode))),
          sums: pfx.mul,
          m: word.m,
          n: word.n,
          k: word.k,
          a_type: gemm_a_e'(mode.a_type),
          b_form: gemm_b_e'(mode.b_form),
          transpose_b: word.flags[FlagTransposeB],
          bias: word.flags[FlagBiasEn],
          requant: word.flags[FlagRequant],
          relu: word.flags[FlagRelu],
          accumulate: word.flags[FlagAccumulate],
          q: gemm_q_e'(mode.q),
          activation: mode.activation,
          out: gemm_out_e'(mode.out),
          op: gemm_op_e'(mode.op),
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
  logic is_gelu;
  assign smx = softmax_imm_t'(word.imm);
  assign nrm = layernorm_imm_t'(word.imm);
  assign vec = vec_imm_t'(word.imm);
  assign is_gelu = word.opcode == OpGelu;

  assign smx_o = '{
          instr: entry_i.index,
          dst: word.dst,
          dst_pitch: pitch_or(pfx.cp, words_of(row_bytes(up16(word.n), smx.out == 2'd2))),
          src: word.src0,
          src_pitch: pitch_or(pfx.ap, words_of(row_bytes(word.n, !smx.score8))),
          sums: word.src1,
          rows: word.m,
          cols: word.n,
          rows_per_head: (word.k == '0) ? word.m : word.k,
          out: smx_out_e'(smx.out),
          score8: smx.score8,
          causal: word.flags[FlagCausalMask],
          pos: pos_i,
          window: '0
      };

  assign nrm_o = '{
          instr: entry_i.index,
          op: NrmLayer,
          dst: word.dst,
          dst_pitch: pitch_or(pfx.cp, words_of(row_bytes(word.n, nrm.out16))),
          src: word.src0,
          src_pitch: pitch_or(pfx.ap, words_of(row_bytes(word.n, 1'b1))),
          param: word.src1,
          param_pitch: '0,
          rows: word.m,
          cols: word.n,
          heads: '0,
          pairs: 1'b0,
          stream: nrm.stream,
          out16: nrm.out16
      };

  logic c16, a16;
  assign c16 = !is_gelu && vec.c16;
  assign a16 = !is_gelu && vec.a16;

  assign vec_o = '{
          instr: entry_i.index,
          op: is_gelu ? VecTable : vec_op_e'(vec.op),
          dst: word.dst,
          dst_pitch: pitch_or(pfx.cp, words_of(row_bytes(word.n, c16))),
          a: word.src0,
          a_pitch: pitch_or(pfx.ap, words_of(row_bytes(word.n, a16))),
          b: word.src1,
          b_pitch: pitch_or(pfx.bp, words_of(row_bytes(word.n, a16))),
          rows: word.m,
          elements: word.n,
          hi: word.k,
          lo: word.src1,
          shift: is_gelu ? '0 : vec.sh,
          a16: a16,
          c16: c16,
          stream: is_gelu ? word.imm[0] : vec.stream
      };

endmodule
