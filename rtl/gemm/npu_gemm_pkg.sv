// SPDX-License-Identifier: Apache-2.0
//
// What travels with a row through the stages of the GEMM engine.

package npu_gemm_pkg;
  import npu_pkg::*;

  // Which of its weights an element of the array uses. An array smaller than a tile holds all parts
  // of the tile at once; the two parts stay zero where one pass covers the tile.
  typedef struct packed {
    logic       set;
    logic [1:0] inner;   // part of the tile's rows
    logic [1:0] column;  // part of the tile's columns
  } weight_sel_t;

  // Outputs of 16 bits: what is not written is compared at full width.
  function automatic logic is_out16(gemm_out_e out);
    return out inside {GemmOutInt16, GemmOutNone};
  endfunction

  typedef struct packed {
    instr_idx_t  instr;
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

endpackage
