// SPDX-License-Identifier: Apache-2.0
//
// Reciprocal square roots, correctly rounded, a digit a cycle: of a float32, and 2^24 / sqrt(x) of a
// Q16.16 number x taken as an integer. r grows bit by bit to the largest one with x * r^2 <= 2^S; its
// last bit is the one that rounds, because half of an odd r is never the root itself. Of what is left,
// 2^S - x * r^2, each digit takes x * (2r + 1) at that digit's weight, which is kept beside it:
// nothing is multiplied.
//
// A significand m has an even exponent or is doubled: r = floor(2^36 / sqrt(m)), or, where it would be
// doubled, floor(2^36.5 / sqrt(m)), has 25 bits and the one that rounds. Fixed: floor(2^25 / sqrt(x)).

module npu_cop_root (
  input logic clk_i,   // clock
  input logic rst_ni,  // reset, active low
  input logic clear_i, // drops what is inside

  input logic valid_i,  // may be withdrawn
  output logic ready_o,  // whether the operand is taken
  input npu_cop_float_pkg::root_op_e op_i,  // with valid_i
  input logic [31:0] x_i,  // with valid_i

  output logic valid_o,  // 28 cycles after the operand; stays until ready_i
  input logic ready_i,  // takes the result
  output logic [31:0] y_o  // with valid_o, and until the next operand is taken
);

  import npu_cop_float_pkg::*;

  localparam logic [31:0] FixedMost = 32'h7fff_ffff;
  localparam logic [4:0] Digits = 5'd26;

  logic busy_q, fixed_q, special_q, take;
  logic [4:0] left_q;  // digits that are still to be found

  assign ready_o = !busy_q;
  assign take    = valid_i && ready_o;

  always_ff @(posedge clk_i) begin
    if (!rst_ni) begin
      busy_q  <= 1'b0;
      valid_o <= 1'b0;
      left_q  <= '0;
    end else if (clear_i) begin
      busy_q  <= 1'b0;
      valid_o <= 1'b0;
      left_q  <= '0;
    end else if (take) begin
      busy_q <= 1'b1;
      left_q <= Digits;
    end else if (busy_q) begin
      if (left_q != '0) left_q <= left_q - 5'd1;
      else if (!valid_o) valid_o <= 1'b1;
      else if (ready_i) {busy_q, valid_o} <= '0;
    end
  end

  // Operand: a normal form, and results that need no root
  logic [ 4:0] zeros;
  logic [23:0] significand;
  logic odd, special;
  logic [31:0] special_y;

  assign zeros       = leading_zeros({significand_of(x_i), 40'd0}) [4:0];
  assign significand = significand_of(x_i) << zeros;
  assign odd         = exponent_of(x_i) [0] ^ zeros[0];

  always_comb begin
    if (op_i == RootFixed) begin
      special   = x_i[31] || x_i == '0;
      special_y = FixedMost;
    end else begin
      special = x_i[31] || is_zero(x_i) || x_i[30:23] == '1;
      if (is_zero(x_i)) special_y = FloatInf;
      else if (x_i == FloatInf) special_y = '0;
      else special_y = FloatNan;
    end
  end

  logic [30:0] x_q;
  logic [52:0] rest_q;  // 2^S - x * r^2, in units of the square of the digit that comes
  logic [50:0] next_q;  // x * (2r + 1), in the same units with a bit more
  logic [25:0] root_q;
  logic [7:0] field_q;  // exponent of the result, less the one that the significand adds

  logic digit;
  logic [50:0] less;

  assign less  = 51'(rest_q - 53'(next_q));
  assign digit = rest_q >= 53'(next_q);

  always_ff @(posedge clk_i) begin
    if (take) begin
      fixed_q   <= op_i == RootFixed;
      special_q <= special;
      root_q    <= '0;
      if (op_i == RootFixed) begin
        x_q    <= x_i[30:0];
        next_q <= 51'(x_i[30:0]);
        rest_q <= 53'd1;
      end else begin
        x_q    <= 31'(significand);
        next_q <= 51'(significand);
        rest_q <= odd ? 53'd1 << 23 : 53'd1 << 22;
      end
      // 189 - e / 2 for an even exponent e, half less for an odd one
      field_q <= 8'((10'd378 - 10'(exponent_of(x_i)) + 10'(zeros)) >> 1);
      y_o     <= special_y;
    end else if (left_q != '0) begin
      // The weight of a digit is half that of the one before it: r doubles and the rest quadruples.
      root_q <= {root_q[24:0], digit};
      rest_q <= {digit ? less : rest_q[50:0], 2'd0};
      next_q <= digit ? {next_q[49:0], 1'b0} + 51'(x_q) + {19'd0, x_q, 1'b0}
          : {next_q[49:0], 1'b0} - 51'(x_q);
    end else if (busy_q && !valid_o && !special_q) begin
      y_o <= (fixed_q ? 32'd0 : {1'b0, field_q, 23'd0}) + 32'(root_q[25:1]) + 32'(root_q[0]);
    end
  end

endmodule
