// SPDX-License-Identifier: Apache-2.0
//
// Softmax numerators of an octet, two pipeline stages: d = max - score in steps of 1/64 of a power
// of two, T[fr] = round(65535 * 2^(-fr/64)) for the fraction, then the rounded shift by the integer
// part. 16-bit numerators are rs(T, ip), 8-bit ones min(255, rs(T, ip + 8)). Invisible lanes and
// lanes further than 17 bits below the maximum give zero.

module npu_exp (
  input logic clk_i,  // clock
  input logic rst_ni, // reset, active low

  input logic advance_i,  // both stages move; else they keep what they hold
  input logic narrow_i,   // 8-bit numerators instead of 16-bit; steady while an octet is inside

  // Taken in a cycle with advance_i; those of the first pass have done their work and end here
  input npu_rows_pkg::smx_scores_t scores_i,

  output npu_rows_pkg::smx_numers_t numers_o,  // two cycles of advance_i later
  output logic empty_o  // neither stage holds an octet
);

  import npu_rows_pkg::*;

  typedef logic [63:0][15:0] table_t;

  // Powers of 2^(-1/64), held as 65535 * 2^(-i/64) with 64 fraction bits; the truncation errors of
  // all 63 steps stay below 2^-40, the nearest tie is 0.008 away.
  function automatic table_t exp_table();
    logic [143:0] power;
    power = {64'd0, 16'hffff, 64'd0};
    for (int unsigned i = 0; i < 64; i++) begin
      exp_table[i] = 16'((power + (144'd1 << 63)) >> 64);
      power = (power * 144'hfd3e_0c0c_f486_c175) >> 64;
    end
  endfunction

  localparam table_t Table = exp_table();

  logic enter, shift_valid_q, valid_q;
  smx_step_t shift_step_q, step_q;
  octet_t power_q, numer_q;
  logic [RowLanes-1:0][4:0] shift_q;

  assign enter    = scores_i.valid && scores_i.step.pass != SmxPassMax;
  assign numers_o = '{valid: valid_q, step: step_q, numer: numer_q};
  assign empty_o = !shift_valid_q && !valid_q;

  always_ff @(posedge clk_i) begin
    if (!rst_ni) begin
      shift_valid_q <= 1'b0;
      valid_q       <= 1'b0;
    end else if (advance_i) begin
      shift_valid_q <= enter;
      valid_q       <= shift_valid_q;
    end
  end

  // Table look-up; a lane that must be zero gets a zero here.
  always_ff @(posedge clk_i) begin
    if (advance_i && enter) begin
      shift_step_q <= scores_i.step;
      for (int unsigned l = 0; l < RowLanes; l++) begin
        automatic logic [15:0] d = scores_i.max - scores_i.score[l];
        power_q[l] <= (scores_i.visible[l] && d[15:6] <= 10'd17) ? Table[d[5:0]] : '0;
        shift_q[l] <= d[10:6];
      end
    end
  end

  always_ff @(posedge clk_i) begin
    if (advance_i && shift_valid_q) begin
      step_q <= shift_step_q;
      for (int unsigned l = 0; l < RowLanes; l++) begin
        automatic logic [5:0] shift = 6'(shift_q[l]) + (narrow_i ? 6'd8 : 6'd0);
        automatic
        logic [15:0]
        e = 16'(npu_fixed_pkg::round_shift(
            npu_fixed_pkg::acc_t'({1'b0, power_q[l]}), shift
        ));
        numer_q[l] <= (narrow_i && e > 16'd255) ? 16'd255 : e;
      end
    end
  end

endmodule
