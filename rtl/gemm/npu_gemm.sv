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
  import npu_stream_pkg::*;
  import npu_gemm_pkg::*;
#(
  parameter int unsigned ArrayDim = 16,  // rows and columns of the systolic array: 4, 8, 16 or 32
  // Rows of an accumulator bank, a power of two of at least 4
  parameter int unsigned AccRows = 128,
  parameter bit NarrowFormats = 1'b1,  // with formats of the stream other than int8
  // Weights in such formats that are expanded in a cycle, a power of two from a tile's edge to 64. An
  // array takes no more of them where M is 1.
  parameter int unsigned ExpandLanes = (ArrayDim < 8) ? ArrayDim * ArrayDim : LineBytes,
  // Columns that post-processing takes in a cycle, a power of two up to a tile's edge. An array
  // finishes no more of them where K is 16 or longer; more than a word of int8 wait for the writer.
  parameter int unsigned PostLanes = (ArrayDim < 16) ? ArrayDim * ArrayDim / 16 : 16
) (
  input logic clk_i,  // clock
  input logic rst_ni, // reset, active low

  input  logic            op_valid_i,  // an operation; stays until ready, data stable
  output logic            op_ready_o,  // taken, up to four are inside; depends on no input
  input  gemm_operation_t op_i,        // the operation, with op_valid_i
  output engine_status_t  status_o,    // done: the last row of the oldest one is written or dropped

  input  share_line_t share_i,  // lines of the share
  output share_take_t share_o,  // which of them it takes

  // SRAM reads: 0 operand A, 1 and 2 operand B, 3 second operand
  output sram_rd_req_t rd_req_o  [4],  // each stays, address stable, until its rd_rsp_i.ready
  input  sram_rd_rsp_t rd_rsp_i  [4],  // ready may depend on the request; words in order
  output sram_wr_req_t wr_req_o,       // stays until ready, all stable
  input  logic         wr_ready_i,     // taken; may depend on wr_req_o.valid

  // Running argmax over the outputs of instructions that ask for it
  output argmax_t argmax_o,       // counts an operation from the cycle after its done on
  input  logic    argmax_clear_i, // pulse; not while a row of an argmax operation is written

  output logic [11:0] macs_o  // multiplications on valid lanes in this cycle, for the counters
);

  localparam int unsigned Edge = tile_edge(ArrayDim);

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

  // Four are inside at most. Places for eight are a memory on every target, for four registers.
  npu_multicast_fifo #(
    .DataT     (gemm_operation_t),
    .Depth     (8),
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

  always_ff @(posedge clk_i) begin
    if (!rst_ni) in_flight_q <= '0;
    else in_flight_q <= in_flight_q + 3'(accept) - 3'(done);
  end

  // ---------------------------------------------------------------------------------------------
  // Weights
  // ---------------------------------------------------------------------------------------------
  logic param_valid, param_ready;
  line_t param;
  weights_t weights;
  logic tile_loaded, tile_used, share_wanted;

  npu_gemm_loader #(
    .Edge         (Edge),
    .NarrowFormats(NarrowFormats),
    .Lanes        (ExpandLanes)
  ) u_loader (
    .clk_i,
    .rst_ni,
    .op_valid_i   (stage_valid[Loader]),
    .op_ready_o   (stage_ready[Loader]),
    .op_i         (stage_op[Loader]),
    .share_i,
    .share_o,
    .wants_o      (share_wanted),
    .rd_req_o     (rd_req_o[1:2]),
    .rd_rsp_i     (rd_rsp_i[1:2]),
    .param_valid_o(param_valid),
    .param_ready_i(param_ready),
    .param_o      (param),
    .weights_o    (weights),
    .tile_loaded_o(tile_loaded),
    .tile_used_i  (tile_used)
  );

  // ---------------------------------------------------------------------------------------------
  // Sums
  // ---------------------------------------------------------------------------------------------
  typedef logic [Edge-1:0][31:0] sums_t;  // a row of int32 sums, one per column of a tile

  logic row_valid, sums_valid, sums_ready;
  sums_t sums;

  npu_gemm_sums #(
    .ArrayDim(ArrayDim),
    .Edge    (Edge),
    .AccRows (AccRows)
  ) u_sums (
    .clk_i,
    .rst_ni,
    .feed_valid_i (stage_valid[Feeder]),
    .feed_ready_o (stage_ready[Feeder]),
    .feed_op_i    (stage_op[Feeder]),
    .drain_valid_i(stage_valid[Drain]),
    .drain_ready_o(stage_ready[Drain]),
    .drain_op_i   (stage_op[Drain]),
    .rd_req_o     (rd_req_o[0]),
    .rd_rsp_i     (rd_rsp_i[0]),
    .weights_i    (weights),
    .tile_loaded_i(tile_loaded),
    .tile_used_o  (tile_used),
    .sums_valid_o (sums_valid),
    .sums_ready_i (sums_ready),
    .sums_o       (sums),
    .row_valid_o  (row_valid),
    .macs_o
  );

  // ---------------------------------------------------------------------------------------------
  // From rows of sums to the result
  // ---------------------------------------------------------------------------------------------
  logic word_valid, word_ready, pipe_busy, table_write, post_product;
  logic post_valid, post_ready, out_valid, out_ready, write_valid, write_ready;
  word_t word;
  logic [3:0] table_word;
  word_t table_data;
  beat_ctrl_t post_ctrl, out_ctrl;
  post_column_t [PostLanes-1:0] post_columns;
  post_second_t [PostLanes-1:0] post_second;
  logic [PostLanes-1:0][31:0] out;

  npu_gemm_operand_d #(
    .Edge(Edge)
  ) u_operand_d (
    .clk_i,
    .rst_ni,
    .op_valid_i  (stage_valid[OperandD]),
    .op_ready_o  (stage_ready[OperandD]),
    .op_i        (stage_op[OperandD]),
    .word_valid_o(word_valid),
    .word_ready_i(word_ready),
    .word_o      (word),
    .rd_req_o    (rd_req_o[3]),
    .rd_rsp_i    (rd_rsp_i[3])
  );

  npu_gemm_collect #(
    .Edge (Edge),
    .Lanes(PostLanes)
  ) u_collect (
    .clk_i,
    .rst_ni,
    .op_valid_i    (stage_valid[Collect]),
    .op_ready_o    (stage_ready[Collect]),
    .op_i          (stage_op[Collect]),
    .param_valid_i (param_valid),
    .param_ready_o (param_ready),
    .param_i       (param),
    .sums_valid_i  (sums_valid),
    .sums_ready_o  (sums_ready),
    .sums_i        (sums),
    .word_valid_i  (word_valid),
    .word_ready_o  (word_ready),
    .word_i        (word),
    .pipe_busy_i   (pipe_busy),
    .table_write_o (table_write),
    .table_word_o  (table_word),
    .table_data_o  (table_data),
    .product_i     (post_product),
    .beat_valid_o  (post_valid),
    .beat_ready_i  (post_ready),
    .beat_ctrl_o   (post_ctrl),
    .beat_columns_o(post_columns),
    .beat_second_o (post_second)
  );

  npu_gemm_post #(
    .Lanes(PostLanes)
  ) u_post (
    .clk_i,
    .rst_ni,
    .table_write_i (table_write),
    .table_word_i  (table_word),
    .table_data_i  (table_data),
    .busy_o        (pipe_busy),
    .product_o     (post_product),
    .beat_valid_i  (post_valid),
    .beat_ready_o  (post_ready),
    .beat_ctrl_i   (post_ctrl),
    .beat_columns_i(post_columns),
    .beat_second_i (post_second),
    .out_valid_o   (out_valid),
    .out_ready_i   (out_ready),
    .out_ctrl_o    (out_ctrl),
    .out_o         (out)
  );

  npu_gemm_argmax #(
    .Lanes(PostLanes)
  ) u_argmax (
    .clk_i,
    .rst_ni,
    .clear_i     (argmax_clear_i),
    .beat_valid_i(out_valid),
    .beat_ready_o(out_ready),
    .beat_ctrl_i (out_ctrl),
    .beat_i      (out),
    .beat_valid_o(write_valid),
    .beat_ready_i(write_ready),
    .argmax_o
  );

  npu_gemm_writer #(
    .Lanes(PostLanes)
  ) u_writer (
    .clk_i,
    .rst_ni,
    .beat_valid_i(write_valid),
    .beat_ready_o(write_ready),
    .beat_ctrl_i (out_ctrl),
    .beat_i      (out),
    .wr_req_o,
    .wr_ready_i,
    .done_o      (done)
  );


  // A write is refused, or no row enters the array while a read is refused or the stream is late
  logic starved;
  always_comb begin
    starved = share_wanted && !share_i.valid;
    for (int unsigned p = 0; p < 4; p++) starved |= rd_req_o[p].valid && !rd_rsp_i[p].ready;
    status_o = '{
        done: done,
        busy: in_flight_q != '0,
        stall: in_flight_q != '0 && ((starved && !row_valid) || (wr_req_o.valid && !wr_ready_i))
    };
  end

endmodule
