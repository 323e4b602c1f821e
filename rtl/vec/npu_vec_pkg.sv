// SPDX-License-Identifier: Apache-2.0
//
// The tag that travels beside every word through the VEC engine.

package npu_vec_pkg;

  localparam int unsigned VecLanes = 16;

  typedef struct packed {
    logic       param;  // a word of the look-up table
    logic       hold;   // first of two operands: kept until the second arrives
    logic       last;   // last of the row
    logic       upper;  // int8 to int16: the upper half of the word
    logic [4:0] lanes;  // elements of the row in this word
  } vec_tag_t;

endpackage
