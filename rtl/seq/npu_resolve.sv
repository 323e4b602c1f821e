// SPDX-License-Identifier: Apache-2.0
//
// What the instruction at the head means with the registers as they are: its dimensions, its places
// in memory, the operation for its engine, and what is wrong with them.

module npu_resolve
  import npu_pkg::*;
  import npu_operation_pkg::*;
  import npu_start_pkg::*;
  import npu_isa_pkg::*;
  import npu_seq_pkg::*;
#(
  parameter int unsigned Edge      = 16,    // tile edge in lanes: 16 or 32
  parameter int unsigned SramWords = 16384  // words of the SRAM: a power of two from 256 to 65536
) (
  input logic clk_i,  // clock
  input logic rst_ni, // reset, active low

  input logic            valid_i,   // entry_i is there, registers settled; stays until done_i
  input logic            done_i,    // it leaves
  input entry_t          entry_i,   // the instruction at the head
  input machine_t        regs_i,    // machine registers, steady while valid_i
  input logic     [31:0] wstart_i,  // first visible position, steady while valid_i
  input logic     [32:0] len_i,     // visible keys, POS + 1 - WSTART, steady while valid_i
  input argmax_t         argmax_i,  // column of the best value, the token of an ARGMAX

  output logic      ready_o,         // all below holds; K/V, EMBED: some cycles after valid_i
  output logic      nothing_o,       // no rows, columns or positions: there is nothing to do
  output logic      context_full_o,  // more keys than columns or than the cache takes
  output logic      bad_address_o,   // outside the 32-bit address space or misaligned
  output logic      bad_range_o,     // operands whose place depends on registers leave the SRAM
  output mem_addr_t error_addr_o,    // of a bad address or range, bytes

  output engine_e          engine_o,  // engine that takes it; EngSeq: none
  output load_operation_t  load_o,    // operation, if engine_o is EngLd and ready_o
  output store_operation_t store_o,   // operation, if engine_o is EngSt and ready_o
  output gemm_operation_t  gemm_o,    // operation, if engine_o is EngGemm and ready_o
  output smx_operation_t   smx_o,     // operation, if engine_o is EngSmx and ready_o
  output nrm_operation_t   nrm_o,     // operation, if engine_o is EngNrm and ready_o
  output vec_operation_t   vec_o      // operation, if engine_o is EngVec and ready_o
);

  dim_t m, n, k;
  logic columns_full;

  npu_extents u_extents (
    .entry_i,
    .len_i,
    .m_o           (m),
    .n_o           (n),
    .k_o           (k),
    .nothing_o,
    .context_full_o(columns_full)
  );

  logic needs_place, place_ready, cache_full, place_bad_address, place_bad_range;
  mem_addr_t place_mem, place_error_addr;
  sram_addr_t place_stage;
  logic [4:0] place_phase;
  assign needs_place = entry_i.word.opcode inside {OpKvAppend, OpKvRead, OpEmbed} && !nothing_o;

  npu_place #(
    .Edge     (Edge),
    .SramWords(SramWords)
  ) u_place (
    .clk_i,
    .rst_ni,
    .valid_i       (valid_i && needs_place),
    .done_i,
    .entry_i,
    .k_i           (k),
    .regs_i,
    .wstart_i,
    .ready_o       (place_ready),
    .mem_o         (place_mem),
    .stage_o       (place_stage),
    .phase_o       (place_phase),
    .context_full_o(cache_full),
    .bad_address_o (place_bad_address),
    .bad_range_o   (place_bad_range),
    .error_addr_o  (place_error_addr)
  );

  logic plain_bad_address;
  mem_addr_t plain_addr;

  npu_decode u_decode (
    .entry_i,
    .regs_i,
    .wstart_i,
    .m_i          (m),
    .n_i          (n),
    .k_i          (k),
    .place_mem_i  (place_mem),
    .place_stage_i(place_stage),
    .place_phase_i(place_phase),
    .argmax_i,
    .engine_o,
    .bad_address_o(plain_bad_address),
    .mem_addr_o   (plain_addr),
    .load_o,
    .store_o,
    .gemm_o,
    .smx_o,
    .nrm_o,
    .vec_o
  );

  assign ready_o        = !needs_place || place_ready;
  assign context_full_o = columns_full || (needs_place && cache_full);
  assign bad_address_o  = plain_bad_address || (needs_place && place_bad_address);
  assign bad_range_o    = needs_place && place_bad_range;
  assign error_addr_o   = needs_place ? place_error_addr : plain_addr;

endmodule
