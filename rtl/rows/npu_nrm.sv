// SPDX-License-Identifier: Apache-2.0
//
// Engine of LAYERNORM, RMSNORM and ROPE: the norms and the rotation behind one queue, with the SRAM
// ports between them, on the same multipliers. One instruction at a time.

module npu_nrm #(
  parameter int unsigned ArrayDim = 16,  // rows and columns of the array: 4, 8, 16 or 32
  // Longest row of a norm in columns, a multiple of 16 from 32 to 8192
  parameter int unsigned NormMax = 8192,
  localparam int unsigned Lanes = (ArrayDim < 16) ? 4 : 8  // columns in a cycle
) (
  input logic clk_i,  // clock
  input logic rst_ni, // reset, active low

  input logic op_valid_i,  // an operation; stays until ready, data stable
  // One at a time: none inside, or the last one is done; independent of op_valid_i
  output logic op_ready_o,
  input npu_operation_pkg::nrm_operation_t op_i,  // the operation, with op_valid_i

  // Done: all its words are in SRAM; stall: read, write or share waits
  output npu_pkg::engine_status_t status_o,

  output npu_sram_pkg::sram_rd_req_t rd_req_o,   // stays, address stable, until rd_rsp_i.ready
  input  npu_sram_pkg::sram_rd_rsp_t rd_rsp_i,   // ready may depend on the request; words in order
  output npu_sram_pkg::sram_wr_req_t wr_req_o,   // stays until ready, all stable
  input  logic                       wr_ready_i, // taken; may depend on wr_req_o.valid

  input  npu_stream_pkg::share_line_t share_i,  // lines of the share
  // Ready: from registers, at most in every second cycle, or fourth with four lanes
  output npu_stream_pkg::share_take_t share_o
);

  import npu_pkg::*;
  import npu_sram_pkg::*;
  import npu_operation_pkg::*;
  import npu_rows_pkg::*;

  // Instruction
  logic busy_q, rope_q, is_rope, start, finished;

  // Steps
  logic norm_busy, norm_ready, rope_busy, rope_ready;
  logic step_ready, fetch_valid, fetch_empty;
  row_step_t norm_step, rope_step, step;
  norm_tag_t norm_tag;
  rope_tag_t rope_tag;
  row_tag_t step_tag, fetch_tag;
  word_t fetch_word;
  rope_work_t work;
  logic [Lanes-1:0][7:0] work_lanes;
  rope_turn_t [Lanes/2-1:0] work_turns;
  rope_product_t [Lanes-1:0] products;
  logic streaming;

  // Results
  logic write_ready, write_empty;
  row_word_t norm_word;
  sram_wr_req_t rope_word;

  assign is_rope = op_i.op == NrmRope;
  assign finished = busy_q && !norm_busy && !rope_busy && fetch_empty && write_empty;
  assign op_ready_o = !busy_q || finished;
  assign start = op_valid_i && op_ready_o;
  assign status_o.done = finished;
  assign status_o.busy = busy_q;
  // A write is refused, or no word is read while a read is refused or the stream is late.
  assign status_o.stall = (wr_req_o.valid && !wr_ready_i) ||
                   (rd_req_o.valid ? !rd_rsp_i.ready : streaming && !share_i.valid);

  always_ff @(posedge clk_i) begin
    if (!rst_ni) begin
      busy_q <= 1'b0;
      rope_q <= 1'b0;
    end else if (start) begin
      busy_q <= 1'b1;
      rope_q <= is_rope;
    end else if (finished) begin
      busy_q <= 1'b0;
    end
  end

  npu_norm #(
    .Lanes  (Lanes),
    .NormMax(NormMax)
  ) u_norm (
    .clk_i,
    .rst_ni,
    .start_i      (start && !is_rope),
    .op_i,
    .busy_o       (norm_busy),
    .step_o       (norm_step),
    .step_ready_i (step_ready),
    .step_tag_o   (norm_tag),
    .fetch_valid_i(fetch_valid && !rope_q),
    .fetch_ready_o(norm_ready),
    .fetch_tag_i  (fetch_tag.norm),
    .fetch_word_i (fetch_word),
    .word_o       (norm_word),
    .word_ready_i (write_ready),
    .share_i,
    .share_o,
    .streaming_o  (streaming),
    .rope_i       (rope_q),
    .work_i       (work),
    .work_lanes_i (work_lanes),
    .work_turns_i (work_turns),
    .products_o   (products)
  );

  npu_rope #(
    .Pairs(Lanes / 2)
  ) u_rope (
    .clk_i,
    .rst_ni,
    .start_i      (start && is_rope),
    .op_i,
    .busy_o       (rope_busy),
    .step_o       (rope_step),
    .step_ready_i (step_ready),
    .step_tag_o   (rope_tag),
    .fetch_valid_i(fetch_valid && rope_q),
    .fetch_ready_o(rope_ready),
    .fetch_tag_i  (fetch_tag.rope),
    .fetch_word_i (fetch_word),
    .work_o       (work),
    .work_lanes_o (work_lanes),
    .work_turns_o (work_turns),
    .products_i   (products),
    .word_o       (rope_word),
    .word_ready_i (write_ready)
  );

  always_comb begin
    step       = rope_step.valid ? rope_step : norm_step;
    step.valid = norm_step.valid || rope_step.valid || (start && !is_rope);
    step_tag   = '{norm: norm_tag, rope: rope_tag};
    if (rope_step.valid) step_tag.norm = '0;
  end

  npu_row_fetch #(
    .TagT(row_tag_t)
  ) u_fetch (
    .clk_i,
    .rst_ni,
    .step_i      (step),
    .step_ready_o(step_ready),
    .step_tag_i  (step_tag),
    .valid_o     (fetch_valid),
    .ready_i     (rope_q ? rope_ready : norm_ready),
    .tag_o       (fetch_tag),
    .word_o      (fetch_word),
    .empty_o     (fetch_empty),
    .rd_req_o,
    .rd_rsp_i
  );

  npu_row_writer u_writer (
    .clk_i,
    .rst_ni,
    .start_i(start),
    .dst_i  (op_i.dst),
    .pitch_i(op_i.dst_pitch),
    .ready_o(write_ready),
    .word_i (norm_word),
    .side_i (rope_word),
    .empty_o(write_empty),
    .wr_req_o,
    .wr_ready_i
  );

`ifndef SYNTHESIS
  OperationKept_A :
  assert property (@(posedge clk_i) disable iff (!rst_ni) op_valid_i && !op_ready_o |=> op_valid_i)
  else $error("npu_nrm: an operation is withdrawn before it is taken");
  ReadKept_A :
  assert property (@(posedge clk_i) disable iff (!rst_ni)
                   rd_req_o.valid && !rd_rsp_i.ready |=> rd_req_o.valid && $stable(
      rd_req_o.addr
  ))
  else $error("npu_nrm: a read is withdrawn or changed before it is granted");
  DoneWithShare_A :
  assert property (@(posedge clk_i) disable iff (!rst_ni) finished |-> !streaming)
  else $error("npu_nrm: done before the share is taken");
  OneAtATime_A :
  assert property (@(posedge clk_i) disable iff (!rst_ni) !(norm_busy && rope_busy))
  else $error("npu_nrm: norm and rotation work at the same time");
`endif

endmodule
