// SPDX-License-Identifier: Apache-2.0
//
// First two stages of SOFTMAX: unpack an octet of scores to 16 bits, where each two of them are
// compared at once, and keep the running maximum of the row. Lanes that are not visible take part
// as the lowest score, which changes no maximum. When an octet of a later pass leaves this block,
// the maximum beside it is that of its whole row.

module npu_smx_max (
  input logic clk_i,  // clock
  input logic rst_ni, // reset, active low

  input logic advance_i,  // both stages move; else they keep what they hold
  input logic score8_i,   // int8 scores instead of int16; steady while an octet is inside

  input logic                   valid_i,  // an octet comes, taken in a cycle with advance_i
  input npu_rows_pkg::smx_tag_t tag_i,    // its pass, place and visible lanes, with valid_i
  input npu_pkg::word_t         word_i,   // eight int16, or 16 int8: tag_i.upper names the half

  output npu_rows_pkg::smx_scores_t scores_o,  // two cycles of advance_i after valid_i
  output logic                      empty_o    // neither stage holds an octet
);

  import npu_rows_pkg::*;

  localparam logic signed [15:0] Lowest = 16'sh8000;

  logic unpack_valid_q, valid_q;
  smx_step_t unpack_step_q, step_q;
  logic [RowLanes-1:0] unpack_visible_q, visible_q;
  octet_t unpack, unpack_q, score_q;
  logic [RowLanes/2-1:0][15:0] pair_q;  // the larger of each two of unpack_q
  logic signed [15:0] max_q;

  assign scores_o = '{
          valid: valid_q,
          step: step_q,
          visible: visible_q,
          max: max_q,
          score: score_q
      };
  assign empty_o = !unpack_valid_q && !valid_q;

  // Compared without signs, the highest bit being turned round, the carry alone chooses.
  function automatic logic signed [15:0] larger(logic signed [15:0] a, logic signed [15:0] b);
    return ({!a[15], a[14:0]} < {!b[15], b[14:0]}) ? b : a;
  endfunction

  function automatic logic signed [15:0] largest(logic [RowLanes/2-1:0][15:0] scores);
    for (int unsigned span = RowLanes / 4; span > 0; span /= 2) begin
      for (int unsigned l = 0; l < span; l++) scores[l] = larger(scores[l], scores[l+span]);
    end
    return scores[0];
  endfunction

  always_ff @(posedge clk_i) begin
    if (!rst_ni) begin
      unpack_valid_q <= 1'b0;
      valid_q        <= 1'b0;
    end else if (advance_i) begin
      unpack_valid_q <= valid_i;
      valid_q        <= unpack_valid_q;
    end
  end

  always_comb begin
    for (int unsigned l = 0; l < RowLanes; l++) begin
      automatic logic [7:0] narrow = tag_i.upper ? word_i[64+8*l+:8] : word_i[8*l+:8];
      if (!tag_i.visible[l]) unpack[l] = Lowest;
      else unpack[l] = score8_i ? 16'($signed(narrow)) : word_i[16*l+:16];
    end
  end

  always_ff @(posedge clk_i) begin
    if (advance_i && valid_i) begin
      unpack_step_q    <= tag_i.step;
      unpack_visible_q <= tag_i.visible;
      unpack_q         <= unpack;
      for (int unsigned l = 0; l < RowLanes / 2; l++) begin
        pair_q[l] <= larger(unpack[l], unpack[l+RowLanes/2]);
      end
    end
  end

  always_ff @(posedge clk_i) begin
    if (advance_i && unpack_valid_q) begin
      step_q    <= unpack_step_q;
      visible_q <= unpack_visible_q;
      score_q   <= unpack_q;
      if (unpack_step_q.pass == SmxPassMax) begin
        max_q <= larger(largest(pair_q), unpack_step_q.first ? Lowest : max_q);
      end
    end
  end

endmodule
