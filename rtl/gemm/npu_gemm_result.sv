// SPDX-License-Identifier: Apache-2.0
//
// From rows of sums to the result in SRAM: reader of the second operand, the place where a row and
// all that it needs come together, post-processing, running argmax and writer.

module npu_gemm_result
  import npu_pkg::*;
  import npu_sram_pkg::*;
  import npu_operation_pkg::*;
  import npu_gemm_pkg::*;
#(
  parameter int unsigned Edge = 16,  // tile edge in elements, 16 or 32
  localparam type SumsT = logic [Edge-1:0][31:0]  // a row of int32 sums, one per column of a tile
) (
  input logic clk_i,  // clock
  input logic rst_ni, // reset, active low

  // The same operation for the reader of the second operand and, maybe later, for the rest
  input  logic            operand_valid_i,  // stays until operand_ready_o
  output logic            operand_ready_o,  // high as its last word is asked for, or at once
  input  gemm_operation_t operand_op_i,     // stable while operand_valid_i
  input  logic            collect_valid_i,  // stays until collect_ready_o
  output logic            collect_ready_o,  // high as its last row enters post-processing
  input  gemm_operation_t collect_op_i,     // stable while collect_valid_i

  input  logic  param_valid_i,  // stays until param_ready_o
  output logic  param_ready_o,  // does not depend on param_valid_i
  input  line_t param_i,        // a line of table or parameters, stable while param_valid_i

  input  logic sums_valid_i,  // stays until sums_ready_o
  output logic sums_ready_o,  // may depend on sums_valid_i
  input  SumsT sums_i,        // a row of sums, stable while sums_valid_i

  // Second operand and softmax sums
  output sram_rd_req_t rd_req_o,    // stays, address stable, until rd_ready_i
  input  logic         rd_ready_i,  // granted; may depend on rd_req_o.valid
  input  sram_rd_rsp_t rd_rsp_i,    // words in the order asked for; never refused

  output sram_wr_req_t wr_req_o,   // stays stable until wr_ready_i
  input  logic         wr_ready_i, // granted; may depend on wr_req_o.valid

  output argmax_t argmax_o,       // counts an operation from the cycle after its done_o on
  input  logic    argmax_clear_i, // pulse; not while a row of an argmax operation is written

  output logic done_o  // pulse: an operation's last row is written or dropped
);

  logic word_valid, word_ready, pipe_busy, table_write;
  logic post_valid, post_ready, out_valid, out_ready, write_valid, write_ready;
  word_t word;
  logic [1:0] table_line;
  row_ctrl_t post_ctrl, out_ctrl;
  SumsT post_high, post_low, out;
  word_t [Edge/2-1:0] post_d;
  logic [Edge-1:0][31:0] post_bias;
  logic [Edge-1:0][15:0] post_mult;
  logic [Edge-1:0][5:0] post_shift;

  npu_gemm_operand_d #(
    .Edge(Edge)
  ) u_operand_d (
    .clk_i,
    .rst_ni,
    .op_valid_i  (operand_valid_i),
    .op_ready_o  (operand_ready_o),
    .op_i        (operand_op_i),
    .word_valid_o(word_valid),
    .word_ready_i(word_ready),
    .word_o      (word),
    .rd_req_o,
    .rd_ready_i,
    .rd_rsp_i
  );

  npu_gemm_collect #(
    .Edge(Edge)
  ) u_collect (
    .clk_i,
    .rst_ni,
    .op_valid_i   (collect_valid_i),
    .op_ready_o   (collect_ready_o),
    .op_i         (collect_op_i),
    .param_valid_i,
    .param_ready_o,
    .param_i,
    .sums_valid_i,
    .sums_ready_o,
    .sums_i,
    .word_valid_i (word_valid),
    .word_ready_o (word_ready),
    .word_i       (word),
    .pipe_busy_i  (pipe_busy),
    .table_write_o(table_write),
    .table_line_o (table_line),
    .row_valid_o  (post_valid),
    .row_ready_i  (post_ready),
    .row_ctrl_o   (post_ctrl),
    .row_high_o   (post_high),
    .row_low_o    (post_low),
    .row_d_o      (post_d),
    .row_bias_o   (post_bias),
    .row_mult_o   (post_mult),
    .row_shift_o  (post_shift)
  );

  npu_gemm_post #(
    .Edge(Edge)
  ) u_post (
    .clk_i,
    .rst_ni,
    .table_write_i(table_write),
    .table_line_i (table_line),
    .table_data_i (param_i),
    .busy_o       (pipe_busy),
    .row_valid_i  (post_valid),
    .row_ready_o  (post_ready),
    .row_ctrl_i   (post_ctrl),
    .row_high_i   (post_high),
    .row_low_i    (post_low),
    .row_d_i      (post_d),
    .row_bias_i   (post_bias),
    .row_mult_i   (post_mult),
    .row_shift_i  (post_shift),
    .out_valid_o  (out_valid),
    .out_ready_i  (out_ready),
    .out_ctrl_o   (out_ctrl),
    .out_o        (out)
  );

  npu_gemm_argmax #(
    .Edge(Edge)
  ) u_argmax (
    .clk_i,
    .rst_ni,
    .clear_i    (argmax_clear_i),
    .row_valid_i(out_valid),
    .row_ready_o(out_ready),
    .row_ctrl_i (out_ctrl),
    .row_i      (out),
    .row_valid_o(write_valid),
    .row_ready_i(write_ready),
    .argmax_o
  );

  npu_gemm_writer #(
    .Edge(Edge)
  ) u_writer (
    .clk_i,
    .rst_ni,
    .row_valid_i(write_valid),
    .row_ready_o(write_ready),
    .row_ctrl_i (out_ctrl),
    .row_i      (out),
    .wr_req_o,
    .wr_ready_i,
    .done_o
  );

endmodule
