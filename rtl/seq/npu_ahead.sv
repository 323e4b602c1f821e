// SPDX-License-Identifier: Apache-2.0
//
// Checked instructions on their way to dispatch: a queue, so that checking hides behind the
// barriers, and the head. The dimensions of an instruction and its address in memory are formed while
// it moves to the head. For the dimensions it waits until those before it cannot change what they
// follow from; the address is formed once more at the head if one has.

module npu_ahead
  import npu_pkg::*;
  import npu_isa_pkg::*;
  import npu_seq_pkg::*;
(
  input logic clk_i,  // clock
  input logic rst_ni,  // reset, active low
  input logic flush_i, // pulse, a cycle after a LOOP leaves: all and what is pushed are thrown away

  input  logic   entry_valid_i,  // a checked instruction; stays until ready, or a flush
  output logic   entry_ready_o,  // taken; independent of entry_valid_i
  input  entry_t entry_i,        // with entry_valid_i

  input  logic      [32:0] len_i,          // visible keys, POS + 1 - WSTART, while settled_i
  input  logic             settled_i,      // low in the cycle after POS or WINDOW has changed
  // Machine registers, changed a cycle after a head that changes them
  input  logic      [31:0] outcnt_i,       // OUTCNT
  output logic      [ 2:0] base_number_o,  // which base is wanted
  input  mem_addr_t        base_i,         // that one, in the same cycle

  output logic     entry_valid_o,  // the head; stays until ready, data stable; never with flush_i
  input  logic     entry_ready_i,  // it is dispatched; only with entry_valid_o
  output entry_t   entry_o,        // with entry_valid_o
  output extents_t extents_o,      // its dimensions, with entry_valid_o
  output kind_t    kind_o,         // how it is dispatched, with entry_valid_o
  output logic     plain_ready_o,  // plain_o and coming_o were with the registers as they are
  output plain_t   plain_o,        // its address, if it is a DMA transfer, an ARGMAX or an EMBED
  // What stands at the head in the next cycle, if it changes; while !plain_ready_o the head itself
  output entry_t   coming_o
);

  logic head_valid_q, changes_q;
  logic queued_valid, direct, known, free;
  entry_t queued, next;
  extents_t extents;

  assign free   = !head_valid_q || entry_ready_i;
  assign known  = settled_i && !(head_valid_q && changes_q);
  assign direct = entry_valid_i && !queued_valid && !head_valid_q && known;
  assign next   = queued_valid ? queued : entry_i;

  npu_flush_fifo #(
    .DataT(entry_t),
    .Depth(3)
  ) u_queue (
    .clk_i,
    .rst_ni,
    .flush_i,
    .valid_i(entry_valid_i && !direct),
    .ready_o(entry_ready_o),
    .data_i (entry_i),
    .valid_o(queued_valid),
    .ready_i(known && free),
    .data_o (queued),
    .count_o()
  );

  npu_extents u_extents (
    .entry_i  (next),
    .len_i,
    .extents_o(extents)
  );

  // The address, of the head where what it was formed from has changed meanwhile
  logic again, moves_q;
  plain_t plain;
  assign again    = head_valid_q && !plain_ready_o;
  assign coming_o = again ? entry_o : next;

  npu_plain_address u_plain (
    .entry_i(coming_o),
    .outcnt_i,
    .base_number_o,
    .base_i,
    .plain_o(plain)
  );

  always_ff @(posedge clk_i) begin
    if (!rst_ni) plain_ready_o <= 1'b0;
    else plain_ready_o <= !free || !(again || (head_valid_q && moves_q));
  end

  always_ff @(posedge clk_i) begin
    if (free || again) plain_o <= plain;
  end

  always_ff @(posedge clk_i) begin
    if (!rst_ni) head_valid_q <= 1'b0;
    else if (flush_i) head_valid_q <= 1'b0;
    else if (free) head_valid_q <= known && (queued_valid || direct);
  end

  always_ff @(posedge clk_i) begin
    if (free) begin
      entry_o <= next;
      extents_o <= extents;
      kind_o <= kind_of(next);
      changes_q <= next.word.opcode == OpLoop || (next.word.opcode == OpSet &&
                                                  next.word.dst inside {SetPos, SetWindow});
      moves_q <= next.word.opcode inside {OpSet, OpArgmax};
    end
  end

  assign entry_valid_o = head_valid_q;

`ifndef SYNTHESIS
  NoHeadAtFlush_A :
  assert property (@(posedge clk_i) disable iff (!rst_ni) flush_i |-> !head_valid_q)
  else $error("npu_ahead: the word behind a LOOP stands at the head when the LOOP is redirected");
`endif

endmodule
