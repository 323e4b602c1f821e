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

  // ---------------------------------------------------------------------------------------------
  // Narrow formats of weights in the stream
  // ---------------------------------------------------------------------------------------------
  typedef enum logic [1:0] {
    GatherByte,    // a byte for each weight
    GatherNibble,  // four bits, and two from the plane where the format has one
    GatherCrumb,   // two bits, sign-extended to four
    GatherKept     // one of the two that a quad keeps, or zero
  } gather_e;

  // What an element's code means. A number is v * 2^-t; only minifloats of bit 2 have a t.
  typedef enum logic [2:0] {
    CodeInt4 = 3'd0,  // times 16
    CodeNf4  = 3'd1,
    CodeE2m1 = 3'd2,
    CodeInt8 = 3'd3,
    CodeM3   = 3'd4,  // minifloats with three bits of mantissa, sign in bit 7
    CodeM2   = 3'd5   // and with two
  } code_e;

  // A format, taken apart
  typedef struct packed {
    gather_e    gather;    // where the codes of a line of weights are
    code_e      code;      // what they mean
    logic [1:0] parts;     // lines of weights in a line of the stream, minus 1: 0, 1 or 3
    logic       kept8;     // what quads keep are bytes, else nibbles
    logic       grouped;   // groups have side bytes, by which their weights are multiplied
    logic       power;     // b means 2^-b, else b / 256
    logic       plane;     // in front of a tile stand its upper bits, or the positions of its quads
    logic [5:0] exponent;  // minifloats: largest exponent field of a finite number
  } weight_format_t;

  // What the weights of a column are multiplied by: this / 256; or for minifloats 2^-this, from which
  // the exponent field is subtracted
  typedef logic [8:0] scale_t;

  function automatic weight_format_t weight_format(weight_format_e name);
    weight_format_t f;
    f = '{gather: GatherNibble, code: CodeInt4, parts: 2'd1, default: '0};
    unique case (name)
      WeightFormatInt8: {f.gather, f.code, f.parts} = {GatherByte, CodeInt8, 2'd0};
      WeightFormatInt4g: f.grouped = 1'b1;
      WeightFormatInt4s: {f.gather, f.plane, f.parts} = {GatherKept, 1'b1, 2'd3};
      WeightFormatInt2: {f.gather, f.parts} = {GatherCrumb, 2'd3};
      WeightFormatInt8s: {f.gather, f.code, f.plane, f.kept8} = {GatherKept, CodeInt8, 2'b11};
      WeightFormatNf4g: {f.code, f.grouped} = {CodeNf4, 1'b1};
      WeightFormatFp4g: {f.code, f.grouped} = {CodeE2m1, 1'b1};
      WeightFormatMxint8: begin
        {f.gather, f.code, f.parts, f.grouped, f.power} = {GatherByte, CodeInt8, 4'b0011};
      end
      WeightFormatMxfp8e4: begin
        {f.gather, f.code, f.parts, f.grouped, f.power} = {GatherByte, CodeM3, 4'b0011};
        f.exponent = 6'd15;
      end
      WeightFormatMxfp8e5: begin
        {f.gather, f.code, f.parts, f.grouped, f.power} = {GatherByte, CodeM2, 4'b0011};
        f.exponent = 6'd30;
      end
      WeightFormatMxfp6e3:
      {f.code, f.grouped, f.power, f.plane, f.exponent} = {CodeM2, 3'b111, 6'd7};
      WeightFormatMxfp6e2:
      {f.code, f.grouped, f.power, f.plane, f.exponent} = {CodeM3, 3'b111, 6'd3};
      WeightFormatMxfp4: {f.code, f.grouped, f.power} = {CodeE2m1, 2'b11};
      default: f.code = CodeInt4;
    endcase
    return f;
  endfunction

  // Lines of the plane that stands in front of a tile
  function automatic int unsigned plane_lines(weight_format_t f, int unsigned edge_cells);
    if (edge_cells == 16) return 1;
    return f.grouped ? 4 : 2;
  endfunction

  // Of a column without side bytes what leaves its weights as they are, else of a side byte. Where
  // 2^-8 or less is left of a minifloat nothing is, so exponents of blocks count up to 15.
  function automatic scale_t scale_of(weight_format_t f, logic [7:0] b);
    logic [3:0] halvings;
    scale_t scale;
    halvings = b[3:0] | {4{b[7:4] != '0}};
    scale    = f.power ? 9'd256 >> halvings : {1'b0, b};
    if (!f.grouped) scale = (f.code == CodeInt8) ? 9'd256 : 9'd16;
    if (f.code inside {CodeM3, CodeM2}) scale = 9'(f.exponent) + 9'(halvings);
    return scale;
  endfunction

  // A column of a row of sums with its parameters
  typedef struct packed {
    logic [31:0] high;   // int32 sum; of the high bytes where A has 16 bits
    logic [31:0] low;    // int32 sum; of the low bytes where A has 16 bits
    logic [31:0] bias;   // int32, 0 without bias
    logic [15:0] mult;   // unsigned multiplier
    logic [5:0]  shift;  // right shift
  } post_column_t;

  // By what sums are requantised
  typedef struct packed {
    logic [5:0]  shift;  // right shift
    logic [15:0] mult;   // unsigned multiplier
  } factor_t;

  // The same for a channel, in the order of the share's records
  typedef struct packed {
    factor_t     factor;
    logic [31:0] bias;    // int32
  } column_factor_t;

  // By what a row is requantised that has a softmax sum: mult * 2^-(16 + msb)
  typedef struct packed {
    logic [15:0] mult;
    logic [4:0]  msb;
  } row_factor_t;

  // What the second operand has for a column, in each form that it may have
  typedef struct packed {
    logic [31:0]        partial_high;  // partial sum; of the high bytes where A has 16 bits
    logic [31:0]        partial_low;   // partial sum of the low bytes where A has 16 bits
    logic signed [15:0] element;       // int8 or int16
  } post_second_t;

  // Outputs of 16 bits: what is not written is compared at full width.
  function automatic logic is_out16(gemm_out_e out);
    return out inside {GemmOutInt16, GemmOutNone};
  endfunction

  // What travels with a beat: those columns of a row that are worked on at once, first ones first
  typedef struct packed {
    sram_addr_t  addr;        // of the row's first word in this column tile
    logic [3:0]  words;       // words of the row in this column tile
    logic [5:0]  columns;     // valid columns of the beat, at least 1
    logic        last;        // last beat of the row
    logic        done;        // last beat of the instruction
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
  } beat_ctrl_t;

  // What is multiplied: the sums of one or two passes, plus the bias. Partial sums wrap at 32 bits,
  // each pass for itself.
  function automatic sum_t total(beat_ctrl_t ctrl, logic [31:0] high, logic [31:0] low,
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
  function automatic logic signed [23:0] element_factor(beat_ctrl_t ctrl, logic signed [15:0] d);
    if (ctrl.op != GemmOpMul) return 24'(d);
    return 24'($signed(d[7:0])) * 24'($signed({1'b0, ctrl.mul}));
  endfunction

  // Without a multiplication: the sum with it, saturated, where there is one. Both have the width of
  // the result.
  function automatic logic [31:0] element_sum(beat_ctrl_t ctrl, logic signed [31:0] y,
                                              logic signed [15:0] d);
    logic signed [16:0] sum;
    logic is_16, negative, fits;
    if (ctrl.op != GemmOpAdd) return y;
    is_16    = is_out16(ctrl.out);
    sum      = 17'(d) + 17'(y);
    negative = is_16 ? sum[16] : sum[8];
    fits     = negative == (is_16 ? sum[15] : sum[7]);
    if (fits) return 32'(sum);
    return 32'($signed({negative, {8{negative ^ is_16}}, {7{!negative}}}));
  endfunction

  // With one, of bytes to bytes: the product, and what becomes of it a cycle later
  typedef logic signed [30:0] element_product_t;

  function automatic element_product_t element_product(logic signed [7:0] y,
                                                       logic signed [23:0] factor);
    return 31'(y) * 31'(factor);
  endfunction

  function automatic logic signed [7:0] element_rounded(element_product_t product,
                                                        logic [5:0] shift);
    return 8'(round_saturate(acc_t'(product), shift, 1'b0));
  endfunction

endpackage
