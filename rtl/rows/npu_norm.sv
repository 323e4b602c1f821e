// SPDX-License-Identifier: Apache-2.0
//
// LAYERNORM and RMSNORM: normalises int16 rows to int8 or int16 with a gain and a bias per column.
// A walker issues octets of two passes over each row, the summing pass one row ahead; parameters
// come from the stream or from SRAM, once per instruction. Words are fetched and stored by the
// engine around this.

module npu_norm #(
  parameter int unsigned Lanes   = 8,    // columns in a cycle, 4 or 8
  // Longest row in columns, a multiple of 16 from 32 to 8192: sizes the parameter buffer
  parameter int unsigned NormMax = 8192
) (
  input logic clk_i,  // clock
  input logic rst_ni, // reset, active low

  // Pulse: a new operation; only while busy_o and streaming_o are low
  input logic start_i,
  input npu_operation_pkg::nrm_operation_t op_i,  // LAYERNORM or RMSNORM, with start_i
  output logic busy_o,  // work inside or to be asked for; not words being fetched

  // What to fetch, and what came. What step_o says with start_i, not yet valid, is the first step.
  output npu_pkg::row_step_t step_o,  // every step reads a word; stays until it is taken
  input logic step_ready_i,  // taken; may depend on step_o.valid
  output npu_rows_pkg::norm_tag_t step_tag_o,  // what the word is for; comes back as fetch_tag_i
  input logic fetch_valid_i,  // in that order; stays until ready, all stable
  output logic fetch_ready_o,  // taken; depends on fetch_valid_i and the tag
  input npu_rows_pkg::norm_tag_t fetch_tag_i,  // what it is for, with fetch_valid_i
  input npu_pkg::word_t fetch_word_i,  // parameters, or eight columns of int16

  // Words of the output, row by row
  output npu_pkg::row_word_t word_o,       // 8 or 16 columns; stays until ready
  input  logic               word_ready_i, // taken; may come without word_o.valid

  input npu_stream_pkg::share_line_t share_i,  // header first, then the records of 16 columns each
  // Ready: from registers, once for each line that is missing
  output npu_stream_pkg::share_take_t share_o,
  output logic streaming_o,  // lines are missing

  // Multipliers for ROPE
  input logic rope_i,  // they are lent: a level, only while busy_o and fetch_valid_i are low
  input npu_rows_pkg::rope_work_t work_i,  // only with rope_i
  input logic [Lanes-1:0][7:0] work_lanes_i,  // int8, with work_i.load
  input npu_rows_pkg::rope_turn_t [Lanes/2-1:0] work_turns_i,  // of the pairs; else zero
  // One cycle after work_i.multiply, until the next
  output npu_rows_pkg::rope_product_t [Lanes-1:0] products_o
);

  import npu_operation_pkg::*;
  import npu_rows_pkg::*;

  logic rms_q, out16_q, walk_active, fetch_param;
  logic [13:0] cols_q;

  // Statistics and parameters
  logic stat_pop, eps_valid, param_read;
  norm_part_t stat_part;
  logic [Lanes-1:0][31:0] stat_square;
  norm_result_t stat;
  logic [63:0] eps;
  logic [11:0] slices;
  logic [10:0] param_slice;
  norm_record_t [Lanes-1:0] record;

  logic pipe_ready, pipe_empty;

  assign busy_o        = walk_active || !pipe_empty;
  assign fetch_param   = fetch_valid_i && fetch_tag_i.kind == NormParam;
  assign fetch_ready_o = fetch_param || pipe_ready;

  always_ff @(posedge clk_i) begin
    if (!rst_ni) begin
      rms_q   <= 1'b0;
      out16_q <= 1'b0;
      cols_q  <= '0;
    end else if (start_i) begin
      rms_q   <= op_i.op == NrmRms;
      out16_q <= op_i.out16;
      cols_q  <= op_i.cols[13:0];
    end
  end

  npu_norm_walk u_walk (
    .clk_i,
    .rst_ni,
    .start_i,
    .op_i,
    .active_o(walk_active),
    .step_o,
    .step_ready_i,
    .step_tag_o
  );

  npu_norm_param #(
    .Lanes  (Lanes),
    .NormMax(NormMax)
  ) u_param (
    .clk_i,
    .rst_ni,
    .start_i,
    .from_stream_i(op_i.stream),
    .cols_i       (op_i.cols),
    .word_valid_i (fetch_param),
    .word_i       (fetch_word_i),
    .share_i,
    .share_o,
    .streaming_o,
    .eps_valid_o  (eps_valid),
    .eps_o        (eps),
    .slices_o     (slices),
    .read_i       (param_read),
    .slice_i      (param_slice),
    .record_o     (record)
  );

  npu_norm_stat #(
    .Lanes  (Lanes),
    .NormMax(NormMax)
  ) u_stat (
    .clk_i,
    .rst_ni,
    .cols_i     (cols_q),
    .rms_i      (rms_q),
    .eps_valid_i(eps_valid),
    .eps_i      (eps),
    .part_i     (stat_part),
    .square_i   (stat_square),
    .result_o   (stat),
    .pop_i      (stat_pop)
  );

  npu_norm_pipe #(
    .Lanes  (Lanes),
    .NormMax(NormMax)
  ) u_pipe (
    .clk_i,
    .rst_ni,
    .out16_i      (out16_q),
    .valid_i      (fetch_valid_i && !fetch_param),
    .ready_o      (pipe_ready),
    .tag_i        (fetch_tag_i),
    .word_i       (fetch_word_i),
    .part_o       (stat_part),
    .square_o     (stat_square),
    .stat_i       (stat),
    .stat_pop_o   (stat_pop),
    .slices_i     (slices),
    .param_read_o (param_read),
    .param_slice_o(param_slice),
    .record_i     (record),
    .word_o,
    .word_ready_i,
    .empty_o      (pipe_empty),
    .rope_i,
    .work_i,
    .work_lanes_i,
    .work_turns_i,
    .products_o
  );

`ifndef SYNTHESIS
  StartWhenIdle_A :
  assert property (@(posedge clk_i) disable iff (!rst_ni) start_i |-> !busy_o && !streaming_o)
  else $error("npu_norm: started before the last operation is through");
`endif

endmodule
