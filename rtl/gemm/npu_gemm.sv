// SPDX-License-Identifier: Apache-2.0
//
// GEMM engine: C = post(A * B). Its stages (loader of weights, feeder of activations, drain of
// sums, reader of the second operand, post-processing) each walk through the tiles of an
// instruction at their own pace and may be in different instructions; pulses between them say when
// a tile's weights are in place, when they are no longer needed, and when an accumulator bank is
// free.

module npu_gemm
  import npu_pkg::*;
  import npu_sram_pkg::*;
  import npu_operation_pkg::*;
#(
  parameter int unsigned ArrayDim = 16,  // rows and columns of the systolic array: 4, 8, 16 or 32
  // Rows of an accumulator bank, a power of two of at least 4
  parameter int unsigned AccRows  = 128
) (
  input logic clk_i,  // clock
  input logic rst_ni, // reset, active low

  input  logic            op_valid_i,  // an operation; stays until ready, data stable
  output logic            op_ready_o,  // taken, up to four are inside; depends on no input
  input  gemm_operation_t op_i,        // the operation, with op_valid_i
  output engine_status_t  status_o,    // done: the last row of the oldest one is written or dropped

  input  logic  stream_valid_i,  // a line of the share; stays until ready, data stable
  input  line_t stream_data_i,   // the next line, first byte lowest; with stream_valid_i
  output logic  stream_ready_o,  // taken; a level, independent of stream_valid_i
  output logic  stream_last_o,   // with stream_ready_o: this line is the share's last

  // SRAM reads: 0 operand A, 1 and 2 operand B, 3 second operand
  output sram_rd_req_t rd_req_o  [4],  // each stays, address stable, until its rd_ready_i
  input  logic         rd_ready_i[4],  // granted; may depend on rd_req_o
  input  sram_rd_rsp_t rd_rsp_i  [4],  // words, port by port in the order asked for; never refused
  output sram_wr_req_t wr_req_o,       // stays until ready, all stable
  input  logic         wr_ready_i,     // taken; may depend on wr_req_o.valid

  // Running argmax over the outputs of instructions that ask for it
  output argmax_t argmax_o,       // counts an operation from the cycle after its done on
  input  logic    argmax_clear_i, // pulse; not while a row of an argmax operation is written

  output logic [11:0] macs_o  // multiplications on valid lanes in this cycle, for the counters
);

  localparam int unsigned Edge = tile_edge(ArrayDim);
  localparam int unsigned StripsPerLine = LineBytes / Edge;
  localparam int unsigned LineIdxW = $clog2(Edge / StripsPerLine);

  if (!(ArrayDim inside {4, 8, 16, 32})) begin : gen_bad_dim
    $fatal(1, "npu_gemm: ArrayDim = %0d, must be 4, 8, 16 or 32", ArrayDim);
  end
  if ((AccRows & (AccRows - 1)) != 0 || AccRows < 4) begin : gen_bad_rows
    $fatal(1, "npu_gemm: AccRows = %0d, must be a power of two of at least 4", AccRows);
  end

  // ---------------------------------------------------------------------------------------------
  // Operations
  // ---------------------------------------------------------------------------------------------
  localparam int unsigned Loader = 0;
  localparam int unsigned Feeder = 1;
  localparam int unsigned Drain = 2;
  localparam int unsigned OperandD = 3;
  localparam int unsigned Collect = 4;

  logic            stage_valid[5];
  logic            stage_ready[5];
  gemm_operation_t stage_op   [5];
  logic queue_ready, accept, done;
  logic [2:0] in_flight_q;

  npu_multicast_fifo #(
    .DataT     (gemm_operation_t),
    .Depth     (4),
    .NumReaders(5)
  ) u_commands (
    .clk_i,
    .rst_ni,
    .valid_i(op_valid_i && !in_flight_q[2]),
    .ready_o(queue_ready),
    .data_i (op_i),
    .valid_o(stage_valid),
    .ready_i(stage_ready),
    .data_o (stage_op)
  );

  // Instructions inside
  assign op_ready_o = queue_ready && !in_flight_q[2];
  assign accept     = op_valid_i && op_ready_o;

  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) in_flight_q <= '0;
    else in_flight_q <= in_flight_q + 3'(accept) - 3'(done);
  end

  // ---------------------------------------------------------------------------------------------
  // Weights
  // ---------------------------------------------------------------------------------------------
  logic param_in_valid, param_in_ready, param_valid, param_ready;
  line_t param_in, param;
  logic [StripsPerLine-1:0] wt_strip_valid;
  logic wt_set, wt_by_column, tile_loaded, tile_used;
  logic [LineIdxW-1:0] wt_line;
  line_t wt_data;

  npu_gemm_loader #(
    .Edge(Edge)
  ) u_loader (
    .clk_i,
    .rst_ni,
    .op_valid_i      (stage_valid[Loader]),
    .op_ready_o      (stage_ready[Loader]),
    .op_i            (stage_op[Loader]),
    .stream_valid_i,
    .stream_data_i,
    .stream_ready_o,
    .stream_last_o,
    .rd_req_o        (rd_req_o[1:2]),
    .rd_ready_i      (rd_ready_i[1:2]),
    .rd_rsp_i        (rd_rsp_i[1:2]),
    .param_valid_o   (param_in_valid),
    .param_ready_i   (param_in_ready),
    .param_o         (param_in),
    .wt_strip_valid_o(wt_strip_valid),
    .wt_set_o        (wt_set),
    .wt_by_column_o  (wt_by_column),
    .wt_line_o       (wt_line),
    .wt_data_o       (wt_data),
    .tile_loaded_o   (tile_loaded),
    .tile_used_i     (tile_used)
  );

  npu_fifo #(
    .DataT(line_t),
    .Depth(8)
  ) u_params (
    .clk_i,
    .rst_ni,
    .valid_i(param_in_valid),
    .ready_o(param_in_ready),
    .data_i (param_in),
    .valid_o(param_valid),
    .ready_i(param_ready),
    .data_o (param)
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
    .feed_valid_i    (stage_valid[Feeder]),
    .feed_ready_o    (stage_ready[Feeder]),
    .feed_op_i       (stage_op[Feeder]),
    .drain_valid_i   (stage_valid[Drain]),
    .drain_ready_o   (stage_ready[Drain]),
    .drain_op_i      (stage_op[Drain]),
    .rd_req_o        (rd_req_o[0]),
    .rd_ready_i      (rd_ready_i[0]),
    .rd_rsp_i        (rd_rsp_i[0]),
    .wt_strip_valid_i(wt_strip_valid),
    .wt_set_i        (wt_set),
    .wt_by_column_i  (wt_by_column),
    .wt_line_i       (wt_line),
    .wt_data_i       (wt_data),
    .tile_loaded_i   (tile_loaded),
    .tile_used_o     (tile_used),
    .sums_valid_o    (sums_valid),
    .sums_ready_i    (sums_ready),
    .sums_o          (sums),
    .row_valid_o     (row_valid),
    .macs_o
  );

  npu_gemm_result #(
    .Edge(Edge)
  ) u_result (
    .clk_i,
    .rst_ni,
    .operand_valid_i(stage_valid[OperandD]),
    .operand_ready_o(stage_ready[OperandD]),
    .operand_op_i   (stage_op[OperandD]),
    .collect_valid_i(stage_valid[Collect]),
    .collect_ready_o(stage_ready[Collect]),
    .collect_op_i   (stage_op[Collect]),
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
    .done_o         (done)
  );

  // A write is refused, or no row enters the array while a read is refused or the stream is late
  logic starved;
  always_comb begin
    starved = stream_ready_o && !stream_valid_i;
    for (int unsigned p = 0; p < 4; p++) starved |= rd_req_o[p].valid && !rd_ready_i[p];
    status_o = '{
        done: done,
        busy: in_flight_q != '0,
        stall: in_flight_q != '0 && ((starved && !row_valid) || (wr_req_o.valid && !wr_ready_i))
    };
  end

endmodule
