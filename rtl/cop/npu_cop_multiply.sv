// SPDX-License-Identifier: Apache-2.0
//
// The upper half of a product of 64 x 64 bits, one a cycle in three stages: operands, products of parts
// of 17 x 26 bits as a multiplier takes them, sum. Four of the twelve products, and of the others what
// is below bit 38, are left out: that is less than 2^60, so that the result is the exact one or, once
// in sixteen times at most, less by one.

module npu_cop_multiply (
  input logic clk_i,  // clock

  input logic advance_i,  // all stages move; else they keep what they hold
  input logic [63:0] a_i,  // unsigned, taken in a cycle with advance_i
  input logic [63:0] b_i,  // unsigned, likewise

  output logic [63:0] upper_o  // of a * b, nearly, three cycles of advance_i later
);

  logic [63:0] a_q, b_q;
  logic [2:0][1:0][42:0] part;  // of a from bit 13 on, of b from bit 12 on
  logic [38:0] lowest;  // of a below that, of b from bit 38 on
  // Sums of products, from bit 38 on: of bits 63 to 38 of b and all of a; of bits 37 to 12 of b and a
  // from bit 13 on; of bits 11 to 0 of b and a from bit 47 on.
  logic [89:0] upper, upper_q;
  logic [76:0] middle;
  logic [63:0] middle_q;
  logic [28:0] lower_q;

  for (genvar i = 0; i < 3; i++) begin : gen_a
    for (genvar j = 0; j < 2; j++) begin : gen_b
      assign part[i][j] = 43'(a_q[17*i+13+:17]) * 43'(b_q[26*j+12+:26]);
    end
  end

  assign lowest = 39'(a_q[12:0]) * 39'(b_q[63:38]);
  assign upper  = {part[2][1], 8'd0, lowest} + {17'd0, part[1][1], 30'd0} +
      {34'd0, part[0][1], 13'd0};
  assign middle = {part[2][0], 34'd0} + {17'd0, part[1][0], 17'd0} + {34'd0, part[0][0]};

  always_ff @(posedge clk_i) begin
    if (advance_i) begin
      a_q      <= a_i;
      b_q      <= b_i;
      upper_q  <= upper;
      middle_q <= 64'(middle >> 13);
      lower_q  <= 29'(a_q[63:47]) * 29'(b_q[11:0]);
      upper_o  <= 64'((upper_q + 90'(middle_q) + {52'd0, lower_q, 9'd0}) >> 26);
    end
  end

endmodule
