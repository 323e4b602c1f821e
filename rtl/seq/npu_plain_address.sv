// SPDX-License-Identifier: Apache-2.0
//
// The address of a DMA transfer or an ARGMAX in memory, which is a base and an offset, and whether
// it may be used. Combinational.

module npu_plain_address
  import npu_pkg::*;
  import npu_isa_pkg::*;
  import npu_seq_pkg::*;
(
  input  entry_t     entry_i,      // a checked DMA transfer or ARGMAX
  input  registers_t registers_i,  // machine registers
  output logic       bad_o,        // outside the address space or misaligned
  output mem_addr_t  addr_o        // first byte, cut to 32 bits
);

  instr_t word;
  dma_load_imm_t dma;
  mem_addr_t base;
  logic [34:0] first;
  logic [37:0] past;
  assign word = entry_i.word;
  assign dma  = dma_load_imm_t'(word.imm);
  assign base = registers_i.regs.bases[dma.base];

  always_comb begin
    if (word.opcode == OpArgmax) begin
      first = {3'b0, base} + {1'b0, registers_i.regs.outcnt, 2'b0};
      past  = {3'b0, first} + 38'd4;
      bad_o = base[3:0] != '0;
    end else begin
      first = {3'b0, base} + {3'b0, word.src1, word.src0};
      past  = {3'b0, first} + {1'b0, entry_i.span};
      bad_o = first[3:0] != '0;
    end
    bad_o |= past > 38'h1_0000_0000;
  end
  assign addr_o = first[31:0];

endmodule
