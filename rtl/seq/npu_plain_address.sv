// SPDX-License-Identifier: Apache-2.0
//
// The address of a DMA transfer or an ARGMAX in memory, which is a base and an offset, and whether
// it may be used. Combinational.

module npu_plain_address
  import npu_pkg::*;
  import npu_isa_pkg::*;
  import npu_seq_pkg::*;
(
  input  entry_t           entry_i,        // a checked DMA transfer or ARGMAX; EMBED for its base
  input  logic      [31:0] outcnt_i,       // machine register OUTCNT
  output logic      [ 2:0] base_number_o,  // which machine register BASE is wanted
  input  mem_addr_t        base_i,         // that one, in the same cycle
  output plain_t           plain_o         // where it begins, and what is wrong with it
);

  instr_t word;
  dma_load_imm_t dma;
  logic argmax;
  logic [33:0] offset;
  logic [36:0] span;
  mem_addr_t first;
  logic [37:0] past;
  assign word = entry_i.word;
  assign dma = dma_load_imm_t'(word.imm);
  assign base_number_o = dma.base;
  assign argmax = word.opcode == OpArgmax;

  // The base, which is chosen, comes last.
  assign offset = argmax ? {outcnt_i, 2'b0} : {2'b0, word.src1, word.src0};
  assign span = argmax ? 37'd4 : entry_i.span;
  assign first = base_i + offset[31:0];
  assign past = {6'b0, base_i} + ({4'b0, offset} + {1'b0, span});
  assign plain_o = '{
          off_words: (argmax ? base_i[3:0] : first[3:0]) != '0,
          outside: past[37:33] != '0,
          above: past[32],
          beyond: past[31:0] != '0,
          addr: first,
          base: base_i
      };

endmodule
