// SPDX-License-Identifier: Apache-2.0
//
// The upper half of a product of 64 x 64 bits, one a cycle in three stages: operands, four products of
// their halves, sum.

module npu_cop_multiply (
  input logic clk_i,  // clock

  input logic advance_i,  // all stages move; else they keep what they hold
  input logic [63:0] a_i,  // unsigned, taken in a cycle with advance_i
  input logic [63:0] b_i,  // unsigned, likewise

  output logic [63:0] upper_o  // of a * b, three cycles of advance_i later
);

  logic [63:0] a_q, b_q;
  logic [1:0][1:0][63:0] part_q;  // of halves of a and b
  logic [33:0] carry;  // from the lower half

  assign carry = 34'((66'(part_q[0][1]) + 66'(part_q[1][0]) + 66'(part_q[0][0][63:32])) >> 32);

  always_ff @(posedge clk_i) begin
    if (advance_i) begin
      a_q <= a_i;
      b_q <= b_i;
      for (int unsigned i = 0; i < 2; i++) begin
        for (int unsigned j = 0; j < 2; j++) begin
          part_q[i][j] <= 64'(a_q[32*i+:32]) * 64'(b_q[32*j+:32]);
        end
      end
      upper_o <= part_q[1][1] + 64'(carry);
    end
  end

endmodule
