// SPDX-License-Identifier: Apache-2.0
//
// Assembles the results of ROPE to whole words, one of first and one of second lanes at a time. A
// word is parts of as many lanes as pairs come at once. Of halves, the second lanes begin inside a
// part: what does not fit waits for the next pairs, or goes out behind the last ones. The word in
// which the second lanes begin also holds the last of the first ones: it is written last, when the
// head is through. So nothing is written before it has been read for the last time, and a head may
// be turned in place.

module npu_rope_pack #(
  parameter int unsigned Pairs = 4  // pairs that come at once, 2 or 4
) (
  input logic clk_i,  // clock
  input logic rst_ni, // reset, active low

  // Pulse: a new operation, only while empty_o and !valid_i
  input logic                     start_i,
  input npu_pkg::sram_addr_t      dst_i,    // SRAM word where the first row goes, with start_i
  input npu_pkg::sram_addr_t      pitch_i,  // words from row to row, with start_i
  input npu_rows_pkg::rope_form_t form_i,   // steady from the cycle after start_i on

  input logic valid_i,  // turned pairs; stays until ready, data stable
  output logic ready_o,  // taken; depends on word_ready_i, not on valid_i
  // The walker's load orders are of no use here.
  /* verilator lint_off UNUSEDSIGNAL */
  input npu_rows_pkg::rope_tag_t tag_i,  // their place in chunk, head and row, with valid_i
  /* verilator lint_on UNUSEDSIGNAL */
  input logic [Pairs-1:0][7:0] a_i,  // first lanes, int8, zero past the head's end, with valid_i
  input logic [Pairs-1:0][7:0] b_i,  // second lanes, likewise

  output npu_sram_pkg::sram_wr_req_t word_o,  // 16 lanes of int8; stays until ready, all stable
  input logic word_ready_i,  // taken; may depend on word_o.valid

  output logic empty_o  // nothing waits to be written
);

  import npu_pkg::*;

  localparam int unsigned Parts = 16 / Pairs;  // of a word
  localparam int unsigned PartW = $clog2(Parts);
  localparam int unsigned OffsetW = $clog2(Pairs);

  typedef logic [Pairs-1:0][7:0] part_t;

  if (Pairs != 2 && Pairs != 4) begin : gen_bad_pairs
    $fatal(1, "npu_rope_pack: Pairs = %0d, must be 2 or 4", Pairs);
  end

  logic take;

  // First lanes, or neighbouring pairs
  part_t [1:0] a;  // for even and odd parts
  part_t [Parts-1:0] a_q;
  logic [Parts-1:0] a_part;  // that comes
  logic [PartW-1:0] a_part_q;
  logic a_full_q, head_last_q, row_last_q;

  // Second lanes
  logic [OffsetW-1:0] offset;  // inside the part where they begin
  logic [PartW-1:0] b_part, b_part_q;
  logic head_new_q, shared, shared_q;  // shared: they go to the word of both halves
  logic b_write, b_end, rest, rest_q, rest_write;  // rest: lanes wait behind the last pairs
  part_t turned, carry_q, b;
  part_t [Parts-1:0] b_q, both_q;
  logic [Parts-1:0] both_write;
  logic b_full_q;

  // Words
  logic a_leave, b_leave, head_leave, aim_q;
  sram_addr_t pitch_q, row_q, head_q, a_addr_q, b_addr_q, row_next, head_next;

  assign empty_o = !a_full_q && !b_full_q && !rest_q;
  assign ready_o = !rest_q && ((!a_full_q && !b_full_q) ||
                               (word_ready_i && !(a_full_q && b_full_q)));
  assign take = valid_i && ready_o;

  // First lanes. The first part of a word clears the others.
  always_comb begin
    for (int unsigned p = 0; p < Parts; p++) begin
      a_part[p] = a_part_q == (form_i.pairs ? PartW'(p / 2) : PartW'(p));
    end
    a = '{default: a_i};
    if (form_i.pairs) begin
      for (int unsigned p = 0; p < Pairs; p++) begin
        a[2*p/Pairs][2*p%Pairs]   = a_i[p];
        a[2*p/Pairs][2*p%Pairs+1] = b_i[p];
      end
    end
  end

  always_ff @(posedge clk_i) begin
    for (int unsigned p = 0; p < Parts; p++) begin
      if (take && a_part_q == '0 && !a_part[p]) a_q[p] <= '0;
      else if (take && a_part[p]) a_q[p] <= a[p%2];
    end
    if (take) begin
      head_last_q <= tag_i.head_last;
      row_last_q  <= tag_i.row_last;
    end
  end

  // Second lanes. A head begins with those that share a word, unless there are none.
  assign offset     = form_i.tail[OffsetW-1:0];
  assign b_part     = head_new_q ? form_i.tail[3-:PartW] : b_part_q;
  assign shared     = head_new_q ? !form_i.tail[4] : shared_q;
  // A head's last pairs are as many as its second lanes are inside a part, or a part.
  assign rest       = tag_i.last && tag_i.head_last && 2 * 32'(offset) > Pairs;
  assign rest_write = rest_q && (!b_full_q || word_ready_i);
  assign b_write    = !form_i.pairs && (take || rest_write);
  assign b_end      = rest_q || (tag_i.last && tag_i.head_last && !rest);

  always_comb begin
    for (int unsigned p = 0; p < Parts; p++) begin
      both_write[p] = b_write && shared && b_part == PartW'(p);
    end
    for (int unsigned p = 0; p < Pairs; p++) begin
      turned[p] = b_i[OffsetW'(p)-offset];
      b[p] = (OffsetW'(p) < offset) ? carry_q[p] : rest_q ? '0 : turned[p];
    end
  end

  always_ff @(posedge clk_i) begin
    if (!rst_ni) begin
      head_new_q <= 1'b1;
      rest_q     <= 1'b0;
      carry_q    <= '0;
    end else if (b_write) begin
      head_new_q <= b_end;
      rest_q     <= !rest_q && rest;
      carry_q    <= turned;
      if (b_end) carry_q <= '0;
    end
  end

  always_ff @(posedge clk_i) begin
    for (int unsigned p = 0; p < Parts; p++) begin
      if ((start_i || head_leave) && !both_write[p]) both_q[p] <= '0;
      else if (both_write[p]) both_q[p] <= b;
      if (b_write && b_part == '0 && p != 0) b_q[p] <= '0;
      else if (b_write && b_part == PartW'(p)) b_q[p] <= b;
    end
    if (b_write) begin
      b_part_q <= b_part + 1'b1;
      shared_q <= shared && b_part != '1;
    end
  end

  // Words. The word of both halves is the head's last, and the rest of the second lanes before it.
  assign word_o.valid = b_full_q || (a_full_q && !rest_q);
  assign word_o.addr = b_full_q ? b_addr_q : a_addr_q;
  assign b_leave = b_full_q && word_ready_i;
  assign a_leave = a_full_q && !b_full_q && !rest_q && word_ready_i;
  assign head_leave = a_leave && head_last_q;

  always_comb begin
    word_o.data = word_t'(a_q);
    if (head_last_q) word_o.data |= word_t'(both_q);
    if (b_full_q) word_o.data = word_t'(b_q);
  end

  assign row_next  = row_last_q ? row_q + pitch_q : row_q;
  assign head_next = row_last_q ? row_next : head_q + form_i.words;

  always_ff @(posedge clk_i) begin
    if (!rst_ni) begin
      a_full_q <= 1'b0;
      a_part_q <= '0;
      b_full_q <= 1'b0;
      aim_q    <= 1'b0;
    end else begin
      if (take) begin
        a_full_q <= tag_i.last;
        a_part_q <= tag_i.last ? '0 : a_part_q + 1'b1;
      end else if (a_leave) begin
        a_full_q <= 1'b0;
      end
      if (b_write && !shared && (b_part == '1 || b_end)) b_full_q <= 1'b1;
      else if (b_leave) b_full_q <= 1'b0;
      aim_q <= start_i || head_leave;
    end
  end

  // The second lanes of a head have no whole word of their own in the cycle after it begins.
  always_ff @(posedge clk_i) begin
    if (start_i) begin
      pitch_q  <= pitch_i;
      row_q    <= dst_i;
      head_q   <= dst_i;
      a_addr_q <= dst_i;
    end else if (a_leave) begin
      a_addr_q <= a_addr_q + 1'b1;
      if (head_last_q) begin
        row_q    <= row_next;
        head_q   <= head_next;
        a_addr_q <= head_next;
      end
    end
    if (aim_q) b_addr_q <= head_q + form_i.last_chunk + 1'b1;
    else if (b_leave) b_addr_q <= b_addr_q + 1'b1;
  end

`ifndef SYNTHESIS
  StartWhenEmpty_A :
  assert property (@(posedge clk_i) disable iff (!rst_ni) start_i |-> empty_o && !valid_i)
  else $error("npu_rope_pack: started before the last operation is through");
  WordStable_A :
  assert property (@(posedge clk_i) disable iff (!rst_ni) word_o.valid && !word_ready_i |=> $stable(
      word_o
  ))
  else $error("npu_rope_pack: a word changed before it was taken");
  AimBeforeWord_A :
  assert property (@(posedge clk_i) disable iff (!rst_ni) !(aim_q && b_full_q))
  else $error("npu_rope_pack: second lanes are a word before it has an address");
`endif

endmodule
