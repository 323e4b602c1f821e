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

  input logic valid_i,  // an octet comes, taken in a cycle with advance_i
  input npu_rows_pkg::smx_step_t step_i,  // its pass and its place in the row, with valid_i
  input logic [7:0] visible_i,  // lanes of visible columns, with valid_i; the others give zero
  input logic [15:0] max_i,  // int16, not below any visible score, with valid_i
  input npu_rows_pkg::octet_t score_i,  // int16, with valid_i

  output logic                    valid_o,  // two cycles of advance_i after valid_i
  output npu_rows_pkg::smx_step_t step_o,   // its step_i, with valid_o
  output npu_rows_pkg::octet_t    numer_o,  // 0 to 65,535, or to 255 if narrow_i; with valid_o
  output logic                    empty_o   // neither stage holds an octet
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

  logic shift_valid_q, valid_q;
  smx_step_t shift_step_q, step_q;
  octet_t power_q, numer_q;
  logic [RowLanes-1:0][4:0] shift_q;

  assign valid_o = valid_q;
  assign step_o  = step_q;
  assign numer_o = numer_q;
  assign empty_o = !shift_valid_q && !valid_q;

  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) begin
      shift_valid_q <= 1'b0;
      valid_q       <= 1'b0;
    end else if (advance_i) begin
      shift_valid_q <= valid_i;
      valid_q       <= shift_valid_q;
    end
  end

  // Table look-up; a lane that must be zero gets a zero here.
  always_ff @(posedge clk_i) begin
    if (advance_i && valid_i) begin
      shift_step_q <= step_i;
      for (int unsigned l = 0; l < RowLanes; l++) begin
        automatic logic [15:0] d = max_i - score_i[l];
        power_q[l] <= (visible_i[l] && d[15:6] <= 10'd17) ? Table[d[5:0]] : '0;
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
