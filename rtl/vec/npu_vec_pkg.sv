// SPDX-License-Identifier: Apache-2.0
//
// The tag that travels beside every word through the VEC engine, and the arithmetic of a lane.

package npu_vec_pkg;

  typedef struct packed {
    logic       param;  // a word of the look-up table
    logic       hold;   // first of two operands: kept until the second arrives
    logic       last;   // last of the row
    logic       upper;  // the step comes without a word: upper halves of those before
    logic [4:0] lanes;  // elements of the row in this step
  } vec_tag_t;

  // Exact result of an operation, before its rounding shift: a sum, a product, or what lies between
  // two bounds, which are those of the type where the operation has none. An index into the table
  // stays as it is. The sign of a difference says which of two operands is the larger.
  function automatic logic signed [31:0] exact(npu_isa_pkg::vec_op_e op, logic signed [15:0] x,
                                               logic signed [15:0] y, logic signed [15:0] lo,
                                               logic signed [15:0] hi);
    logic subtract;
    logic signed [15:0] factor, least, most, below, bounded;
    logic signed [17:0] sum;  // and below it the carry of the subtraction
    subtract = op inside {npu_isa_pkg::VecSub, npu_isa_pkg::VecMax, npu_isa_pkg::VecMin};
    sum      = $signed({x, 1'b1}) + $signed({subtract ? ~17'(y) : 17'(y), subtract});
    factor   = (op == npu_isa_pkg::VecMul) ? y : hi;
    least    = 16'sh8000;
    most     = 16'sh7fff;
    if (op == npu_isa_pkg::VecRelu) least = '0;
    if (op == npu_isa_pkg::VecClamp) begin
      least = lo;
      most  = hi;
    end
    below   = (least < most) ? least : most;
    bounded = (x < least) ? below : (x > most) ? most : x;
    unique case (op)
      npu_isa_pkg::VecAdd, npu_isa_pkg::VecSub: return 32'(sum >>> 1);
      npu_isa_pkg::VecMul, npu_isa_pkg::VecScaleShift: return 32'(x) * 32'(factor);
      npu_isa_pkg::VecMax: return sum[17] ? 32'(y) : 32'(x);
      npu_isa_pkg::VecMin: return sum[17] ? 32'(x) : 32'(y);
      npu_isa_pkg::VecClamp, npu_isa_pkg::VecRelu: return 32'(bounded);
      npu_isa_pkg::VecCopy2d, npu_isa_pkg::VecTable: return 32'(bounded);
      default: return 32'(bounded);
    endcase
  endfunction

endpackage
