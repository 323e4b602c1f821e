// SPDX-License-Identifier: Apache-2.0
//
// Types that the parts of the command port share. Shape, places and strides of a tile keep the layout
// of the registers GEMM_CFG, GEMM_BASE and GEMM_STRIDE.

package npu_cmd_pkg;

  typedef npu_cmd_regs_pkg::npu_cmd_regs__cmd_op_e op_e;

  typedef struct packed {
    logic [23:0] cfg;
    logic [23:0] base;
    logic [23:0] stride;
  } tile_t;

  // What the operation unit executes
  typedef struct packed {
    op_e         opcode;
    logic        ternary;
    logic [31:0] a;
    logic [31:0] b;
    logic [31:0] acc;
    tile_t       tile;
  } operation_t;

  // How an operation ended
  typedef enum logic [1:0] {
    EndOkay,
    EndRefused,  // shape or place: nothing has changed
    EndReserved  // a reserved lane: RESULT has not changed
  } end_e;

  // A microcode program that a descriptor launches
  typedef struct packed {
    npu_pkg::mem_addr_t ucode_base;
    logic [31:0]        ucode_length;
    logic [31:0]        pos;
    logic [31:0]        token;
    npu_pkg::mem_addr_t base0;
    npu_pkg::mem_addr_t base1;
  } launch_t;

endpackage
