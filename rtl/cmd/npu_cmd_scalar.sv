// SPDX-License-Identifier: Apache-2.0
//
// The scalar operations in two steps. The first multiplies and leaves up to four terms, the second
// adds them up. A product that is negated in the first step is left inverted; the one that is then
// missing is a carry into the sum.

module npu_cmd_scalar
  import npu_cmd_pkg::*;
  import npu_cmd_regs_pkg::*;
(
  input logic clk_i,  // clock
  input logic rst_ni, // reset, active low

  input logic       load_i,  // pulse, first step: the results are there in the next cycle
  input operation_t op_i,    // with load_i

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

  // Magnitude of an E4M3 number in Q8.8: mantissa * 2^shift
  typedef struct packed {
    logic [3:0] mantissa;
    logic [3:0] shift;
  } fp8_t;

  function automatic fp8_t fp8_magnitude(logic [6:0] code);
    logic [3:0] exponent, full;
    exponent = code[6:3];
    full     = {exponent != 4'd0, code[2:0]};
    if (exponent < 4'd2) fp8_magnitude = '{mantissa: {1'b0, full[3:1]}, shift: 4'd0};
    else fp8_magnitude = '{mantissa: full, shift: exponent - 4'd2};
  endfunction

  function automatic logic [31:0] product_s8(logic signed [7:0] x, logic signed [7:0] y);
    logic signed [15:0] xy;
    xy = x * y;
    return 32'(xy);
  endfunction

  function automatic logic [31:0] product_s4(logic signed [3:0] x, logic signed [3:0] y);
    logic signed [7:0] xy;
    xy = x * y;
    return 32'(xy);
  endfunction

  // A lane of DOT16_S2: 1 is 1, what 2 and 3 mean depends.
  function automatic logic signed [1:0] lane_s2(logic [1:0] code, logic ternary);
    return (ternary && code == 2'b10) ? 2'b11 : code;
  endfunction

  function automatic logic [31:0] product_s2(logic signed [1:0] x, logic signed [1:0] y);
    logic signed [3:0] xy;
    xy = x * y;
    return 32'(xy);
  endfunction

  logic [31:0] a, b;
  logic [31:0] term_d[NumTerms], term_q[NumTerms];
  logic [31:0] addend_d, addend_q;
  logic [NumTerms-1:0] carry_d, carry_q;
  high_e high_d, high_q;
  logic reserved_d;

  assign a = op_i.a;
  assign b = op_i.b;

  // The product of the low halves serves MUL_LO and MAC_S16.
  logic signed_low;
  logic signed [16:0] a_low, b_low;
  logic signed [31:0] low_product;
  assign signed_low  = op_i.opcode == npu_cmd_regs__cmd_op__MAC_S16;
  assign a_low       = {signed_low && a[15], a[15:0]};
  assign b_low       = {signed_low && b[15], b[15:0]};
  assign low_product = 32'(a_low) * 32'(b_low);

  fp8_t [NumTerms-1:0] fp8_a, fp8_b;
  logic [NumTerms-1:0][33:0] fp8_product;
  logic [NumTerms-1:0] fp8_negative;
  logic fp8_reserved;

  always_comb begin
    fp8_reserved = 1'b0;
    for (int unsigned i = 0; i < NumTerms; i++) begin
      fp8_a[i]        = fp8_magnitude(a[8*i+:7]);
      fp8_b[i]        = fp8_magnitude(b[8*i+:7]);
      fp8_negative[i] = a[8*i+7] ^ b[8*i+7];
      fp8_product[i]  = 34'(fp8_a[i].mantissa * 8'(fp8_b[i].mantissa));
      fp8_product[i]  = fp8_product[i] << (5'(fp8_a[i].shift) + 5'(fp8_b[i].shift));
      fp8_reserved    = fp8_reserved || a[8*i+:7] == Fp8Reserved || b[8*i+:7] == Fp8Reserved;
    end
  end

  logic ternary_reserved;
  assign ternary_reserved = |(a & (a >> 1) & 32'h5555_5555) || |(b & (b >> 1) & 32'h5555_5555);

  // How far EXP2_NEG_Q0_8 shifts
  logic [7:0] negated;
  logic [3:0] halvings;
  assign negated  = 8'd0 - a[7:0];
  assign halvings = !a[7] ? 4'd0 : (negated > 8'd8) ? 4'd8 : negated[3:0];

  always_comb begin
    term_d     = '{default: '0};
    addend_d   = '0;
    carry_d    = '0;
    high_d     = HighZero;
    reserved_d = 1'b0;
    unique case (op_i.opcode)
      npu_cmd_regs__cmd_op__ADD: begin
        term_d[0] = a;
        addend_d  = b;
      end
      npu_cmd_regs__cmd_op__SUB: begin
        term_d[0]  = a;
        addend_d   = ~b;
        carry_d[0] = 1'b1;
      end
      npu_cmd_regs__cmd_op__MUL_LO: begin
        term_d[0] = low_product;
        term_d[1] = a[15:0] * 32'(b[31:16]);
        term_d[2] = a[31:16] * 32'(b[15:0]);
        term_d[3] = a[31:16] * 32'(b[31:16]);
        high_d    = HighProduct;
      end
      npu_cmd_regs__cmd_op__MAC_S16: begin
        term_d[0] = low_product;
        addend_d  = op_i.acc;
        high_d    = HighSign;
      end
      npu_cmd_regs__cmd_op__DOT4_S8: begin
        for (int unsigned i = 0; i < 4; i++) term_d[i] = product_s8(a[8*i+:8], b[8*i+:8]);
        addend_d = op_i.acc;
        high_d   = HighSign;
      end
      npu_cmd_regs__cmd_op__MAX_U32:       term_d[0] = (a > b) ? a : b;
      npu_cmd_regs__cmd_op__MIN_U32:       term_d[0] = (a < b) ? a : b;
      npu_cmd_regs__cmd_op__DOT8_S4: begin
        for (int unsigned i = 0; i < 4; i++) begin
          term_d[i] = product_s4(a[8*i+:4], b[8*i+:4]) + product_s4(a[8*i+4+:4], b[8*i+4+:4]);
        end
        addend_d = op_i.acc;
        high_d   = HighSign;
      end
      npu_cmd_regs__cmd_op__RELU4_S8: begin
        for (int unsigned i = 0; i < 4; i++) begin
          term_d[0][8*i+:8] = a[8*i+7] ? 8'd0 : a[8*i+:8];
        end
      end
      npu_cmd_regs__cmd_op__SDOT4_S4_2_4: begin
        for (int unsigned i = 0; i < 4; i++) begin
          term_d[i] = product_s4(a[4*i+:4], b[16*(i/2)+4*op_i.acc[2*i+:2]+:4]);
        end
        high_d = HighSign;
      end
      npu_cmd_regs__cmd_op__DOT16_S2: begin
        for (int unsigned i = 0; i < 16; i++) begin
          term_d[i/4] +=
              product_s2(lane_s2(a[2*i+:2], op_i.ternary), lane_s2(b[2*i+:2], op_i.ternary));
        end
        addend_d   = op_i.acc;
        high_d     = HighSign;
        reserved_d = op_i.ternary && ternary_reserved;
      end
      npu_cmd_regs__cmd_op__DOT4_FP8_E4M3: begin
        for (int unsigned i = 0; i < 4; i++) begin
          term_d[i]  = {6'b0, fp8_product[i][33:8]} ^ {32{fp8_negative[i]}};
          carry_d[i] = fp8_negative[i] && fp8_product[i][7:0] == 8'd0;
        end
        addend_d   = op_i.acc;
        high_d     = HighSign;
        reserved_d = fp8_reserved;
      end
      npu_cmd_regs__cmd_op__EXP2_NEG_Q0_8: term_d[0] = 32'd256 >> halvings;
      default:                             ;  // tiles
    endcase
  end

  always_ff @(posedge clk_i) begin
    if (!rst_ni) begin
      term_q     <= '{default: '0};
      addend_q   <= '0;
      carry_q    <= '0;
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
  logic [32:0] middle;
  assign middle  = {1'b0, term_q[1]} + {1'b0, term_q[2]};
  assign product = {term_q[3], term_q[0]} + {15'b0, middle, 16'b0};
  always_comb begin
    sum = addend_q + 32'($countones(carry_q));
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
