// SPDX-License-Identifier: Apache-2.0
//
// What the instruction at the head means with the registers as they are: its places in memory, the
// operation for its engine, whether a LOOP is taken, and what is wrong with them. The decision of a
// LOOP takes a cycle of its own.

module npu_resolve
  import npu_pkg::*;
  import npu_operation_pkg::*;
  import npu_start_pkg::*;
  import npu_seq_pkg::*;
#(
  parameter int unsigned ArrayDim  = 16,    // rows and columns of the array: 4, 8, 16 or 32
  parameter int unsigned SramWords = 16384  // words of the SRAM: a power of two from 256 to 65536
) (
  input logic clk_i,  // clock
  input logic rst_ni, // reset, active low

  input logic       valid_i,        // entry_i is there; stays until done_i
  input logic       done_i,         // it leaves
  input entry_t     entry_i,        // the instruction at the head, steady while valid_i
  input extents_t   extents_i,      // its dimensions, steady while valid_i
  input kind_t      kind_i,         // how it is dispatched, steady while valid_i
  input logic       plain_ready_i,  // plain_i is that of the registers as they are
  input plain_t     plain_i,        // its address, if it is a DMA transfer or an ARGMAX
  input entry_t     coming_i,       // what stands at the head next; while !plain_ready_i the head
  input registers_t registers_i,    // machine registers, steady while valid_i
  input argmax_t    argmax_i,       // column of the best value, the token of an ARGMAX

  output resolved_t   resolved_o,   // what it means
  output operations_t operations_o  // that of kind_i.engine holds, with resolved_o.ready
);

  machine_t regs;
  assign regs = registers_i.regs;

  logic   needs_place;
  place_t place;
  assign needs_place = kind_i.needs_place && !extents_i.nothing;

  npu_place #(
    .Edge     (tile_edge(ArrayDim)),
    .SramWords(SramWords)
  ) u_place (
    .clk_i,
    .rst_ni,
    .valid_i(valid_i && needs_place && plain_ready_i),
    .done_i,
    .coming_i,
    .entry_i,
    .k_i    (extents_i.k),
    .base_i (plain_i.base),
    .registers_i,
    .place_o(place)
  );

  logic turn, second_q, turn_q, turn_full_q;
  assign turn = kind_i.turns && regs.loop_left != '0 && (regs.token != regs.eos || regs.eos == '1);

  logic plain_bad;
  assign plain_bad = kind_i.needs_plain && plain_ready_i &&
                     (plain_i.off_words || plain_i.outside || (plain_i.above && plain_i.beyond));

  always_ff @(posedge clk_i) begin
    if (!rst_ni) begin
      second_q    <= 1'b0;
      turn_q      <= 1'b0;
      turn_full_q <= 1'b0;
    end else if (!valid_i || done_i) begin
      second_q <= 1'b0;
      turn_q   <= 1'b0;
    end else begin
      second_q    <= 1'b1;
      turn_q      <= turn;
      turn_full_q <= turn && {1'b0, regs.pos} + 1'b1 >= {1'b0, regs.kv_cap};
    end
  end

  npu_decode #(
    .Depthwise(tile_edge(ArrayDim) == ArrayDim)
  ) u_decode (
    .entry_i,
    .registers_i,
    .extents_i,
    .place_i     (place),
    .plain_addr_i(plain_i.addr),
    .argmax_i,
    .operations_o
  );

  assign resolved_o = '{
          ready:
          (
          !needs_place || place.ready
          ) && (
          !kind_i.needs_plain || plain_ready_i
          ) && (
          !kind_i.turns || second_q
          ),
          loop_taken: turn_q,
          context_full: extents_i.context_full || place.context_full || turn_full_q,
          bad_address: plain_bad || place.bad_address,
          bad_range: place.bad_range,
          error_addr: needs_place ? place.error_addr : plain_i.addr
      };

endmodule
