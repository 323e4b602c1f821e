// SPDX-License-Identifier: Apache-2.0
//
// The scalar operations in two steps. The first multiplies and leaves up to four terms, the second
// adds them up. What is multiplied is chosen while an operation is taken.

module npu_cmd_scalar
  import npu_cmd_pkg::*;
  import npu_cmd_regs_pkg::*;
(
  input logic clk_i,  // clock
  input logic rst_ni, // reset, active low

  input logic              take_i,     // pulse: an operation is taken
  input operation_t        op_i,       // with take_i
  input logic              load_i,     // pulse, first step: the results are there in the next cycle
  // Of the operation last taken, with load_i
  input op_e               opcode_i,   // which one
  input logic              ternary_i,  // DOT16_S2 takes its lanes as ternary
  input logic       [31:0] acc_i,      // accumulator operand

  output logic        reserved_o,  // a lane holds a reserved code; until the next load_i
  output logic [31:0] result_o,    // RESULT; until the next load_i
  output logic [31:0] result_hi_o  // RESULT_HI; until the next load_i
);

  localparam int unsigned NumTerms = 4;
  localparam logic [6:0] Fp8Reserved = 7'h7F;

  typedef enum logic [1:0] {
    HighZero,
    HighSign,
    HighProduct
  } high_e;

  // An E4M3 number in Q8.8, without what is below. The sign is not the number's own, so that one of
  // two factors can have that of both.
  function automatic logic signed [17:0] fp8_value(logic negative, logic [6:0] code);
    logic [3:0] exponent, full;
    logic [4:0] mantissa;
    exponent = code[6:3];
    full     = {exponent != 4'd0, code[2:1], code[0] && exponent[3:1] != '0};
    // Negated without a carry chain: what is above the lowest 1 is inverted.
    for (int unsigned i = 0; i < 4; i++) begin
      mantissa[i] = full[i] ^ (negative && (full & ~(4'hf << i)) != '0);
    end
    mantissa[4] = negative && full != '0;
    return 18'(20'(signed'(mantissa)) << {exponent[3:1], exponent[0] || exponent == '0} >>> 2);
  endfunction

  function automatic logic signed [8:0] product_s4(logic signed [3:0] x, logic signed [3:0] y);
    return 9'(x) * 9'(y);
  endfunction

  // A lane of DOT16_S2: 1 is 1, what 2 and 3 mean depends.
  function automatic logic signed [1:0] lane_s2(logic [1:0] code, logic ternary);
    return (ternary && code == 2'b10) ? 2'b11 : code;
  endfunction

  // A table, so that it has no carry chain
  function automatic logic signed [3:0] product_s2(logic [1:0] x, logic [1:0] y);
    unique case ({
      x, y
    })
      4'b01_01, 4'b11_11: return 4'sd1;
      4'b01_11, 4'b11_01: return -4'sd1;
      4'b01_10, 4'b10_01: return -4'sd2;
      4'b11_10, 4'b10_11: return 4'sd2;
      4'b10_10:           return 4'sd4;
      default:            return 4'sd0;
    endcase
  endfunction

  logic [31:0] op_a, op_b, a, b;
  logic [31:0] term_d[NumTerms], term_q[NumTerms];
  logic [31:0] addend_d, addend_q;
  logic carry_d, carry_q;
  high_e high_d, high_q;
  logic reserved_d;

  assign op_a = op_i.a;
  assign op_b = op_i.b;

  // ---------------------------------------------------------------------------------------------
  // Four products: of halves of words, bytes, nibbles or floats
  // ---------------------------------------------------------------------------------------------
  logic signed [17:0] left_d[NumTerms], right_d[NumTerms], left_q[NumTerms], right_q[NumTerms];
  logic signed [35:0] products[NumTerms];
  logic fp8_reserved_d, fp8_reserved_q;

  always_comb begin
    for (int unsigned i = 0; i < NumTerms; i++) begin
      unique case (op_i.opcode)
        npu_cmd_regs__cmd_op__MUL_LO: begin
          left_d[i]  = {2'b0, op_a[16*(i/2)+:16]};
          right_d[i] = {2'b0, op_b[16*(i%2)+:16]};
        end
        npu_cmd_regs__cmd_op__MAC_S16: begin
          left_d[i]  = 18'(signed'(op_a[15:0]));
          right_d[i] = 18'(signed'(op_b[15:0]));
        end
        npu_cmd_regs__cmd_op__SDOT4_S4_2_4: begin
          left_d[i]  = 18'(signed'(op_a[4*i+:4]));
          right_d[i] = 18'(signed'(op_b[16*(i/2)+4*op_i.acc[2*i+:2]+:4]));
        end
        npu_cmd_regs__cmd_op__DOT4_FP8_E4M3: begin
          left_d[i]  = fp8_value(1'b0, op_a[8*i+:7]);
          right_d[i] = fp8_value(op_a[8*i+7] ^ op_b[8*i+7], op_b[8*i+:7]);
        end
        default: begin
          left_d[i]  = 18'(signed'(op_a[8*i+:8]));
          right_d[i] = 18'(signed'(op_b[8*i+:8]));
        end
      endcase
    end
    fp8_reserved_d = 1'b0;
    for (int unsigned i = 0; i < NumTerms; i++) begin
      fp8_reserved_d |= op_a[8*i+:7] == Fp8Reserved || op_b[8*i+:7] == Fp8Reserved;
    end
  end

  always_ff @(posedge clk_i) begin
    if (!rst_ni) begin
      left_q         <= '{default: '0};
      right_q        <= '{default: '0};
      fp8_reserved_q <= 1'b0;
    end else if (take_i) begin
      left_q         <= left_d;
      right_q        <= right_d;
      fp8_reserved_q <= fp8_reserved_d;
    end
  end

  // Of those that multiply no halves of words or floats, the factors hold both operands.
  always_comb begin
    for (int unsigned i = 0; i < NumTerms; i++) begin
      a[8*i+:8]   = left_q[i][7:0];
      b[8*i+:8]   = right_q[i][7:0];
      products[i] = left_q[i] * right_q[i];
    end
  end

  logic ternary_reserved;
  assign ternary_reserved = |(a & (a >> 1) & 32'h5555_5555) || |(b & (b >> 1) & 32'h5555_5555);

  // Sums of four products of two bits
  logic signed [5:0] sum_s2[NumTerms];
  always_comb begin
    for (int unsigned i = 0; i < NumTerms; i++) begin
      automatic logic signed [3:0] part[4];
      for (int unsigned j = 0; j < 4; j++) begin
        part[j] = product_s2(lane_s2(a[8*i+2*j+:2], ternary_i), lane_s2(b[8*i+2*j+:2], ternary_i));
      end
      sum_s2[i] = (6'(part[0]) + 6'(part[1])) + (6'(part[2]) + 6'(part[3]));
    end
  end

  // How far EXP2_NEG_Q0_8 shifts
  logic [7:0] negated;
  logic [3:0] halvings;
  assign negated  = 8'd0 - a[7:0];
  assign halvings = !a[7] ? 4'd0 : (negated > 8'd8) ? 4'd8 : negated[3:0];

  always_comb begin
    term_d     = '{default: '0};
    addend_d   = '0;
    carry_d    = 1'b0;
    high_d     = HighZero;
    reserved_d = 1'b0;
    unique case (opcode_i)
      npu_cmd_regs__cmd_op__ADD: begin
        term_d[0] = a;
        addend_d  = b;
      end
      npu_cmd_regs__cmd_op__SUB: begin
        term_d[0] = a;
        addend_d  = ~b;
        carry_d   = 1'b1;
      end
      npu_cmd_regs__cmd_op__MUL_LO: begin
        for (int unsigned i = 0; i < NumTerms; i++) term_d[i] = 32'(products[i]);
        high_d = HighProduct;
      end
      npu_cmd_regs__cmd_op__MAC_S16: begin
        term_d[0] = 32'(products[0]);
        addend_d  = acc_i;
        high_d    = HighSign;
      end
      npu_cmd_regs__cmd_op__DOT4_S8: begin
        for (int unsigned i = 0; i < NumTerms; i++) term_d[i] = 32'(products[i]);
        addend_d = acc_i;
        high_d   = HighSign;
      end
      npu_cmd_regs__cmd_op__MAX_U32:       term_d[0] = (a > b) ? a : b;
      npu_cmd_regs__cmd_op__MIN_U32:       term_d[0] = (a < b) ? a : b;
      npu_cmd_regs__cmd_op__DOT8_S4: begin
        for (int unsigned i = 0; i < NumTerms; i++) begin
          term_d[i] = 32'(product_s4(a[8*i+:4], b[8*i+:4]) + product_s4(a[8*i+4+:4], b[8*i+4+:4]));
        end
        addend_d = acc_i;
        high_d   = HighSign;
      end
      npu_cmd_regs__cmd_op__RELU4_S8: begin
        for (int unsigned i = 0; i < 4; i++) begin
          term_d[0][8*i+:8] = a[8*i+7] ? 8'd0 : a[8*i+:8];
        end
      end
      npu_cmd_regs__cmd_op__SDOT4_S4_2_4: begin
        for (int unsigned i = 0; i < NumTerms; i++) term_d[i] = 32'(products[i]);
        high_d = HighSign;
      end
      npu_cmd_regs__cmd_op__DOT16_S2: begin
        for (int unsigned i = 0; i < NumTerms; i++) term_d[i] = 32'(sum_s2[i]);
        addend_d   = acc_i;
        high_d     = HighSign;
        reserved_d = ternary_i && ternary_reserved;
      end
      npu_cmd_regs__cmd_op__DOT4_FP8_E4M3: begin
        for (int unsigned i = 0; i < NumTerms; i++) term_d[i] = 32'(products[i] >>> 8);
        addend_d   = acc_i;
        high_d     = HighSign;
        reserved_d = fp8_reserved_q;
      end
      npu_cmd_regs__cmd_op__EXP2_NEG_Q0_8: term_d[0] = 32'd256 >> halvings;
      default:                             ;  // tiles
    endcase
  end

  always_ff @(posedge clk_i) begin
    if (!rst_ni) begin
      term_q     <= '{default: '0};
      addend_q   <= '0;
      carry_q    <= 1'b0;
      high_q     <= HighZero;
      reserved_o <= 1'b0;
    end else if (load_i) begin
      term_q     <= term_d;
      addend_q   <= addend_d;
      carry_q    <= carry_d;
      high_q     <= high_d;
      reserved_o <= reserved_d;
    end
  end

  logic [31:0] sum;
  logic [63:0] product;
  assign product = {term_q[3], term_q[0]} + {16'b0, term_q[1], 16'b0} + {16'b0, term_q[2], 16'b0};
  always_comb begin
    sum = addend_q + 32'(carry_q);
    for (int unsigned i = 0; i < NumTerms; i++) sum += term_q[i];
  end

  assign result_o = (high_q == HighProduct) ? product[31:0] : sum;
  always_comb begin
    unique case (high_q)
      HighSign:    result_hi_o = {32{sum[31]}};
      HighProduct: result_hi_o = product[63:32];
      default:     result_hi_o = '0;
    endcase
  end

endmodule
