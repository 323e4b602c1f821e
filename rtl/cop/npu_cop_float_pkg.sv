// SPDX-License-Identifier: Apache-2.0
//
// Floating point of the coprocessor: operations of its units, special values, and the small functions
// of IEEE 754 that need no unit of their own. Rounding is to nearest, ties to even; subnormals are
// kept; every NaN that leaves is the canonical one.

package npu_cop_float_pkg;

  typedef logic [31:0] float_t;  // binary32
  typedef logic [63:0] double_t;  // binary64

  // Operations of npu_cop_lane
  typedef enum logic [2:0] {
    LaneAdd,   // a + b
    LaneSub,   // a - b
    LaneMul,   // a * b
    LaneRelu,  // a, +0 where a is negative or -0
    LaneDiv    // a / the divisor of npu_cop_divide
  } lane_op_e;

  // Functions of npu_cop_func
  typedef enum logic [1:0] {
    FuncExpFloat,  // float32
    FuncExpFixed,  // Q16.16 to Q16.16, both signed
    FuncGelu       // float32
  } func_e;

  // What npu_cop_root takes the reciprocal root of
  typedef enum logic {
    RootFloat,  // float32
    RootFixed   // Q16.16, signed
  } root_op_e;

  localparam float_t FloatNan = 32'h7fc0_0000;
  localparam float_t FloatInf = 32'h7f80_0000;
  localparam double_t DoubleNan = 64'h7ff8_0000_0000_0000;

  // An exact result, or one of which the last bit of the significand also stands for everything below
  // it, before it is rounded to float32.
  typedef struct packed {
    logic special;  // the lower bits of the significand are the result itself
    logic sign;
    logic signed [10:0] exponent;  // biased, of the significand's highest bit, which may be 0
    logic [47:0] significand;
  } unrounded_t;

  // The biased exponent with which the fraction counts: subnormals have that of the smallest normals.
  function automatic logic [7:0] exponent_of(float_t x);
    return x[30:23] == '0 ? 8'd1 : x[30:23];
  endfunction

  function automatic logic [23:0] significand_of(float_t x);
    return {x[30:23] != '0, x[22:0]};
  endfunction

  // Zeros above the highest one, in a tree; 63 where there is none.
  function automatic logic [5:0] leading_zeros(logic [63:0] x);
    logic [63:0] some;
    logic [63:0][5:0] zeros;
    some  = x;
    zeros = '0;
    for (int unsigned level = 0; level < 6; level++) begin
      for (int unsigned i = 0; i < (32 >> level); i++) begin
        zeros[i] = some[2*i+1] ? zeros[2*i+1] : (zeros[2*i] | (6'd1 << level));
        some[i]  = some[2*i+1] || some[2*i];
      end
    end
    return zeros[0];
  endfunction

  // By how many places the significand of an unrounded result moves right, because the result is
  // subnormal; 0 if it is not. Nothing is left from 48 places on.
  function automatic logic [5:0] places_of_subnormal(logic signed [10:0] exponent);
    logic signed [10:0] below;
    below = 11'sd1 - exponent;
    if (below < 11'sd1) return '0;
    return below > 11'sd48 ? 6'd48 : below[5:0];
  endfunction

  function automatic logic is_nan(float_t x);
    return x[30:23] == '1 && x[22:0] != '0;
  endfunction

  function automatic logic is_inf(float_t x);
    return x[30:0] == FloatInf[30:0];
  endfunction

  function automatic logic is_zero(float_t x);
    return x[30:0] == '0;
  endfunction

  function automatic float_t relu(float_t x);
    if (is_nan(x)) return FloatNan;
    return x[31] ? '0 : x;
  endfunction

  // Orders floats as s32 does: -inf lowest, -0 below +0, +inf highest; NaN are not ordered.
  function automatic logic signed [31:0] order_key(float_t x);
    return {x[31], x[30:0] ^ {31{x[31]}}};
  endfunction

  // A double rounded to float32. Below 2^-126 the significand moves right until its last bit has the
  // weight of the last bit of a subnormal; from 26 places on nothing of it is left. The exponents
  // differ by 896, of which 8 bits only have the highest one.
  function automatic float_t narrow(double_t x);
    logic normal, sticky, up;
    logic [ 4:0] places;
    logic [52:0] significand;
    logic [24:0] moved, lost;  // with the bit behind the last one
    logic [30:0] rounded;
    float_t special;
    normal      = x[62:52] >= 11'd897;
    places      = normal ? '0 : x[62:52] < 11'd871 ? 5'd26 : 5'd1 - x[56:52];
    significand = {x[62:52] != '0, x[51:0]};
    moved       = significand[52:28] >> places;
    lost        = ~(25'h1ff_ffff << places);
    sticky      = significand[27:0] != '0 || (significand[52:28] & lost) != '0;
    up          = moved[0] && (sticky || moved[1]);
    rounded     = {normal ? {!x[59], x[58:52]} : 8'd0, moved[23:1]};
    special     = (x[62:52] == '1 && x[51:0] != '0) ? FloatNan : {x[63], FloatInf[30:0]};
    return x[62:52] > 11'd1150 ? special : {x[63], rounded + 31'(up)};
  endfunction

endpackage
