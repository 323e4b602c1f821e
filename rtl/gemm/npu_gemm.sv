// SPDX-License-Identifier: Apache-2.0
//
// GEMM engine: C = post(A * B). Its stages (loader of weights, feeder of activations, drain of
// sums, reader of the second operand, post-processing) each walk through the tiles of an
// instruction at their own pace and may be in different instructions; tokens between them say when
// a tile's weights are in place, when they are no longer needed, and when an accumulator bank is
// free.

module npu_gemm
  import npu_pkg::*;
#(
  parameter int unsigned ArrayDim = 16,
  parameter int unsigned AccRows  = 128
) (
  input logic clk_i,
  input logic rst_ni,

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
  output sram_rd_req_t rd_req_o  [4],
  input  logic         rd_ready_i[4],
  input  sram_rd_rsp_t rd_rsp_i  [4],
  output sram_wr_req_t wr_req_o,
  input  logic         wr_ready_i,

  // Running argmax over the outputs of instructions that ask for it
  output argmax_t argmax_o,
  input  logic    argmax_clear_i,

  output logic [11:0] macs_o
);

  localparam int unsigned Edge = tile_edge(ArrayDim);
  localparam int unsigned LinesPerBeat = BeatBytes / Edge;
  localparam int unsigned BeatIdxW = $clog2(Edge / LinesPerBeat);

  if (!(ArrayDim inside {4, 8, 16, 32})) begin : gen_bad_dim
    $fatal(1, "npu_gemm: ArrayDim = %0d, must be 4, 8, 16 or 32", ArrayDim);
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
  logic queue_ready, accept;
  logic [2:0] in_flight_q;

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
  logic wt_set, wt_by_column, tile_loaded, tile_used;
  logic [BeatIdxW-1:0] wt_beat;
  beat_t wt_data;

  npu_gemm_loader #(
    .Edge(Edge)
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
    .tile_used_i    (tile_used)
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
  // Sums and results
  // ---------------------------------------------------------------------------------------------
  logic row_valid, sums_valid, sums_ready;
  logic [Edge-1:0][31:0] sums;

  npu_gemm_sums #(
    .ArrayDim(ArrayDim),
    .Edge    (Edge),
    .AccRows (AccRows)
  ) u_sums (
    .clk_i,
    .rst_ni,
    .feed_valid_i   (stage_valid[Feeder]),
    .feed_ready_o   (stage_ready[Feeder]),
    .feed_cmd_i     (stage_cmd[Feeder]),
    .drain_valid_i  (stage_valid[Drain]),
    .drain_ready_o  (stage_ready[Drain]),
    .drain_cmd_i    (stage_cmd[Drain]),
    .rd_req_o       (rd_req_o[0]),
    .rd_ready_i     (rd_ready_i[0]),
    .rd_rsp_i       (rd_rsp_i[0]),
    .wt_line_valid_i(wt_line_valid),
    .wt_set_i       (wt_set),
    .wt_by_column_i (wt_by_column),
    .wt_beat_i      (wt_beat),
    .wt_data_i      (wt_data),
    .tile_loaded_i  (tile_loaded),
    .tile_used_o    (tile_used),
    .sums_valid_o   (sums_valid),
    .sums_ready_i   (sums_ready),
    .sums_o         (sums),
    .row_valid_o    (row_valid),
    .macs_o
  );

  npu_gemm_result #(
    .Edge(Edge)
  ) u_result (
    .clk_i,
    .rst_ni,
    .operand_valid_i(stage_valid[OperandD]),
    .operand_ready_o(stage_ready[OperandD]),
    .operand_cmd_i  (stage_cmd[OperandD]),
    .collect_valid_i(stage_valid[Collect]),
    .collect_ready_o(stage_ready[Collect]),
    .collect_cmd_i  (stage_cmd[Collect]),
    .param_valid_i  (param_valid),
    .param_ready_o  (param_ready),
    .param_i        (param),
    .sums_valid_i   (sums_valid),
    .sums_ready_o   (sums_ready),
    .sums_i         (sums),
    .rd_req_o       (rd_req_o[3]),
    .rd_ready_i     (rd_ready_i[3]),
    .rd_rsp_i       (rd_rsp_i[3]),
    .wr_req_o,
    .wr_ready_i,
    .argmax_o,
    .argmax_clear_i,
    .done_o
  );

  // A write is refused, or no row enters the array while a read is refused or the stream is late
  logic starved;
  always_comb begin
    starved = stream_ready_o && !stream_valid_i;
    for (int unsigned p = 0; p < 4; p++) starved |= rd_req_o[p].valid && !rd_ready_i[p];
    stall_o = busy_o && ((starved && !row_valid) || (wr_req_o.valid && !wr_ready_i));
  end

endmodule
