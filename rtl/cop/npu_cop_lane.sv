// SPDX-License-Identifier: Apache-2.0
//
// A lane of float32 operations: sum, difference and product with one rounding, and ReLU. One element a
// cycle, results in order six cycles later. For a sum the operand of smaller magnitude moves to the
// weight of the larger one; three more bits, of which the last one collects what falls off, suffice
// to round it. A product is exact in 48 bits. A lane that divides multiplies with a reciprocal of 51 bits
// as well (npu_cop_divide says why that is a quotient), in the same stages.

module npu_cop_lane #(
  parameter bit Divides = 1'b0  // LaneDiv is among its operations
) (
  input logic clk_i,   // clock
  input logic rst_ni,  // reset, active low
  input logic clear_i, // drops what is inside

  input logic valid_i,  // may be withdrawn
  output logic ready_o,  // whether the element is taken
  input npu_cop_float_pkg::lane_op_e op_i,  // with valid_i
  input npu_cop_float_pkg::float_t a_i,  // with valid_i
  input npu_cop_float_pkg::float_t b_i,  // with valid_i; not used by LaneRelu and LaneDiv
  input npu_cop_float_pkg::unrounded_t dividend_i,  // of a_i, with valid_i; used by LaneDiv alone
  input logic [50:0] reciprocal_i,  // a level: what dividends are multiplied with

  output logic valid_o,  // stays until ready_i
  input logic ready_i,  // takes the result
  output npu_cop_float_pkg::float_t y_o  // with valid_o
);

  import npu_cop_float_pkg::*;

  logic advance;
  logic [2:0] valid_q;

  assign advance = ready_i || !valid_o;
  assign ready_o = advance;

  always_ff @(posedge clk_i) begin
    if (!rst_ni) begin
      valid_q <= '0;
    end else if (clear_i) begin
      valid_q <= '0;
    end else if (advance) begin
      valid_q <= {valid_q[1:0], valid_i};
    end
  end

  // First stage: order of magnitudes, special values
  logic multiplies, swaps, differ, a_highest, b_highest, special;
  float_t b, special_y;
  logic [7:0] a_exponent, b_exponent, larger_exponent, smaller_exponent;
  logic [23:0] larger_significand, smaller_significand;

  always_comb begin
    b                   = {b_i[31] ^ (op_i == LaneSub), b_i[30:0]};
    multiplies          = op_i == LaneMul;
    swaps               = a_i[30:0] < b[30:0];
    differ              = a_i[31] != b[31];
    a_exponent          = exponent_of(a_i);
    b_exponent          = exponent_of(b);
    larger_exponent     = swaps ? b_exponent : a_exponent;
    smaller_exponent    = swaps ? a_exponent : b_exponent;
    larger_significand  = swaps ? significand_of(b) : significand_of(a_i);
    smaller_significand = swaps ? significand_of(a_i) : significand_of(b);

    // Infinite or NaN; which of them is the larger one does not matter.
    a_highest           = a_i[30:23] == '1;
    b_highest           = b[30:23] == '1;
    special             = a_highest || b_highest;
    special_y           = {multiplies ? differ : a_highest ? a_i[31] : b[31], FloatInf[30:0]};
    if (is_nan(a_i) || is_nan(b)) special_y = FloatNan;
    else if (multiplies && (is_zero(a_i) || is_zero(b))) special_y = FloatNan;
    else if (!multiplies && a_highest && b_highest && differ) special_y = FloatNan;

    if (op_i == LaneRelu) begin
      special   = 1'b1;
      special_y = relu(a_i);
    end
  end

  unrounded_t first_q;  // its significand: a special result, the smaller operand, or the dividend
  logic multiplies_q, divides_q, differ_q;
  logic [23:0] larger_q;
  logic [ 7:0] distance_q;

  always_ff @(posedge clk_i) begin
    if (advance) begin
      first_q.special <= special;
      first_q.significand <= special ? 48'(special_y) : 48'(smaller_significand);
      differ_q <= differ;
      larger_q <= larger_significand;
      distance_q <= larger_exponent - smaller_exponent;
      if (multiplies) begin
        first_q.sign     <= differ;
        first_q.exponent <= 11'(a_exponent) + 11'(b_exponent) - 11'd126;
      end else begin
        first_q.sign     <= swaps ? b[31] : a_i[31];
        first_q.exponent <= 11'(larger_exponent) + 11'd1;
      end
      if (Divides && op_i == LaneDiv) first_q <= dividend_i;
      multiplies_q <= multiplies || (Divides && op_i == LaneDiv);
      divides_q    <= Divides && op_i == LaneDiv;
    end
  end

  // Second stage: parts of the product, or the smaller one moved to its place
  logic [50:0] factor;
  logic [2:0][40:0] part, part_q;  // of 17 bits of the factor
  logic [ 4:0] places;
  logic [53:0] wide;

  assign factor = (Divides && divides_q) ? reciprocal_i : 51'(larger_q);
  for (genvar i = 0; i < 3; i++) begin : gen_part
    assign part[i] = 41'(first_q.significand[23:0]) * 41'(factor[17*i+:17]);
  end

  assign places = distance_q > 8'd27 ? 5'd27 : distance_q[4:0];
  assign wide   = {first_q.significand[23:0], 30'd0} >> places;

  unrounded_t second_q;  // its significand: a special result
  logic multiplies_second_q, divides_second_q, differ_second_q;
  logic [23:0] larger_second_q;
  logic [26:0] smaller_q;

  always_ff @(posedge clk_i) begin
    if (advance) begin
      second_q            <= first_q;
      part_q              <= part;
      multiplies_second_q <= multiplies_q;
      divides_second_q    <= divides_q;
      differ_second_q     <= differ_q;
      larger_second_q     <= larger_q;
      smaller_q           <= {wide[53:28], wide[27:0] != '0};
    end
  end

  // Third stage: product or sum. Of a dividend's product the lower 24 bits do not count, and 24 above
  // them only say whether the quotient is exact. A sum that is exactly zero is +0 unless both operands
  // are negative.
  logic [73:0] whole;
  logic [47:0] product;
  logic [27:0] sum;
  unrounded_t third_q;
  logic [5:0] right_q;

  assign whole = (74'(part_q[2]) << 34) + (74'(part_q[1]) << 17) + 74'(part_q[0]);
  assign product = (Divides && divides_second_q) ?
      {whole[73:48], whole[47:24] != '0, 21'd0} : whole[47:0];
  assign sum = differ_second_q ? {1'b0, larger_second_q, 3'd0} - 28'(smaller_q)
      : {1'b0, larger_second_q, 3'd0} + 28'(smaller_q);

  always_ff @(posedge clk_i) begin
    if (advance) begin
      third_q <= second_q;
      right_q <= places_of_subnormal(second_q.exponent);
      if (!second_q.special) begin
        third_q.significand <= multiplies_second_q ? product : {sum, 20'd0};
        if (!multiplies_second_q && sum == '0 && differ_second_q) third_q.sign <= 1'b0;
      end
    end
  end

  npu_cop_round u_round (
    .clk_i    (clk_i),
    .rst_ni   (rst_ni),
    .clear_i  (clear_i),
    .advance_i(advance),
    .valid_i  (valid_q[2]),
    .value_i  (third_q),
    .right_i  (right_q),
    .valid_o  (valid_o),
    .y_o      (y_o)
  );

endmodule
