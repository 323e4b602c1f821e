// SPDX-License-Identifier: Apache-2.0
//
// SOFTMAX engine: base-2 softmax over rows of scores in SRAM, int8 or int16, written back as
// unnormalised numerators with their row sums, or as 8-bit probabilities. A walker issues octets of
// columns; they pass one pipeline (unpack, running maximum, exponential in two stages, sum and
// packing) that stands still only while the write queue is full. One instruction at a time.

module npu_softmax #(
  parameter int unsigned ArrayDim = 16  // rows and columns of the array: 4, 8, 16 or 32
) (
  input logic clk_i,  // clock
  input logic rst_ni, // reset, active low

  input logic op_valid_i,  // an operation; stays until ready, data stable
  // One at a time: none inside, or the last one is done; independent of op_valid_i
  output logic op_ready_o,
  input npu_operation_pkg::smx_operation_t op_i,  // the operation, with op_valid_i

  // Done: all its words are in SRAM; stall: a read or a write waits
  output npu_pkg::engine_status_t status_o,

  output npu_sram_pkg::sram_rd_req_t rd_req_o,   // stays, address stable, until rd_rsp_i.ready
  input  npu_sram_pkg::sram_rd_rsp_t rd_rsp_i,   // ready may depend on the request; words in order
  output npu_sram_pkg::sram_wr_req_t wr_req_o,   // stays until ready, all stable
  input  logic                       wr_ready_i  // taken; may depend on wr_req_o.valid
);

  import npu_pkg::*;
  import npu_sram_pkg::*;
  import npu_isa_pkg::*;
  import npu_rows_pkg::*;

  // Instruction
  logic busy_q, start, finished;
  smx_out_e out_q;
  logic score8_q;
  sram_addr_t sums_q;  // where the next row sum goes

  // Steps
  logic walk_active, step_ready;
  row_step_t step;
  smx_tag_t  step_tag;

  // Stages
  logic advance, hold, move, fetch_valid;  // move: all stages, not only the last ones
  logic fetch_empty, max_empty, exp_empty, sum_empty, write_empty;
  smx_tag_t fetch_tag;
  word_t fetch_word;
  smx_scores_t scores;
  smx_numers_t numers;

  // Results
  logic write_ready, sum_valid;
  row_word_t word;
  sram_wr_req_t side;
  logic [31:0] sum;

  assign side = '{valid: sum_valid, addr: sums_q, data: {96'd0, sum}};

  assign finished = busy_q && !walk_active && fetch_empty && max_empty && exp_empty && sum_empty &&
                    write_empty;
  assign op_ready_o = !busy_q || finished;
  assign start = op_valid_i && op_ready_o;
  assign status_o.done = finished;
  assign status_o.busy = busy_q;
  assign status_o.stall = (rd_req_o.valid && !rd_rsp_i.ready) || (wr_req_o.valid && !wr_ready_i);
  assign advance = !(word.valid || sum_valid) || write_ready;
  assign move = advance && !hold;

  always_ff @(posedge clk_i) begin
    if (!rst_ni) begin
      busy_q   <= 1'b0;
      out_q    <= SmxOutProb8;
      score8_q <= 1'b0;
      sums_q   <= '0;
    end else if (start) begin
      busy_q   <= 1'b1;
      out_q    <= op_i.out;
      score8_q <= op_i.score8;
      sums_q   <= op_i.sums;
    end else begin
      if (finished) busy_q <= 1'b0;
      if (sum_valid && advance) sums_q <= sums_q + 1'b1;
    end
  end

  npu_smx_walk u_walk (
    .clk_i,
    .rst_ni,
    .start_i     (start),
    .op_i,
    .active_o    (walk_active),
    .step_o      (step),
    .step_ready_i(step_ready),
    .step_tag_o  (step_tag)
  );

  npu_row_fetch #(
    .TagT(smx_tag_t)
  ) u_fetch (
    .clk_i,
    .rst_ni,
    .step_i      (step),
    .step_ready_o(step_ready),
    .step_tag_i  (step_tag),
    .valid_o     (fetch_valid),
    .ready_i     (move),
    .tag_o       (fetch_tag),
    .word_o      (fetch_word),
    .empty_o     (fetch_empty),
    .rd_req_o,
    .rd_rsp_i
  );

  npu_smx_max u_max (
    .clk_i,
    .rst_ni,
    .advance_i(move),
    .score8_i (score8_q),
    .valid_i  (fetch_valid),
    .tag_i    (fetch_tag),
    .word_i   (fetch_word),
    .scores_o (scores),
    .empty_o  (max_empty)
  );

  npu_exp u_exp (
    .clk_i,
    .rst_ni,
    .advance_i(move),
    .narrow_i (out_q == SmxOutNumer8),
    .scores_i (scores),
    .numers_o (numers),
    .empty_o  (exp_empty)
  );

  npu_smx_sum #(
    .Lanes((ArrayDim < 16) ? 4 : 8)
  ) u_sum (
    .clk_i,
    .rst_ni,
    .start_i    (start),
    .out_i      (out_q),
    .advance_i  (advance),
    .numers_i   (numers),
    .hold_o     (hold),
    .word_o     (word),
    .sum_valid_o(sum_valid),
    .sum_o      (sum),
    .empty_o    (sum_empty)
  );

  npu_row_writer u_writer (
    .clk_i,
    .rst_ni,
    .start_i(start),
    .dst_i  (op_i.dst),
    .pitch_i(op_i.dst_pitch),
    .ready_o(write_ready),
    .word_i (word),
    .side_i (side),
    .empty_o(write_empty),
    .wr_req_o,
    .wr_ready_i
  );

`ifndef SYNTHESIS
  OperationKept_A :
  assert property (@(posedge clk_i) disable iff (!rst_ni) op_valid_i && !op_ready_o |=> op_valid_i)
  else $error("npu_softmax: an operation is withdrawn before it is taken");
  ReadKept_A :
  assert property (@(posedge clk_i) disable iff (!rst_ni)
                   rd_req_o.valid && !rd_rsp_i.ready |=> rd_req_o.valid && $stable(
      rd_req_o.addr
  ))
  else $error("npu_softmax: a read is withdrawn or changed before it is granted");
`endif

endmodule
