// SPDX-License-Identifier: Apache-2.0
//
// What the instruction at the head means with the registers as they are: its dimensions, its places
// in memory, the operation for its engine, and what is wrong with them.

module npu_resolve
  import npu_pkg::*;
  import npu_operation_pkg::*;
  import npu_isa_pkg::*;
  import npu_seq_pkg::*;
#(
  parameter int unsigned Edge      = 16,    // tile edge in lanes: 16 or 32
  parameter int unsigned SramWords = 16384  // words of the SRAM: a power of two from 256 to 65536
) (
  input logic clk_i,  // clock
  input logic rst_ni, // reset, active low

  input logic       valid_i,      // entry_i is there, registers settled; stays until done_i
  input logic       done_i,       // it leaves
  input entry_t     entry_i,      // the instruction at the head
  input registers_t registers_i,  // machine registers, steady while valid_i
  input argmax_t    argmax_i,     // column of the best value, the token of an ARGMAX

  output resolved_t   resolved_o,   // what it means
  output operations_t operations_o  // that of resolved_o.engine holds, with resolved_o.ready
);

  extents_t extents;

  npu_extents u_extents (
    .entry_i,
    .len_i    (registers_i.len),
    .extents_o(extents)
  );

  logic   needs_place;
  place_t place;
  assign needs_place = entry_i.word.opcode inside {OpKvAppend, OpKvRead, OpEmbed} &&
                       !extents.nothing;

  npu_place #(
    .Edge     (Edge),
    .SramWords(SramWords)
  ) u_place (
    .clk_i,
    .rst_ni,
    .valid_i(valid_i && needs_place),
    .done_i,
    .entry_i,
    .k_i    (extents.k),
    .registers_i,
    .place_o(place)
  );

  logic plain_bad_address;
  mem_addr_t plain_addr;

  npu_decode u_decode (
    .entry_i,
    .registers_i,
    .extents_i    (extents),
    .place_i      (place),
    .argmax_i,
    .bad_address_o(plain_bad_address),
    .mem_addr_o   (plain_addr),
    .operations_o
  );

  assign resolved_o = '{
          ready: !needs_place || place.ready,
          engine: engine_of(entry_i.word.opcode),
          nothing: extents.nothing,
          context_full: extents.context_full || (needs_place && place.context_full),
          bad_address: plain_bad_address || (needs_place && place.bad_address),
          bad_range: needs_place && place.bad_range,
          error_addr: needs_place ? place.error_addr : plain_addr
      };

endmodule
