// SPDX-License-Identifier: Apache-2.0
//
// Looks whether a GEMM or VRELU is allowed: the first step finds where each operand ends, the
// second compares. An operand counts as the whole range from its first to its last byte.

module npu_cmd_check
  import npu_cmd_pkg::*;
  import npu_cmd_regs_pkg::*;
#(
  parameter int unsigned ScratchBytes = 64  // bytes of the scratchpad: 64, 128 or 256
) (
  input logic clk_i,  // clock
  input logic rst_ni, // reset, active low

  input  logic   load_i,    // pulse, first step: the answer is there in the next cycle
  input  op_e    opcode_i,  // GEMM or VRELU, else no answer; stays for both steps
  input  shape_t shape_i,   // stays for both steps
  output logic   okay_o     // it is allowed; in the cycle after load_i
);

  localparam int unsigned Bits = 17;  // 255 rows of 255 and 255 words behind any base

  logic vector, nibbles;
  assign vector  = is_vrelu(opcode_i);
  assign nibbles = opcode_i == npu_cmd_regs__cmd_op__GEMM_S4;

  logic [7:0] rows_less;
  logic [Bits-1:0] cols_less, depth_less, len_less;
  logic [Bits-1:0] a_last_d, b_last_d, c_last_d, a_last_q, b_last_q, c_last_q;

  assign rows_less  = shape_i.m - 8'd1;
  assign cols_less  = Bits'(shape_i.n) - Bits'(1);
  assign depth_less = Bits'(shape_i.k) - Bits'(1);
  assign len_less   = Bits'(shape_i.len) - Bits'(1);

  // Last element of A and B, last byte of C
  always_comb begin
    a_last_d = Bits'(shape_i.a) + len_less;
    b_last_d = Bits'(shape_i.b) + len_less;
    if (!vector) begin
      a_last_d = Bits'(shape_i.a) + rows_less * Bits'(shape_i.stride_a) + depth_less;
      b_last_d = Bits'(shape_i.b) + 8'(depth_less) * Bits'(shape_i.stride_b) + cols_less;
    end
    c_last_d = Bits'(shape_i.c) + rows_less * Bits'(shape_i.stride_c) + {cols_less[Bits-3:0], 2'd3};
  end

  always_ff @(posedge clk_i) begin
    if (!rst_ni) begin
      a_last_q <= '0;
      b_last_q <= '0;
      c_last_q <= '0;
    end else if (load_i) begin
      a_last_q <= a_last_d;
      b_last_q <= b_last_d;
      c_last_q <= c_last_d;
    end
  end

  function automatic logic overlap(logic [Bits-1:0] first_1, logic [Bits-1:0] last_1,
                                   logic [Bits-1:0] first_2, logic [Bits-1:0] last_2);
    return first_1 <= last_2 && first_2 <= last_1;
  endfunction

  function automatic logic inside_scratch(logic [Bits-1:0] last);
    return last < Bits'(ScratchBytes);
  endfunction

  logic [Bits-1:0] a_first, b_first, c_first, a_last, b_last;
  logic empty, misplaced, crossing;
  assign a_first = Bits'(shape_i.a) >> nibbles;
  assign b_first = Bits'(shape_i.b) >> nibbles;
  assign c_first = Bits'(shape_i.c);
  assign a_last  = a_last_q >> nibbles;
  assign b_last  = b_last_q >> nibbles;

  always_comb begin
    empty = shape_i.m == '0 || shape_i.n == '0 || shape_i.k == '0;
    misplaced = shape_i.c[1:0] != '0 || (shape_i.stride_c[1:0] != '0 && shape_i.m > 8'd1) ||
        !inside_scratch(c_last_q);
    crossing = overlap(a_first, a_last, c_first, c_last_q) ||
        overlap(b_first, b_last, c_first, c_last_q);
    okay_o = inside_scratch(a_last) && inside_scratch(b_last);
    if (vector) okay_o = okay_o && shape_i.len != '0;
    else okay_o = okay_o && !empty && !misplaced && !crossing;
  end

endmodule
