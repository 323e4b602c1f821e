// SPDX-License-Identifier: Apache-2.0
//
// Datapath of ROPE: four pairs (a, b) per cycle become a cos - b sin and a sin + b cos, rounded by
// 14 bits and saturated, in three stages (operands, products, results). Operands and products are
// in the multipliers of the norms. Words of lanes are kept until the cos/sin words that follow have
// used them: one of first lanes, two of second lanes, which may lie across words.

module npu_rope_turn (
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
  // From the cycle after work_o.multiply to that of the next
  input npu_rows_pkg::rope_products_t products_i,

  // Four turned pairs, two cycles after their cos/sin word or later; zero past the head's end
  output logic                               valid_o,  // stays until ready, all stable
  input  logic                               ready_i,  // taken; may depend on valid_o
  output npu_rows_pkg::rope_tag_t            tag_o,    // their tag_i, with valid_o
  output logic                    [3:0][7:0] a_o,      // first lanes, int8, with valid_o
  output logic                    [3:0][7:0] b_o,      // second lanes, int8, with valid_o

  output logic empty_o  // no pairs are inside; lanes that are kept do not count
);

  import npu_fixed_pkg::*;
  import npu_rows_pkg::*;

  logic advance, group;
  lanes_t a_q, older_q, newer_q;  // first lanes; second lanes
  logic [3:0][7:0] a, b;
  logic [RowLanes-1:0][7:0] lanes;

  logic operand_valid_q, product_valid_q;
  rope_tag_t operand_tag_q, product_tag_q;
  turns_t turn_q;

  assign advance = !valid_o || ready_i;
  assign ready_o = advance;
  assign group   = tag_i.pairs != '0;
  assign empty_o = !operand_valid_q && !product_valid_q;

  always_ff @(posedge clk_i) begin
    if (!rst_ni) begin
      operand_valid_q <= 1'b0;
      product_valid_q <= 1'b0;
    end else if (advance) begin
      operand_valid_q <= valid_i && group;
      product_valid_q <= operand_valid_q;
    end
  end

  // Lanes. A chunk's second lanes begin at byte `tail` of the older word.
  always_ff @(posedge clk_i) begin
    if (advance && valid_i) begin
      if (tag_i.load_a) begin
        a_q     <= lanes_t'(word_i);
        older_q <= tag_i.load_b ? lanes_t'(word_i) : newer_q;
      end else if (tag_i.load_b) begin
        newer_q <= lanes_t'(word_i);
      end
    end
  end

  always_comb begin
    for (int unsigned p = 0; p < 4; p++) begin
      automatic logic [3:0] pair = {tag_i.group, 2'(p)};
      automatic logic [4:0] second = 5'(pair) + tail_i;
      a[p] = neighbours_i ? a_q[{pair[2:0], 1'b0}] : a_q[pair];
      if (neighbours_i) b[p] = a_q[{pair[2:0], 1'b1}];
      else b[p] = second[4] ? newer_q[second[3:0]] : older_q[second[3:0]];
      if (3'(p) >= tag_i.pairs) {a[p], b[p]} = '0;
    end
  end

  always_ff @(posedge clk_i) begin
    if (advance && valid_i && group) begin
      operand_tag_q <= tag_i;
      turn_q        <= turns_t'(word_i);
    end
    if (advance && operand_valid_q) product_tag_q <= operand_tag_q;
  end

  for (genvar p = 0; p < 4; p++) begin : gen_pair
    assign lanes[p]   = a[p];
    assign lanes[p+4] = b[p];
  end

  assign work_o = '{
          load: advance && valid_i && group,
          lanes: lanes,
          multiply: advance && operand_valid_q,
          turns: turn_q
      };

  // Results
  function automatic logic [7:0] rounded(logic signed [24:0] sum);
    return 8'(round_saturate(acc_t'(sum), 6'd14, 1'b0));
  endfunction

  assign valid_o = product_valid_q;
  assign tag_o   = product_tag_q;

  always_comb begin
    for (int unsigned p = 0; p < 4; p++) begin
      a_o[p] = rounded(25'($signed(products_i[p][0])) - 25'($signed(products_i[p+4][1])));
      b_o[p] = rounded(25'($signed(products_i[p][1])) + 25'($signed(products_i[p+4][0])));
    end
  end

endmodule
