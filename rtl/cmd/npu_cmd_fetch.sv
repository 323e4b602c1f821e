// SPDX-License-Identifier: Apache-2.0
//
// Reads the pending entries of the descriptor ring ahead of their execution, never beyond the head,
// and hands them out in order. An entry that does not begin at a multiple of 16 bytes lies in two
// words of memory. What goes wrong comes out with the entry that it concerns; nothing behind an
// entry that no region permits is read.

module npu_cmd_fetch
  import npu_pkg::*;
(
  input logic clk_i,  // clock
  input logic rst_ni, // reset, active low

  input logic            run_i,    // a level; while low, everything is forgotten
  input mem_addr_t       base_i,   // first byte of the ring, a multiple of 4; stable while run_i
  input logic      [2:0] first_i,  // index of the first entry, while run_i is low
  input logic      [2:0] head_i,   // index behind the last pending entry; may move on at any time

  output npu_cmd_pkg::entry_t entry_o,  // in order
  input  logic                ready_i,  // taken; may come without entry_o.valid

  // Memory
  output npu_cmd_pkg::read_req_t read_o,  // stable until ready, a denial or the end of run_i
  input  npu_cmd_pkg::read_rsp_t read_i   // words in order, never refused
);

  // Seven entries can be pending, in two words each.
  localparam int unsigned Entries = 8;
  localparam int unsigned PendingW = $clog2(2 * Entries);

  typedef struct packed {
    logic  error;
    word_t entry;
  } slot_t;

  logic split;  // entries lie in two words
  assign split = base_i[3:2] != '0;

  // ---------------------------------------------------------------------------------------------
  // Asking
  // ---------------------------------------------------------------------------------------------
  logic [2:0] index_q;
  logic second_q, denied_q;
  logic [PendingW-1:0] pending_q;  // words that have not arrived
  logic asked;

  assign read_o.valid = run_i && index_q != head_i && !denied_q;
  assign read_o.addr  = {base_i[31:4] + 28'(index_q) + 28'(second_q), 4'b0};
  assign asked        = read_o.valid && read_i.ready;

  // ---------------------------------------------------------------------------------------------
  // Arriving
  // ---------------------------------------------------------------------------------------------
  logic half_valid_q, slot_valid, stored;
  slot_t half_q, slot, stored_slot;
  logic [2*WordBits-1:0] both;

  assign both       = split ? {read_i.data, half_q.entry} : {word_t'('0), read_i.data};
  assign slot_valid = read_i.valid && (half_valid_q || !split);
  assign slot.error = read_i.error || (split && half_q.error);
  assign slot.entry = both[32*base_i[3:2]+:WordBits];

  always_ff @(posedge clk_i) begin
    if (!rst_ni) begin
      index_q      <= '0;
      second_q     <= 1'b0;
      denied_q     <= 1'b0;
      pending_q    <= '0;
      half_valid_q <= 1'b0;
      half_q       <= '0;
    end else if (!run_i) begin
      index_q      <= first_i;
      second_q     <= 1'b0;
      denied_q     <= 1'b0;
      pending_q    <= '0;
      half_valid_q <= 1'b0;
    end else begin
      if (read_i.denied) denied_q <= 1'b1;
      if (asked) begin
        second_q <= split && !second_q;
        if (second_q || !split) index_q <= index_q + 1'b1;
      end
      pending_q <= pending_q + PendingW'(asked) - PendingW'(read_i.valid) -
                   PendingW'(read_i.denied);
      if (read_i.valid) begin
        half_valid_q <= split && !half_valid_q;
        half_q       <= '{error: read_i.error, entry: read_i.data};
      end
    end
  end

  npu_flush_fifo #(
    .DataT(slot_t),
    .Depth(Entries)
  ) u_entries (
    .clk_i,
    .rst_ni,
    .flush_i(!run_i),
    .valid_i(slot_valid),
    .ready_o(),
    .data_i (slot),
    .valid_o(stored),
    .ready_i,
    .data_o (stored_slot),
    .count_o()
  );

  // A denied entry comes out when everything before it has.
  assign entry_o.valid = stored || (denied_q && pending_q == '0);
  assign entry_o.error = !stored || stored_slot.error;
  assign entry_o.data  = stored_slot.entry;

`ifndef SYNTHESIS
  WordAskedFor_A :
  assert property (@(posedge clk_i) disable iff (!rst_ni) run_i && read_i.valid |-> pending_q != '0)
  else $error("npu_cmd_fetch: a word that was not asked for");
  BaseAligned_A :
  assert property (@(posedge clk_i) disable iff (!rst_ni) read_o.valid |-> base_i[1:0] == '0)
  else $error("npu_cmd_fetch: base 0x%08x is not a multiple of 4", base_i);
`endif

endmodule
