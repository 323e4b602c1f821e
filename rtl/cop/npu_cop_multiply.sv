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
  logic [2:0][1:0][42:0] part_q;  // of a from bit 13 on, of b from bit 12 on
  logic [38:0] lowest_q;  // of a below that, of b from bit 38 on
  logic [28:0] lower_q;  // of a from bit 47 on, of b below bit 12
  logic [89:0] sum;  // from bit 38 on

  // Two that do not overlap are one number.
  assign sum = ({part_q[2][1], 8'd0, lowest_q} + {17'd0, part_q[1][1], part_q[0][0][42:13]}) +
      (({34'd0, part_q[0][1], 13'd0} + {26'd0, part_q[2][0], 21'd0}) +
       ({43'd0, part_q[1][0], 4'd0} + {52'd0, lower_q, 9'd0}));

  for (genvar i = 0; i < 3; i++) begin : gen_a
    for (genvar j = 0; j < 2; j++) begin : gen_b
      always_ff @(posedge clk_i) begin
        if (advance_i) part_q[i][j] <= 43'(b_q[26*j+12+:26]) * 43'(a_q[17*i+13+:17]);
      end
    end
  end

  always_ff @(posedge clk_i) begin
    if (advance_i) begin
      a_q      <= a_i;
      b_q      <= b_i;
      lowest_q <= 39'(b_q[63:38]) * 39'(a_q[12:0]);
      lower_q  <= 29'(a_q[63:47]) * 29'(b_q[11:0]);
      upper_o  <= 64'(sum >> 26);
    end
  end

endmodule
