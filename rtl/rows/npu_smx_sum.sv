// SPDX-License-Identifier: Apache-2.0
//
// Last stages of SOFTMAX: the row sum of the numerators, the optional multiplication with its
// reciprocal (probabilities), and packing into words. Numerators are packed as they arrive, and the
// sum is handed out in the cycle after the last octet of a row. For probabilities an octet passes
// two more stages, in as many beats as the multipliers need for it; the reciprocal of the sum was
// registered when the summing pass ended, which is before the first octet of the writing pass needs
// it.

module npu_smx_sum #(
  parameter int unsigned Lanes = 8  // multipliers: 4 or 8
) (
  input logic clk_i,  // clock
  input logic rst_ni, // reset, active low

  input logic                  start_i,   // pulse: a new operation, only while no octet is inside
  input npu_isa_pkg::smx_out_e out_i,     // steady from the cycle after start_i to the next
  // The stages move and the results are taken; else they stay
  input logic                  advance_i,

  input npu_rows_pkg::smx_numers_t numers_i,  // an octet, taken with advance_i without hold_o
  output logic hold_o,  // the octet inside needs another beat; independent of all inputs

  // Results: words of numerators in the cycle of numers_i, of probabilities two cycles of advance_i
  // after its last beat began; the sum one cycle of advance_i after the last octet of its row
  output npu_pkg::row_word_t word_o,  // 8 or 16 columns; taken with advance_i
  output logic sum_valid_o,  // taken with advance_i; never together with a word
  output logic [31:0] sum_o,  // sum of its numerators, unsigned, with sum_valid_o
  output logic empty_o  // neither stage holds an octet
);

  import npu_pkg::*;
  import npu_isa_pkg::*;
  import npu_rows_pkg::*;

  localparam int unsigned Beats = RowLanes / Lanes;

  if (Lanes != 4 && Lanes != 8) begin : gen_bad_lanes
    $fatal(1, "npu_smx_sum: Lanes = %0d, must be 4 or 8", Lanes);
  end

  logic take, multiply, beat_q, prod_beat_q;
  logic prob, sum_valid_q, prod_valid_q, adds, sum_done;
  smx_pass_e pass_q;
  logic last_q, prod_last_q;
  octet_t numer_q;
  logic [31:0] sum_q, octet_sum;
  logic [15:0] recip, recip_q;
  logic [4:0] msb, msb_q;
  logic [Lanes-1:0][15:0] numer;  // of this beat
  logic [Lanes-1:0][31:0] prod_q;
  logic [Lanes-1:0][7:0] probs, probs_q;  // of this beat, of the one before

  logic octet_valid, octet_last, half_q;
  logic [63:0] narrow, low_q;

  assign prob = out_i == SmxOutProb8;
  assign empty_o = !sum_valid_q && !prod_valid_q;
  assign sum_o = sum_q;
  assign sum_valid_o = sum_valid_q && !prob && pass_q == SmxPassOut && last_q;

  assign multiply = sum_valid_q && prob && pass_q == SmxPassOut;
  assign hold_o = multiply && beat_q != 1'(Beats - 1);
  assign take = advance_i && !hold_o;

  // Sum
  assign adds = numers_i.valid && (numers_i.step.pass == SmxPassSum ||
                                   (numers_i.step.pass == SmxPassOut && !prob));

  always_comb begin
    octet_sum = '0;
    for (int unsigned l = 0; l < RowLanes; l++) octet_sum += 32'(numers_i.numer[l]);
  end

  always_ff @(posedge clk_i) begin
    if (!rst_ni) begin
      sum_valid_q <= 1'b0;
      sum_q       <= '0;
    end else if (take) begin
      sum_valid_q <= numers_i.valid;
      if (adds) sum_q <= numers_i.step.first ? octet_sum : sum_q + octet_sum;
    end
  end

  // Probabilities
  assign sum_done = sum_valid_q && pass_q == SmxPassSum && last_q;

  npu_recip u_recip (
    .sum_i  (sum_q),
    .recip_o(recip),
    .msb_o  (msb)
  );

  always_ff @(posedge clk_i) begin
    if (!rst_ni) begin
      prod_valid_q <= 1'b0;
      beat_q       <= 1'b0;
    end else if (advance_i) begin
      prod_valid_q <= multiply;
      beat_q       <= hold_o;
    end
  end

  always_comb begin
    for (int unsigned l = 0; l < Lanes; l++) numer[l] = numer_q[beat_q?RowLanes-Lanes+l : l];
  end

  always_ff @(posedge clk_i) begin
    if (take && numers_i.valid) begin
      pass_q  <= numers_i.step.pass;
      last_q  <= numers_i.step.last;
      numer_q <= numers_i.numer;
    end
    if (advance_i && sum_done) begin
      recip_q <= recip;
      msb_q   <= msb;
    end
    if (advance_i && multiply) begin
      prod_last_q <= last_q;
      prod_beat_q <= beat_q;
      for (int unsigned l = 0; l < Lanes; l++) prod_q[l] <= 32'(numer[l]) * 32'(recip_q);
    end
    if (advance_i && prod_valid_q) probs_q <= probs;
  end

  // The octet to pack, and its low bytes
  always_comb begin
    octet_valid = numers_i.valid && numers_i.step.pass == SmxPassOut;
    if (prob) octet_valid = prod_valid_q && prod_beat_q == 1'(Beats - 1);
    octet_last = prob ? prod_last_q : numers_i.step.last;
    for (int unsigned l = 0; l < Lanes; l++) probs[l] = probability(prod_q[l], msb_q);
    narrow = '0;
    if (octet_valid) begin
      for (int unsigned l = 0; l < RowLanes; l++) narrow[8*l+:8] = numers_i.numer[l][7:0];
      if (prob) narrow = 64'({probs, probs_q} >> (8 * (2 * Lanes - RowLanes)));
    end
  end

  // Words: one octet of 16-bit numerators, or two of bytes (a row has an even number of octets)
  assign word_o.valid = octet_valid && (out_i == SmxOutNumer16 || half_q);
  assign word_o.data  = (out_i == SmxOutNumer16) ? word_t'(numers_i.numer) : {narrow, low_q};
  assign word_o.last  = octet_last;

  always_ff @(posedge clk_i) begin
    if (!rst_ni) begin
      half_q <= 1'b0;
      low_q  <= '0;
    end else if (start_i) begin
      half_q <= 1'b0;
    end else if (advance_i && octet_valid) begin
      half_q <= !half_q;
      low_q  <= narrow;
    end
  end

`ifndef SYNTHESIS
  WholeWords_A :
  assert property (@(posedge clk_i) disable iff (!rst_ni)
                   octet_valid && octet_last && out_i != SmxOutNumer16 |-> half_q)
  else $error("npu_smx_sum: a row of bytes ends inside a word");
  for (genvar l = 0; l < int'(Lanes); l++) begin : gen_lane
    SmallProduct_A :
    assert property (@(posedge clk_i) disable iff (!rst_ni)
                     prod_valid_q |-> prod_q[l] >> (6'd17 + 6'(msb_q)) == '0)
    else $error("npu_smx_sum: a numerator is larger than the sum of its row");
  end
  OneResult_A :
  assert property (@(posedge clk_i) disable iff (!rst_ni) !(word_o.valid && sum_valid_o))
  else $error("npu_smx_sum: a word and a row sum in the same cycle");
`endif

endmodule
