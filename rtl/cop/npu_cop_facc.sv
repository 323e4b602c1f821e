// SPDX-License-Identifier: Apache-2.0
//
// Adds products of float32 to a double, in order, each sum rounded once to nearest, ties to even. A
// product is exact in 48 bits and waits while the sum before it is made: three cycles to align, add
// and round. Where both have nearly the same magnitude and opposite signs nothing is lost and the
// difference only moves left; else it moves by a place at most and is rounded.
//
// What is summed are multiples of 2^-298 below 2^1000: no sum is a subnormal double or overflows.

module npu_cop_facc (
  input logic clk_i,   // clock
  input logic rst_ni,  // reset, active low
  input logic clear_i, // drops all terms; the sum is +0

  input logic load_i,  // sets the sum; in a cycle with idle_o and without valid_i
  input npu_cop_float_pkg::double_t value_i,  // with load_i: a sum, infinite or the canonical NaN

  input logic valid_i,  // may be withdrawn
  output logic ready_o,  // whether the term is taken
  input npu_cop_float_pkg::float_t a_i,  // with valid_i
  input npu_cop_float_pkg::float_t b_i,  // with valid_i

  output logic idle_o,  // all terms that were taken are in the sum
  output logic idle_next_o,  // they are or will be in the next cycle
  output npu_cop_float_pkg::double_t value_o  // the sum so far; five cycles after a term it has it
);

  import npu_cop_float_pkg::*;

  typedef enum logic [1:0] {
    StateAlign,
    StateAdd,
    StateRound
  } state_e;

  state_e  state_q;
  double_t sum_q;
  logic factors_valid_q, term_valid_q, take, multiply, align;

  assign multiply    = factors_valid_q && (!term_valid_q || align);
  assign ready_o     = !factors_valid_q || multiply;
  assign take        = valid_i && ready_o;
  assign align       = state_q == StateAlign && term_valid_q;
  assign idle_o      = state_q == StateAlign && !term_valid_q && !factors_valid_q;
  assign value_o     = sum_q;

  assign idle_next_o = state_q != StateAdd && !term_valid_q && !factors_valid_q;

  always_ff @(posedge clk_i) begin
    if (!rst_ni) begin
      factors_valid_q <= 1'b0;
      term_valid_q    <= 1'b0;
      state_q         <= StateAlign;
    end else if (clear_i) begin
      factors_valid_q <= 1'b0;
      term_valid_q    <= 1'b0;
      state_q         <= StateAlign;
    end else begin
      if (take) factors_valid_q <= 1'b1;
      else if (multiply) factors_valid_q <= 1'b0;
      if (multiply) term_valid_q <= 1'b1;
      else if (align) term_valid_q <= 1'b0;
      unique case (state_q)
        StateAlign: if (align) state_q <= StateAdd;
        StateAdd:   state_q <= StateRound;
        default:    state_q <= StateAlign;
      endcase
    end
  end

  // Factors in the form of normal ones, and how far those that are subnormal have moved to it
  logic factors_nan_q, factors_infinite_q, factors_zero_q, factors_sign_q;
  logic [10:0] factors_exponent_q;  // biased as in a double, less one, of a product's highest bit
  logic [23:0] a_q, b_q;
  logic [4:0] a_zeros, b_zeros, a_zeros_q, b_zeros_q;
  logic nan;

  assign a_zeros = 5'(leading_zeros({significand_of(a_i), 40'd0}));
  assign b_zeros = 5'(leading_zeros({significand_of(b_i), 40'd0}));

  always_comb begin
    nan = is_nan(a_i) || is_nan(b_i);
    if ((is_inf(a_i) && is_zero(b_i)) || (is_zero(a_i) && is_inf(b_i))) nan = 1'b1;
  end

  always_ff @(posedge clk_i) begin
    if (take) begin
      factors_nan_q <= nan;
      factors_infinite_q <= is_inf(a_i) || is_inf(b_i);
      factors_zero_q <= is_zero(a_i) || is_zero(b_i);
      factors_sign_q <= a_i[31] ^ b_i[31];
      factors_exponent_q <= 11'(exponent_of(a_i)) + 11'(exponent_of(b_i)) + 11'd769;
      a_q <= significand_of(a_i) << a_zeros;
      b_q <= significand_of(b_i) << b_zeros;
      a_zeros_q <= a_zeros;
      b_zeros_q <= b_zeros;
    end
  end

  // Term: the product, whose highest bit is one after a place at most
  logic term_nan_q, term_infinite_q, term_sign_q;
  logic [10:0] term_exponent_q;  // biased as in a double; 0 where the product is
  logic [10:0] exponent;
  logic [47:0] product, term_q;

  assign product  = 48'(a_q) * 48'(b_q);
  assign exponent = factors_exponent_q - 11'(a_zeros_q) - 11'(b_zeros_q);

  always_ff @(posedge clk_i) begin
    if (multiply) begin
      term_nan_q      <= factors_nan_q;
      term_infinite_q <= factors_infinite_q;
      term_sign_q     <= factors_sign_q;
      term_exponent_q <= product[47] ? exponent + 11'd1 : exponent;
      term_q          <= product[47] ? product : {product[46:0], 1'b0};
      if (factors_zero_q) begin
        term_exponent_q <= '0;
        term_q          <= '0;
      end
    end
  end

  // Align. A double that is not zero is a normal one.
  logic [10:0] above, under;  // by how much the exponent of either is larger
  logic [52:0] term_significand, sum_significand, smaller_one;
  logic term_larger, sum_infinite, sum_nan;
  logic [  5:0] places;  // 63 where it is so many or more: all is below the larger one then
  logic [115:0] wide;

  always_comb begin
    term_significand = {term_q, 5'd0};
    sum_significand = {sum_q[62:52] != '0, sum_q[51:0]};
    sum_infinite = sum_q[62:52] == '1 && sum_q[51:0] == '0;
    sum_nan = sum_q[62:52] == '1 && sum_q[51:0] != '0;
    term_larger = {term_exponent_q, term_significand} > {sum_q[62:52], sum_significand};
    above = term_exponent_q - sum_q[62:52];
    under = sum_q[62:52] - term_exponent_q;
    places = term_larger ? above[5:0] | {6{above[10:6] != '0}}
        : under[5:0] | {6{under[10:6] != '0}};
    smaller_one = term_larger ? sum_significand : term_significand;
    wide = {smaller_one, 63'd0} >> places;
  end

  logic special_q, sign_q, differ_q;
  double_t special_value_q;
  logic [10:0] exponent_q;
  logic [52:0] larger_q;
  logic [54:0] smaller_q;  // two bits more than the larger one
  logic [10:0] below, below_q;  // whether there is anything below them, in groups of six bits

  logic [65:0] tail;

  assign tail = {wide[60:0], 5'd0};

  always_comb begin
    for (int unsigned i = 0; i < 11; i++) below[i] = tail[6*i+:6] != '0;
  end

  always_ff @(posedge clk_i) begin
    if (align) begin
      special_q       <= term_nan_q || term_infinite_q || sum_infinite || sum_nan;
      special_value_q <= sum_infinite ? sum_q : {term_sign_q, 11'h7ff, 52'd0};
      if (sum_nan || term_nan_q ||
          (sum_infinite && term_infinite_q && term_sign_q != sum_q[63])) begin
        special_value_q <= DoubleNan;
      end
      sign_q     <= term_larger ? term_sign_q : sum_q[63];
      differ_q   <= term_sign_q != sum_q[63];
      exponent_q <= term_larger ? term_exponent_q : sum_q[62:52];
      larger_q   <= term_larger ? term_significand : sum_significand;
      smaller_q  <= wide[115:61];
      below_q    <= below;
    end
  end

  // Add. The larger one has its highest bit at 55; the lowest bit stands for all below it.
  logic [55:0] smaller;
  logic [56:0] raw_q;

  assign smaller = {smaller_q, below_q != '0};

  always_ff @(posedge clk_i) begin
    if (state_q == StateAdd) begin
      raw_q <= differ_q ? {1'b0, larger_q, 3'd0} - 57'(smaller)
          : {1'b0, larger_q, 3'd0} + 57'(smaller);
    end
  end

  // Round, or move left. The exponent is less by one than it is packed: the highest bit adds it.
  logic [ 5:0] zeros;
  logic [51:0] left;  // below the highest bit
  logic [52:0] kept;
  logic [10:0] far_field, near_field;
  logic up;
  double_t result;

  always_comb begin
    zeros      = leading_zeros({raw_q, 7'd0});
    left       = 52'((raw_q << zeros) >> 4);
    near_field = exponent_q - 11'(zeros);

    if (raw_q[56]) begin
      kept      = raw_q[56:4];
      up        = raw_q[3] && (raw_q[4] || raw_q[2:0] != '0);
      far_field = exponent_q;
    end else if (raw_q[55]) begin
      kept      = raw_q[55:3];
      up        = raw_q[2] && (raw_q[3] || raw_q[1:0] != '0);
      far_field = exponent_q - 11'd1;
    end else begin
      kept      = raw_q[54:2];
      up        = raw_q[1] && (raw_q[2] || raw_q[0]);
      far_field = exponent_q - 11'd2;
    end

    if (special_q) result = special_value_q;
    else if (raw_q == '0) result = {sign_q && !differ_q, 63'd0};
    else if (raw_q[56:54] != '0) result = {sign_q, {far_field, 52'd0} + 63'(kept) + 63'(up)};
    else result = {sign_q, near_field + 11'd1, left};
  end

  always_ff @(posedge clk_i) begin
    if (!rst_ni) sum_q <= '0;
    else if (clear_i) sum_q <= '0;
    else if (load_i) sum_q <= value_i;
    else if (state_q == StateRound) sum_q <= result;
  end

endmodule
