// SPDX-License-Identifier: Apache-2.0
//
// The arithmetic of post-processing, SOFTMAX, the norms and VEC beside the same formulas written
// down plainly, in 64 bits, with saturation by comparison. Every output is 1 for all inputs; `make
// synth` proves it.

module npu_arithmetic_proof
  import npu_fixed_pkg::*;
  import npu_isa_pkg::*;
  import npu_gemm_pkg::*;
  import npu_vec_pkg::*;
(
  input acc_t x_i,
  input logic [5:0] shift_i,
  input logic is_16_i,
  output logic round_shift_o,
  output logic round_saturate_o,

  input beat_ctrl_t ctrl_i,
  input logic [31:0] high_i,
  input logic [31:0] low_i,
  input logic [31:0] partial_high_i,
  input logic [31:0] partial_low_i,
  input logic [31:0] bias_i,
  input logic signed [15:0] value_i,  // requantised
  input logic signed [15:0] second_i,
  output logic total_o,
  output logic product_o,
  output logic add_o,
  output logic [1:0] multiply_o,  // one factor being one

  input logic [31:0] sum_i,
  input logic [31:0] numerator_i,  // times the reciprocal; below 2^(17 + msb_i), else of no effect
  input logic [4:0] msb_i,
  output logic recip_o,
  output logic probability_o,

  input logic signed [36:0] scaled_i,  // by the gain
  input logic signed [7:0] norm_bias_i,
  output logic norm_output_o,

  input logic signed [15:0] a_i,
  input logic signed [15:0] b_i,
  input logic signed [15:0] lo_i,
  input logic signed [15:0] hi_i,
  output logic [VecOps-1:0] exact_o  // by operation
);

  typedef logic signed [63:0] plain_t;

  function automatic plain_t plain_shift(plain_t x, logic [5:0] shift);
    plain_t half;
    half = (shift == '0) ? plain_t'(0) : plain_t'(1) <<< (shift - 6'd1);
    return (x + half) >>> shift;
  endfunction

  function automatic plain_t plain_saturate(plain_t x, logic is_16);
    plain_t most;
    most = is_16 ? 64'sd32767 : 64'sd127;
    if (x > most) return most;
    if (x < -most - 64'sd1) return -most - 64'sd1;
    return x;
  endfunction

  // ---------------------------------------------------------------------------------------------
  // Rounding
  // ---------------------------------------------------------------------------------------------
  plain_t rounded;
  assign rounded = plain_shift(plain_t'(x_i), shift_i);
  assign round_shift_o = plain_t'(round_shift(x_i, shift_i)) == rounded;
  assign round_saturate_o = plain_t'(round_saturate(
      x_i, shift_i, is_16_i
  )) == plain_saturate(
      rounded, is_16_i
  );

  // ---------------------------------------------------------------------------------------------
  // Post-processing
  // ---------------------------------------------------------------------------------------------
  logic [31:0] sum_high, sum_low;
  plain_t total_plain;
  always_comb begin
    sum_high    = high_i + (ctrl_i.accumulate ? partial_high_i : '0);
    sum_low     = low_i + (ctrl_i.accumulate ? partial_low_i : '0);
    total_plain = plain_t'($signed(sum_high));
    if (ctrl_i.wide) total_plain = (total_plain <<< 8) + plain_t'($signed(sum_low));
    total_plain = total_plain + plain_t'($signed(bias_i));
  end

  assign total_o = total_plain == plain_t'(total(
      ctrl_i, high_i, low_i, partial_high_i, partial_low_i, bias_i
  ));

  // A product is exact if the largest ones are.
  localparam plain_t MostTotal = (64'sd1 <<< (SumBits - 1)) - 64'sd1;
  localparam plain_t LeastTotal = -MostTotal - 64'sd1;
  localparam plain_t MostProduct = MostTotal * 64'sd65535;
  localparam plain_t LeastProduct = LeastTotal * 64'sd65535;
  localparam plain_t MostFactor = 64'sd128 * 64'sd65535;
  assign product_o = plain_t'(acc_t'(MostProduct)) == MostProduct &&
      plain_t'(acc_t'(LeastProduct)) == LeastProduct &&
      MostFactor < (64'sd1 <<< 23) && 64'sd128 * MostFactor < (64'sd1 <<< 30);

  beat_ctrl_t adds, multiplies;
  always_comb begin
    adds           = ctrl_i;
    adds.op        = GemmOpAdd;
    multiplies     = ctrl_i;
    multiplies.op  = GemmOpMul;
    multiplies.out = GemmOutInt8;  // the only one that is legal
  end

  // Both summands have the width of the result.
  function automatic logic signed [15:0] operand(logic signed [15:0] x);
    return is_out16(ctrl_i.out) ? x : 16'($signed(x[7:0]));
  endfunction

  assign add_o = plain_t'($signed(
      element_sum(adds, 32'(operand(value_i)), 16'(element_factor(adds, operand(second_i))))
  )) == plain_saturate(
      plain_t'(operand(value_i)) + plain_t'(operand(second_i)), is_out16(ctrl_i.out)
  );

  function automatic logic multiply_is_plain(beat_ctrl_t ctrl, logic signed [7:0] value,
                                             logic signed [7:0] second);
    plain_t product;
    product = plain_t'(value) * plain_t'(second) * $signed({48'd0, ctrl.mul});
    return plain_t'($signed(
        element_rounded(element_product(value, element_factor(ctrl, 16'(second))), ctrl.mul_shift)
    )) == plain_saturate(
        plain_shift(product, ctrl.mul_shift), 1'b0
    );
  endfunction

  assign multiply_o[0] = multiply_is_plain(multiplies, value_i[7:0], 8'sd1);
  assign multiply_o[1] = multiply_is_plain(multiplies, 8'sd1, second_i[7:0]);

  // ---------------------------------------------------------------------------------------------
  // SOFTMAX and the norms
  // ---------------------------------------------------------------------------------------------
  typedef logic [127:0][15:0] recips_t;

  function automatic recips_t plain_recips();
    for (int unsigned i = 0; i < 128; i++) begin
      plain_recips[i] = 16'((64'd33554432 / (64'd257 + 64'd2 * 64'(i)) + 64'd1) / 64'd2);
    end
  endfunction

  localparam recips_t PlainRecips = plain_recips();

  logic [15:0] recip, recip_plain;
  logic [4:0] msb, msb_plain;
  logic [6:0] index_plain;

  npu_recip u_recip (
    .sum_i,
    .recip_o(recip),
    .msb_o  (msb)
  );

  always_comb begin
    msb_plain = '0;
    for (int unsigned i = 0; i < 32; i++) if (sum_i[i]) msb_plain = 5'(i);
    index_plain = 7'((39'(sum_i) << 7) >> msb_plain);
    recip_plain = PlainRecips[index_plain];
    if (sum_i == '0) recip_plain = '0;
  end

  assign recip_o = recip == recip_plain && msb == msb_plain;

  plain_t ratio, ratio_plain;
  assign ratio = plain_t'({56'd0, npu_rows_pkg::probability(numerator_i, msb_i)});
  assign ratio_plain = plain_shift(plain_t'({32'd0, numerator_i}), 6'd8 + 6'(msb_i));
  assign probability_o = numerator_i >> (6'd17 + 6'(msb_i)) != '0 ||
                         ratio == ((ratio_plain > 64'sd255) ? 64'sd255 : ratio_plain);

  assign norm_output_o = plain_t'($signed(
      npu_rows_pkg::norm_output(
          npu_rows_pkg::norm_coarse(scaled_i, shift_i), shift_i[3:0], norm_bias_i, is_16_i
      )
  )) == plain_saturate(
      plain_shift(plain_t'(scaled_i), shift_i) + plain_t'(norm_bias_i), is_16_i
  );

  // ---------------------------------------------------------------------------------------------
  // VEC, each operation for itself
  // ---------------------------------------------------------------------------------------------
  function automatic logic signed [31:0] plain_exact(vec_op_e op, logic signed [15:0] x,
                                                     logic signed [15:0] y, logic signed [15:0] lo,
                                                     logic signed [15:0] hi);
    logic signed [15:0] bounded;
    bounded = (x < lo) ? lo : x;
    unique case (op)
      VecAdd:        return 32'(x) + 32'(y);
      VecSub:        return 32'(x) - 32'(y);
      VecMul:        return 32'(x) * 32'(y);
      VecScaleShift: return 32'(x) * 32'(hi);
      VecClamp:      return (bounded > hi) ? 32'(hi) : 32'(bounded);
      VecRelu:       return (x < 0) ? '0 : 32'(x);
      VecMax:        return (x < y) ? 32'(y) : 32'(x);
      VecMin:        return (x < y) ? 32'(x) : 32'(y);
      VecCopy2d:     return 32'(x);
      VecTable:      return 32'(x);  // the index
      default:       return 32'(x);
    endcase
  endfunction

  for (genvar op = 0; op < int'(VecOps); op++) begin : gen_operation
    npu_operation_pkg::vec_operation_t operation;
    always_comb begin
      operation    = '0;
      operation.op = vec_op_e'(op);
      operation.lo = lo_i;
      operation.hi = hi_i;
    end
    assign exact_o[op] = exact(
        mode_of(operation), a_i, b_i
    ) == plain_exact(
        vec_op_e'(op), a_i, b_i, lo_i, hi_i
    );
  end

endmodule
