// SPDX-License-Identifier: Apache-2.0
//
// The tag that travels beside every word through the VEC engine, what its lanes do in an operation, and
// the arithmetic of a lane.

package npu_vec_pkg;

  typedef struct packed {
    logic       param;  // a word of the look-up table
    logic       hold;   // first of two operands: kept until the second arrives
    logic       last;   // last of the row
    logic       upper;  // the step comes without a word: upper halves of those before
    logic [4:0] lanes;  // elements of the row in this step
  } vec_tag_t;

  typedef enum logic [1:0] {
    ResultBounded,  // between two bounds; an index into the table stays as it is
    ResultSum,      // or a difference
    ResultProduct,
    ResultChosen    // the larger or the smaller of two operands
  } vec_result_e;

  // What all lanes do in an operation
  typedef struct packed {
    vec_result_e        result;
    logic               two;       // with two operands
    logic               look_up;   // results are those of the table
    logic               scale;     // the factor is that of the operation, not the second operand
    logic               subtract;
    logic               smaller;   // of two operands
    logic signed [15:0] factor;
    logic signed [15:0] least;     // bounds, those of the type where the operation has none
    logic signed [15:0] most;
    logic signed [15:0] below;     // what an element below the least becomes
    logic [5:0]         shift;     // that rounds
  } vec_mode_t;

  function automatic vec_mode_t mode_of(npu_operation_pkg::vec_operation_t op);
    vec_mode_t found = '{
        result: ResultBounded,
        two: npu_isa_pkg::vec_two(op.op),
        look_up: npu_isa_pkg::vec_table(op.op),
        scale: op.op == npu_isa_pkg::VecScaleShift,
        subtract: op.op inside {npu_isa_pkg::VecSub, npu_isa_pkg::VecMax, npu_isa_pkg::VecMin},
        smaller: op.op == npu_isa_pkg::VecMin,
        factor: op.hi,
        least: 16'sh8000,
        most: 16'sh7fff,
        below: '0,
        shift: npu_isa_pkg::vec_shift(op.op) ? op.shift : '0
    };
    if (op.op == npu_isa_pkg::VecRelu) found.least = '0;
    if (op.op == npu_isa_pkg::VecClamp) begin
      found.least = op.lo;
      found.most  = op.hi;
    end
    found.below = (found.least < found.most) ? found.least : found.most;
    unique case (op.op)
      npu_isa_pkg::VecAdd, npu_isa_pkg::VecSub: found.result = ResultSum;
      npu_isa_pkg::VecMul, npu_isa_pkg::VecScaleShift: found.result = ResultProduct;
      npu_isa_pkg::VecMax, npu_isa_pkg::VecMin: found.result = ResultChosen;
      npu_isa_pkg::VecClamp, npu_isa_pkg::VecRelu: found.result = ResultBounded;
      npu_isa_pkg::VecCopy2d, npu_isa_pkg::VecTable: found.result = ResultBounded;
      default: found.result = ResultBounded;
    endcase
    return found;
  endfunction

  // Result before its rounding shift. The sign of a difference says which operand is the larger.
  function automatic logic signed [31:0] exact(vec_mode_t mode, logic signed [15:0] x,
                                               logic signed [15:0] y);
    logic signed [15:0] factor, bounded;
    logic signed [17:0] sum;  // and below it the carry of the subtraction
    sum     = $signed({x, 1'b1}) + $signed({mode.subtract ? ~17'(y) : 17'(y), mode.subtract});
    factor  = mode.scale ? mode.factor : y;
    bounded = (x < mode.least) ? mode.below : (x > mode.most) ? mode.most : x;
    unique case (mode.result)
      ResultSum: return 32'(sum >>> 1);
      ResultProduct: return 32'(x) * 32'(factor);
      ResultChosen: return (sum[17] ^ mode.smaller) ? 32'(y) : 32'(x);
      default: return 32'(bounded);
    endcase
  endfunction

endpackage
