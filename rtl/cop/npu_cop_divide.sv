// SPDX-License-Identifier: Apache-2.0
//
// Makes quotients of float32 by one divisor products, which a lane multiplies and rounds. A divisor's
// reciprocal is found two bits a cycle, in 28 cycles; dividends are brought to normal form at once.
//
// Of significands a and d of 24 bits with leading ones, R = floor(2^73 / d) + 1 is larger than 2^73 / d
// by at most 1, so that a * R / 2^48 is larger than a * 2^25 / d by a positive error below 2^-24. A
// fraction of a * 2^25 / d is 0 or at least 1 / d and at most 1 - 1 / d: the integer part is the
// quotient's, and the quotient is exact if and only if the upper 24 bits of the fraction are zero.
// There is no remainder to look at and nothing to correct.

module npu_cop_divide (
  input logic clk_i,   // clock
  input logic rst_ni,  // reset, active low
  input logic clear_i, // the divisor is lost

  input logic load_i,  // takes a divisor, in a cycle in which no dividend is in the lane or comes
  input npu_cop_float_pkg::float_t divisor_i,  // with load_i

  output logic ready_o,  // a level: there is a reciprocal
  output logic [50:0] reciprocal_o,  // with ready_o

  input npu_cop_float_pkg::float_t a_i,  // a dividend
  // Of a_i in the same cycle, with ready_o. Its significand: the dividend's, whose product with the
  // reciprocal is the quotient, or a special result
  output npu_cop_float_pkg::unrounded_t dividend_o
);

  import npu_cop_float_pkg::*;

  localparam logic [4:0] Turns = 5'd26;

  typedef enum logic [1:0] {
    StateNone,    // there is no divisor
    StateDivide,
    StateFinish,
    StateReady
  } state_e;

  state_e state_q;
  logic [4:0] left_q;

  assign ready_o = state_q == StateReady;

  always_ff @(posedge clk_i) begin
    if (!rst_ni) begin
      state_q <= StateNone;
      left_q  <= '0;
    end else if (clear_i) begin
      state_q <= StateNone;
      left_q  <= '0;
    end else begin
      if (load_i) begin
        state_q <= StateDivide;
        left_q  <= Turns;
      end else if (state_q == StateDivide) begin
        left_q <= left_q - 5'd1;
        if (left_q == 5'd1) state_q <= StateFinish;
      end else if (state_q == StateFinish) begin
        state_q <= StateReady;
      end
    end
  end

  // The divisor and its reciprocal. Two steps of a division that restores: bits of weight 51 to 0, of
  // which the first one is 0.
  logic [4:0] divisor_zeros;
  float_t divisor_q;
  logic [23:0] d_q;
  logic [24:0] rest_q, rest, rest_next;
  logic [51:0] reciprocal_q;
  logic [24:0] first, second;  // negative: the bit is 0
  logic signed [10:0] divisor_exponent_q;

  assign divisor_zeros = leading_zeros({significand_of(divisor_i), 40'd0}) [4:0];

  // A rest is less than d, its double less than 2d.
  assign first         = rest_q - 25'(d_q);
  assign rest          = {first[24] ? rest_q[23:0] : first[23:0], 1'b0};
  assign second        = rest - 25'(d_q);
  assign rest_next     = {second[24] ? rest[23:0] : second[23:0], 1'b0};

  always_ff @(posedge clk_i) begin
    if (load_i) begin
      divisor_q          <= divisor_i;
      d_q                <= significand_of(divisor_i) << divisor_zeros;
      divisor_exponent_q <= 11'(exponent_of(divisor_i)) - 11'(divisor_zeros);
      rest_q             <= 25'd1 << 22;
    end else if (state_q == StateDivide) begin
      reciprocal_q <= {reciprocal_q[49:0], !first[24], !second[24]};
      rest_q       <= rest_next;
    end else if (state_q == StateFinish) begin
      reciprocal_q <= reciprocal_q + 52'd1;
    end
  end

  assign reciprocal_o = reciprocal_q[50:0];

  // Normal form, special values
  logic [4:0] zeros;
  logic sign, special;
  float_t special_y;

  assign zeros = leading_zeros({significand_of(a_i), 40'd0}) [4:0];
  assign sign  = a_i[31] ^ divisor_q[31];

  always_comb begin
    special   = 1'b1;
    special_y = FloatNan;
    if (is_nan(a_i) || is_nan(divisor_q)) special_y = FloatNan;
    else if (is_inf(divisor_q)) special_y = is_inf(a_i) ? FloatNan : {sign, 31'd0};
    else if (is_zero(divisor_q)) special_y = is_zero(a_i) ? FloatNan : {sign, FloatInf[30:0]};
    else if (is_inf(a_i)) special_y = {sign, FloatInf[30:0]};
    else special = 1'b0;
  end

  assign dividend_o = '{
          special: special,
          sign: sign,
          exponent: 11'(exponent_of(a_i)) - 11'(zeros) - divisor_exponent_q + 11'sd127,
          significand: special ? 48'(special_y) : 48'(significand_of(a_i) << zeros)
      };

endmodule
