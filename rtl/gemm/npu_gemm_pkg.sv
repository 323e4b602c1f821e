// SPDX-License-Identifier: Apache-2.0
//
// What travels with a row through the stages of the GEMM engine, and the arithmetic of one element
// of a row in front of and behind its multiplication.

package npu_gemm_pkg;
  import npu_pkg::*;
  import npu_fixed_pkg::*;
  import npu_isa_pkg::*;

  // Which of its weights an element of the array uses. An array smaller than a tile holds all parts
  // of the tile at once; the two parts stay zero where one pass covers the tile.
  typedef struct packed {
    logic       set;
    logic [1:0] inner;   // part of the tile's rows
    logic [1:0] column;  // part of the tile's columns
  } weight_sel_t;

  // Weights on their way into the array: a part of a line, with no refusal
  typedef struct packed {
    logic [3:0] strip_valid;  // strips of data to load, two of them where Edge is 32
    logic       set;          // weight set to load
    logic       by_column;    // strips are columns, else rows
    logic [3:0] index;        // which line of the tile
    line_t      data;         // strips of int8, the first lowest
  } weights_t;

  // A column of a row of sums with what post-processing needs of it
  typedef struct packed {
    logic [31:0] high;   // int32 sum; of the high bytes where A has 16 bits
    logic [31:0] low;    // int32 sum; of the low bytes where A has 16 bits
    logic [31:0] bias;   // int32, 0 without bias
    logic [15:0] mult;   // unsigned multiplier
    logic [5:0]  shift;  // right shift
  } post_column_t;

  // Outputs of 16 bits: what is not written is compared at full width.
  function automatic logic is_out16(gemm_out_e out);
    return out inside {GemmOutInt16, GemmOutNone};
  endfunction

  typedef struct packed {
    sram_addr_t  addr;        // of the row's first word in this column tile
    logic [3:0]  words;       // words to write
    logic [5:0]  columns;     // valid columns
    logic        done;        // last row of the instruction
    logic        wide;        // high and low sums
    logic        requant;
    logic        relu;
    logic        accumulate;
    logic        activation;
    gemm_out_e   out;
    gemm_op_e    op;
    logic        argmax;
    logic [15:0] mul;         // OP = MUL
    logic [5:0]  mul_shift;
  } row_ctrl_t;

  // What is multiplied: the sums of one or two passes, plus the bias. Partial sums wrap at 32 bits,
  // each pass for itself.
  function automatic sum_t total(row_ctrl_t ctrl, logic [31:0] high, logic [31:0] low,
                                 logic [31:0] partial_high, logic [31:0] partial_low,
                                 logic signed [31:0] bias);
    logic signed [31:0] sum_high, sum_low;
    sum_t sum;
    sum_high = high + (ctrl.accumulate ? partial_high : 32'd0);
    sum_low  = low + (ctrl.accumulate ? partial_low : 32'd0);
    sum      = sum_t'(sum_high);
    if (ctrl.wide) sum = sum_t'($signed({sum_high, 8'd0})) + sum_t'(sum_low);
    return sum + sum_t'(bias);
  endfunction

  // What the elementwise operation takes: the second operand, times the constant where it multiplies
  // (bytes only, so 24 bits hold the product).
  function automatic logic signed [23:0] element_factor(row_ctrl_t ctrl, logic signed [15:0] d);
    if (ctrl.op != GemmOpMul) return 24'(d);
    return 24'($signed(d[7:0])) * 24'($signed({1'b0, ctrl.mul}));
  endfunction

  function automatic logic [31:0] elementwise(row_ctrl_t ctrl, logic signed [31:0] y,
                                              logic signed [23:0] factor);
    logic multiply;
    logic signed [31:0] z;
    if (ctrl.op == GemmOpNone) return y;
    multiply = ctrl.op == GemmOpMul;
    z        = multiply ? 32'($signed(y[7:0])) * 32'(factor) : 32'(17'(y) + 17'(factor));
    return 32'(round_saturate(acc_t'(z), multiply ? ctrl.mul_shift : '0, is_out16(ctrl.out)));
  endfunction

endpackage
