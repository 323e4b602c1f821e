// SPDX-License-Identifier: Apache-2.0
//
// GEMM engine: C = post(A * B). Its stages (loader of weights, feeder of activations, drain of
// sums, reader of the second operand, post-processing) each walk through the tiles of an
// instruction at their own pace and may be in different instructions; tokens between them say when
// a tile's weights are in place, when they are no longer needed, and when an accumulator bank is
// free.

module npu_gemm
  import npu_pkg::*;
  import npu_gemm_pkg::*;
#(
  parameter int unsigned ArrayDim = 16,
  parameter int unsigned AccRows = 128
) (
  input  logic clk_i,
  input  logic rst_ni,

  input  logic       cmd_valid_i,
  output logic       cmd_ready_o,
  input  gemm_cmd_t  cmd_i,
  output logic       done_o,
  output logic       busy_o,
  output logic       stall_o,
  output instr_idx_t instr_o,

  input  logic  stream_valid_i,
  input  beat_t stream_data_i,
  output logic  stream_ready_o,
  output logic  stream_last_o,

  // SRAM reads: 0 operand A, 1 and 2 operand B, 3 second operand
  output sram_rd_req_t rd_req_o   [4],
  input  logic         rd_ready_i [4],
  input  sram_rd_rsp_t rd_rsp_i   [4],
  output sram_wr_req_t wr_req_o,
  input  logic         wr_ready_i,

  output logic [11:0] macs_o
);

  localparam int unsigned RowW = $clog2(AccRows);
  localparam int unsigned LinesPerBeat = BeatBytes / ArrayDim;
  localparam int unsigned BeatIdxW = $clog2(ArrayDim / LinesPerBeat);
  typedef logic [ArrayDim-1:0][31:0] sums_t;

  if (!(ArrayDim inside {16, 32})) begin : gen_bad_dim
    $fatal(1, "npu_gemm: ArrayDim = %0d, must be 16 or 32", ArrayDim);
  end
  if ((AccRows & (AccRows - 1)) != 0 || AccRows < 4) begin : gen_bad_rows
    $fatal(1, "npu_gemm: AccRows = %0d, must be a power of two of at least 4", AccRows);
  end

  // ---------------------------------------------------------------------------------------------
  // Commands
  // ---------------------------------------------------------------------------------------------
  localparam int unsigned Loader = 0;
  localparam int unsigned Feeder = 1;
  localparam int unsigned Drain = 2;
  localparam int unsigned OperandD = 3;
  localparam int unsigned Collect = 4;

  logic      stage_valid[5];
  logic      stage_ready[5];
  gemm_cmd_t stage_cmd  [5];

  npu_multicast_fifo #(
    .DataT     (gemm_cmd_t),
    .Depth     (4),
    .NumReaders(5)
  ) u_commands (
    .clk_i,
    .rst_ni,
    .valid_i(cmd_valid_i && !in_flight_q[2]),
    .ready_o(queue_ready),
    .data_i (cmd_i),
    .valid_o(stage_valid),
    .ready_i(stage_ready),
    .data_o (stage_cmd)
  );

  // Instructions inside, and the oldest of them
  logic queue_ready, accept;
  logic [2:0] in_flight_q;
  assign cmd_ready_o = queue_ready && !in_flight_q[2];
  assign accept      = cmd_valid_i && cmd_ready_o;
  assign busy_o      = in_flight_q != '0;

  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) in_flight_q <= '0;
    else in_flight_q <= in_flight_q + 3'(accept) - 3'(done_o);
  end

  npu_fifo #(
    .DataT(instr_idx_t),
    .Depth(4)
  ) u_instr (
    .clk_i,
    .rst_ni,
    .valid_i(accept),
    .ready_o(),
    .data_i (cmd_i.instr),
    .valid_o(),
    .ready_i(done_o),
    .data_o (instr_o),
    .count_o()
  );

  // ---------------------------------------------------------------------------------------------
  // Weights
  // ---------------------------------------------------------------------------------------------
  logic param_in_valid, param_in_ready, param_valid, param_ready;
  beat_t param_in, param;
  logic [LinesPerBeat-1:0] wt_line_valid;
  logic wt_set, wt_by_column, tile_loaded, tile_used, loader_stall;
  logic [BeatIdxW-1:0] wt_beat;
  beat_t wt_data;

  npu_gemm_loader #(
    .ArrayDim(ArrayDim)
  ) u_loader (
    .clk_i,
    .rst_ni,
    .cmd_valid_i    (stage_valid[Loader]),
    .cmd_ready_o    (stage_ready[Loader]),
    .cmd_i          (stage_cmd[Loader]),
    .stream_valid_i,
    .stream_data_i,
    .stream_ready_o,
    .stream_last_o,
    .rd_req_o       (rd_req_o[1:2]),
    .rd_ready_i     (rd_ready_i[1:2]),
    .rd_rsp_i       (rd_rsp_i[1:2]),
    .param_valid_o  (param_in_valid),
    .param_ready_i  (param_in_ready),
    .param_o        (param_in),
    .wt_line_valid_o(wt_line_valid),
    .wt_set_o       (wt_set),
    .wt_by_column_o (wt_by_column),
    .wt_beat_o      (wt_beat),
    .wt_data_o      (wt_data),
    .tile_loaded_o  (tile_loaded),
    .tile_used_i    (tile_used),
    .stall_o        (loader_stall)
  );

  npu_fifo #(
    .DataT(beat_t),
    .Depth(8)
  ) u_params (
    .clk_i,
    .rst_ni,
    .valid_i(param_in_valid),
    .ready_o(param_in_ready),
    .data_i (param_in),
    .valid_o(param_valid),
    .ready_i(param_ready),
    .data_o (param),
    .count_o()
  );

  // ---------------------------------------------------------------------------------------------
  // Activations, array, accumulators
  // ---------------------------------------------------------------------------------------------
  typedef struct packed {
    logic            bank;
    logic [RowW-1:0] index;
    logic            first;
    logic            last;
  } tag_t;

  logic row_valid, row_set, bank_free;
  logic signed [8:0] row_act[ArrayDim];
  tag_t row_tag;
  tag_t tag_q[ArrayDim-1];
  logic [ArrayDim-2:0] tag_valid_q;

  npu_gemm_feeder #(
    .ArrayDim(ArrayDim),
    .AccRows (AccRows)
  ) u_feeder (
    .clk_i,
    .rst_ni,
    .cmd_valid_i  (stage_valid[Feeder]),
    .cmd_ready_o  (stage_ready[Feeder]),
    .cmd_i        (stage_cmd[Feeder]),
    .rd_req_o     (rd_req_o[0]),
    .rd_ready_i   (rd_ready_i[0]),
    .rd_rsp_i     (rd_rsp_i[0]),
    .tile_loaded_i(tile_loaded),
    .tile_used_o  (tile_used),
    .bank_free_i  (bank_free),
    .row_valid_o  (row_valid),
    .row_set_o    (row_set),
    .row_act_o    (row_act),
    .row_bank_o   (row_tag.bank),
    .row_index_o  (row_tag.index),
    .row_first_o  (row_tag.first),
    .row_last_o   (row_tag.last),
    .macs_o
  );

  logic signed [31:0] psum[ArrayDim];

  npu_systolic_array #(
    .ArrayDim(ArrayDim)
  ) u_array (
    .clk_i,
    .rst_ni,
    .act_valid_i    (row_valid),
    .act_set_i      (row_set),
    .act_i          (row_act),
    .psum_o         (psum),
    .wt_line_valid_i(wt_line_valid),
    .wt_set_i       (wt_set),
    .wt_by_column_i (wt_by_column),
    .wt_beat_i      (wt_beat),
    .wt_data_i      (wt_data)
  );

  // Where the sums of a row go travels beside the array, one cycle ahead of them.
  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) begin
      tag_valid_q <= '0;
      for (int unsigned s = 0; s < ArrayDim - 1; s++) tag_q[s] <= '0;
    end else begin
      tag_valid_q <= {tag_valid_q[ArrayDim-3:0], row_valid};
      if (row_valid) tag_q[0] <= row_tag;
      for (int unsigned s = 1; s < ArrayDim - 1; s++) if (tag_valid_q[s-1]) tag_q[s] <= tag_q[s-1];
    end
  end

  logic final_row, drain_valid, drain_ready, drain_bank, sums_valid, sums_ready;
  logic [RowW-1:0] drain_row;
  logic signed [31:0] drain_sum[ArrayDim];
  sums_t sums;

  npu_accumulator #(
    .ArrayDim(ArrayDim),
    .Rows    (AccRows)
  ) u_accumulator (
    .clk_i,
    .rst_ni,
    .next_valid_i (tag_valid_q[ArrayDim-2]),
    .next_bank_i  (tag_q[ArrayDim-2].bank),
    .next_row_i   (tag_q[ArrayDim-2].index),
    .next_first_i (tag_q[ArrayDim-2].first),
    .next_last_i  (tag_q[ArrayDim-2].last),
    .psum_i       (psum),
    .final_row_o  (final_row),
    .drain_valid_i(drain_valid),
    .drain_ready_o(drain_ready),
    .drain_bank_i (drain_bank),
    .drain_row_i  (drain_row),
    .drain_sum_o  (drain_sum)
  );

  npu_gemm_drain #(
    .ArrayDim(ArrayDim),
    .AccRows (AccRows)
  ) u_drain (
    .clk_i,
    .rst_ni,
    .cmd_valid_i  (stage_valid[Drain]),
    .cmd_ready_o  (stage_ready[Drain]),
    .cmd_i        (stage_cmd[Drain]),
    .final_row_i  (final_row),
    .drain_valid_o(drain_valid),
    .drain_ready_i(drain_ready),
    .drain_bank_o (drain_bank),
    .drain_row_o  (drain_row),
    .drain_sum_i  (drain_sum),
    .bank_free_o  (bank_free),
    .sums_valid_o (sums_valid),
    .sums_ready_i (sums_ready),
    .sums_o       (sums)
  );

  // ---------------------------------------------------------------------------------------------
  // Post-processing
  // ---------------------------------------------------------------------------------------------
  logic word_valid, word_ready, pipe_busy, table_write, post_valid, post_ready, out_valid, out_ready;
  word_t word;
  logic [1:0] table_beat;
  row_ctrl_t post_ctrl, out_ctrl;
  sums_t post_high, post_low, out;
  word_t [ArrayDim/2-1:0] post_d;
  logic [ArrayDim-1:0][31:0] post_bias;
  logic [ArrayDim-1:0][15:0] post_mult;
  logic [ArrayDim-1:0][5:0] post_shift;

  npu_gemm_operand_d #(
    .ArrayDim(ArrayDim)
  ) u_operand_d (
    .clk_i,
    .rst_ni,
    .cmd_valid_i (stage_valid[OperandD]),
    .cmd_ready_o (stage_ready[OperandD]),
    .cmd_i       (stage_cmd[OperandD]),
    .word_valid_o(word_valid),
    .word_ready_i(word_ready),
    .word_o      (word),
    .rd_req_o    (rd_req_o[3]),
    .rd_ready_i  (rd_ready_i[3]),
    .rd_rsp_i    (rd_rsp_i[3])
  );

  npu_gemm_collect #(
    .ArrayDim(ArrayDim)
  ) u_collect (
    .clk_i,
    .rst_ni,
    .cmd_valid_i  (stage_valid[Collect]),
    .cmd_ready_o  (stage_ready[Collect]),
    .cmd_i        (stage_cmd[Collect]),
    .param_valid_i(param_valid),
    .param_ready_o(param_ready),
    .param_i      (param),
    .sums_valid_i (sums_valid),
    .sums_ready_o (sums_ready),
    .sums_i       (sums),
    .word_valid_i (word_valid),
    .word_ready_o (word_ready),
    .word_i       (word),
    .pipe_busy_i  (pipe_busy),
    .table_write_o(table_write),
    .table_beat_o (table_beat),
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
    .ArrayDim(ArrayDim)
  ) u_post (
    .clk_i,
    .rst_ni,
    .table_write_i(table_write),
    .table_beat_i (table_beat),
    .table_data_i (param),
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

  npu_gemm_writer #(
    .ArrayDim(ArrayDim)
  ) u_writer (
    .clk_i,
    .rst_ni,
    .row_valid_i(out_valid),
    .row_ready_o(out_ready),
    .row_ctrl_i (out_ctrl),
    .row_i      (out),
    .wr_req_o,
    .wr_ready_i,
    .done_o
  );

  // Busy without a row entering the array, because weights are late or a write is refused
  assign stall_o = busy_o && ((loader_stall && !row_valid) || (wr_req_o.valid && !wr_ready_i));

endmodule
