// SPDX-License-Identifier: Apache-2.0
//
// Datapath of ROPE: pairs (a, b) become a cos - b sin and a sin + b cos, rounded by 14 bits and
// saturated, in three stages (operands, products, results). Operands and products are in the
// multipliers of the norms, which are for two or four pairs in a cycle. Words of lanes are kept
// until the cos/sin words that follow have used them: one of first lanes, two of second lanes, which
// may lie across words.

module npu_rope_turn #(
  parameter int unsigned Pairs = 4  // pairs in a cycle, 2 or 4
) (
  input logic clk_i,  // clock
  input logic rst_ni, // reset, active low

  // Neighbouring lanes are pairs, else halves; steady during an operation
  input logic neighbours_i,
  // Halves: first lanes in their last word, 1 to 16; steady during an operation
  input logic [4:0] tail_i,

  input  logic                    valid_i,  // a word; stays until ready, data stable
  output logic                    ready_o,  // taken; independent of valid_i, follows ready_i
  input  npu_rows_pkg::rope_tag_t tag_i,    // what it is for, with valid_i
  // 16 lanes of int8, or four cos/sin pairs of 14 fraction bits
  input  npu_pkg::word_t          word_i,

  // Multipliers
  output npu_rows_pkg::rope_work_t work_o,  // what they do in this cycle
  output logic [2*Pairs-1:0][7:0] work_lanes_o,  // first lanes, then second ones; with work_o.load
  output npu_rows_pkg::rope_turn_t [Pairs-1:0] work_turns_o,  // zero unless operands wait
  // From the cycle after work_o.multiply to that of the next
  input npu_rows_pkg::rope_product_t [2*Pairs-1:0] products_i,

  // Turned pairs, two cycles after their cos/sin word or later; zero past the head's end
  output logic                                     valid_o,  // stays until ready, all stable
  input  logic                                     ready_i,  // taken; may depend on valid_o
  output npu_rows_pkg::rope_tag_t                  tag_o,    // their tag_i, with valid_o
  output logic                    [Pairs-1:0][7:0] a_o,      // first lanes, int8, with valid_o
  output logic                    [Pairs-1:0][7:0] b_o,      // second lanes, int8, with valid_o

  output logic empty_o  // no pairs are inside; lanes that are kept do not count
);

  import npu_fixed_pkg::*;
  import npu_rows_pkg::*;

  localparam int unsigned Parts = 16 / Pairs;  // of a word, for as many pairs
  localparam int unsigned PartW = $clog2(Parts);
  localparam int unsigned OffsetW = $clog2(Pairs);

  typedef logic [Pairs-1:0][7:0] part_t;
  typedef part_t [Parts-1:0] parts_t;
  typedef part_t [2*Parts-1:0] seconds_t;
  typedef logic [2*Pairs-1:0][7:0] lanes_t;

  if (Pairs != 2 && Pairs != 4) begin : gen_bad_pairs
    $fatal(1, "npu_rope_turn: Pairs = %0d, must be 2 or 4", Pairs);
  end

  logic advance, group, more, beat_q;  // more: another beat for pairs of the same word
  parts_t a_q, older_q, newer_q;  // first lanes; second lanes
  seconds_t seconds;
  logic alone_q;  // second lanes are all in the newer word
  logic [PartW-1:0] part;
  logic [PartW:0] from_tail, second, behind;
  part_t a, b;
  lanes_t together, apart;  // neighbours; second lanes of two parts

  logic operand_valid_q, product_valid_q;
  rope_tag_t operand_tag_q, product_tag_q;
  rope_turn_t [Pairs-1:0] turn_q;

  assign advance = !valid_o || ready_i;
  assign group   = tag_i.pairs != '0;
  assign more    = group && !beat_q && 32'(tag_i.pairs) > Pairs;
  assign ready_o = advance && !more;
  assign empty_o = !operand_valid_q && !product_valid_q;

  always_ff @(posedge clk_i) begin
    if (!rst_ni) begin
      beat_q          <= 1'b0;
      operand_valid_q <= 1'b0;
      product_valid_q <= 1'b0;
    end else if (advance) begin
      beat_q          <= valid_i && more;
      operand_valid_q <= valid_i && group;
      product_valid_q <= operand_valid_q;
    end
  end

  // Lanes. A chunk's second lanes begin at byte `tail` of the older word, or of the newer one where
  // they end in a word that was there before the first lanes came, or came with them.
  always_ff @(posedge clk_i) begin
    if (advance && valid_i) begin
      if (tag_i.load_a) a_q <= parts_t'(word_i);
      if (tag_i.load_b) begin
        newer_q <= parts_t'(word_i);
        older_q <= newer_q;
      end
      if (tag_i.load_a || tag_i.load_b) alone_q <= tag_i.load_a;
    end
  end

  assign part = (Pairs == 4) ? PartW'(tag_i.group) : PartW'({tag_i.group, beat_q});
  assign from_tail = (PartW + 1)'(part) + tail_i[4:OffsetW];
  assign second = {from_tail[PartW] || alone_q, from_tail[PartW-1:0]};
  assign behind = second + 1'b1;
  assign seconds = seconds_t'({newer_q, older_q});
  assign apart = lanes_t'({seconds[behind], seconds[second]});
  assign together = lanes_t'({a_q[{part[PartW-2:0], 1'b1}], a_q[{part[PartW-2:0], 1'b0}]});

  always_comb begin
    for (int unsigned p = 0; p < Pairs; p++) begin
      a[p] = a_q[part][p];
      b[p] = apart[(OffsetW+1)'(p)+(OffsetW+1)'(tail_i[OffsetW-1:0])];
      if (neighbours_i) {b[p], a[p]} = {together[2*p+1], together[2*p]};
      if (32'(p) + (beat_q ? Pairs : 0) >= 32'(tag_i.pairs)) {a[p], b[p]} = '0;
    end
  end

  always_ff @(posedge clk_i) begin
    if (advance && valid_i && group) begin
      operand_tag_q      <= tag_i;
      operand_tag_q.last <= tag_i.last && !more;
    end
    if (advance) begin
      for (int unsigned p = 0; p < Pairs; p++) begin
        turn_q[p] <= rope_turn_t'(word_i[32*(beat_q?4-Pairs+p : p)+:32]);
        if (!valid_i || !group) turn_q[p] <= '0;
      end
    end
    if (advance && operand_valid_q) product_tag_q <= operand_tag_q;
  end

  assign work_o = '{load: advance && valid_i && group, multiply: advance && operand_valid_q};
  assign work_lanes_o = lanes_t'({b, a});
  assign work_turns_o = turn_q;

  // Results
  function automatic logic [7:0] rounded(logic signed [24:0] sum);
    return 8'(round_saturate(acc_t'(sum), 6'd14, 1'b0));
  endfunction

  assign valid_o = product_valid_q;
  assign tag_o   = product_tag_q;

  always_comb begin
    for (int unsigned p = 0; p < Pairs; p++) begin
      a_o[p] = rounded(25'($signed(products_i[p][0])) - 25'($signed(products_i[p+Pairs][1])));
      b_o[p] = rounded(25'($signed(products_i[p][1])) + 25'($signed(products_i[p+Pairs][0])));
    end
  end

endmodule
