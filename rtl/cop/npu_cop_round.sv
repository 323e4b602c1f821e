// SPDX-License-Identifier: Apache-2.0
//
// Rounds to float32, to nearest with ties to even, one result a cycle in three stages: the significand
// moves right where the result is subnormal, or left until its highest bit is one or has the weight of
// a subnormal's; then it is rounded, and a carry out of it makes the exponent one larger.

module npu_cop_round (
  input logic clk_i,   // clock
  input logic rst_ni,  // reset, active low
  input logic clear_i, // drops what is inside

  input logic advance_i,  // all stages move; else they keep what they hold

  input logic valid_i,  // taken in a cycle with advance_i
  input npu_cop_float_pkg::unrounded_t value_i,  // with valid_i
  input logic [5:0] right_i,  // places_of_subnormal of its exponent, which is known before the rest

  output logic valid_o,  // three cycles of advance_i later
  output npu_cop_float_pkg::float_t y_o  // with valid_o
);

  import npu_cop_float_pkg::*;

  localparam int unsigned Width = $bits(value_i.significand);

  logic [2:0] valid_q;

  always_ff @(posedge clk_i) begin
    if (!rst_ni) begin
      valid_q <= '0;
    end else if (clear_i) begin
      valid_q <= '0;
    end else if (advance_i) begin
      valid_q <= {valid_q[1:0], valid_i};
    end
  end

  assign valid_o = valid_q[2];

  // First stage: right to the weight of subnormals, and how far it could go left.
  logic [5:0] zeros;
  logic [2*Width-1:0] wide;

  assign wide  = {value_i.significand, Width'(0)} >> right_i;
  assign zeros = leading_zeros({value_i.significand, 16'd0});

  unrounded_t near_q;
  logic [5:0] left_q;

  always_ff @(posedge clk_i) begin
    if (advance_i) begin
      near_q <= value_i;
      near_q.significand[0] <= value_i.special ? value_i.significand[0]
          : (wide[Width] || wide[Width-1:0] != '0);
      if (!value_i.special) near_q.significand[Width-1:1] <= wide[2*Width-1:Width+1];
      if (right_i != '0 || value_i.significand == '0) begin
        near_q.exponent <= 11'sd1;
        left_q          <= '0;
      end else if (11'(zeros) >= value_i.exponent) begin
        left_q <= 6'(value_i.exponent - 11'sd1);
      end else begin
        left_q <= zeros;
      end
    end
  end

  // Second stage: left. The exponent is that of the packed format, less one where the highest bit is
  // one: adding the significand adds it.
  logic [Width-1:0] moved;
  logic signed [10:0] field;

  assign moved = near_q.significand << left_q;
  assign field = near_q.exponent - 11'(left_q) - 11'sd1;

  logic special_q, sign_q, huge_q, up_q;
  logic [ 7:0] field_q;
  logic [31:0] kept_q;  // a special result, or the upper bits of the significand

  always_ff @(posedge clk_i) begin
    if (advance_i) begin
      special_q <= near_q.special;
      sign_q    <= near_q.sign;
      huge_q    <= field > 11'sd253;
      field_q   <= field[7:0];
      up_q      <= moved[Width-25] && (moved[Width-24] || moved[Width-26:0] != '0);
      kept_q    <= near_q.special ? near_q.significand[31:0] : 32'(moved[Width-1-:24]);
    end
  end

  // Third stage
  always_ff @(posedge clk_i) begin
    if (advance_i) begin
      if (special_q) y_o <= kept_q;
      else if (huge_q) y_o <= {sign_q, FloatInf[30:0]};
      else y_o <= {sign_q, {field_q, 23'd0} + kept_q[30:0] + 31'(up_q)};
    end
  end

endmodule
