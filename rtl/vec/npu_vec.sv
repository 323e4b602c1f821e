// SPDX-License-Identifier: Apache-2.0
//
// VEC engine: element-wise operations on int8 and int16 matrices in SRAM, and the 256-entry look-up
// table that serves GELU. A walker issues words (two operands alternate on the one read port), the
// lanes compute, the writer stores. One instruction at a time.

module npu_vec #(
  parameter int unsigned ArrayDim = 16,  // rows and columns of the array: 4, 8, 16 or 32
  localparam int unsigned Lanes = (ArrayDim < 16) ? 8 : 16  // elements of int8 in a step
) (
  input logic clk_i,  // clock
  input logic rst_ni, // reset, active low

  input logic op_valid_i,  // an operation; stays until ready, data stable
  // One at a time: none inside, or the last one is done; independent of op_valid_i
  output logic op_ready_o,
  input npu_operation_pkg::vec_operation_t op_i,  // the operation, with op_valid_i

  // Done: all its words are in SRAM; stall: read, write or share waits
  output npu_pkg::engine_status_t status_o,

  output npu_sram_pkg::sram_rd_req_t rd_req_o,   // stays, address stable, until rd_rsp_i.ready
  input  npu_sram_pkg::sram_rd_rsp_t rd_rsp_i,   // ready may depend on the request; words in order
  output npu_sram_pkg::sram_wr_req_t wr_req_o,   // stays until ready, all stable
  input  logic                       wr_ready_i, // taken; may depend on wr_req_o.valid

  input  npu_stream_pkg::share_line_t share_i,  // lines of the share
  // Ready: from registers, at most in every fourth cycle
  output npu_stream_pkg::share_take_t share_o
);

  import npu_pkg::*;
  import npu_operation_pkg::*;
  import npu_vec_pkg::*;

  // Instruction
  logic busy_q, start, finished, start_table;
  vec_operation_t op_q;

  // Steps
  logic walk_active, step_ready;
  row_step_t step;
  vec_tag_t  step_tag;
  logic fetch_valid, fetch_ready, fetch_empty, data_ok;
  vec_tag_t fetch_tag;
  word_t fetch_word;

  // Table and lanes
  logic table_ready, table_streaming, table_read;
  logic [Lanes-1:0][3:0] table_row, table_byte;
  logic [Lanes-1:0][7:0] table_value;
  logic lanes_ready, lanes_empty, write_ready, write_empty;
  row_word_t word;

  assign finished = busy_q && !walk_active && fetch_empty && lanes_empty && write_empty;
  assign op_ready_o = !busy_q || finished;
  assign start = op_valid_i && op_ready_o;
  assign status_o.done = finished;
  assign status_o.busy = busy_q;
  // A write is refused, or no word is read while a read is refused or the stream is late.
  assign status_o.stall = (wr_req_o.valid && !wr_ready_i) ||
                   (rd_req_o.valid ? !rd_rsp_i.ready : table_streaming && !share_i.valid);

  // Data waits for the table.
  assign data_ok = !npu_isa_pkg::vec_table(op_q.op) || table_ready;
  assign fetch_ready = fetch_tag.param || (lanes_ready && data_ok);
  assign start_table = start && npu_isa_pkg::vec_table(op_i.op);

  always_ff @(posedge clk_i) begin
    if (!rst_ni) begin
      busy_q <= 1'b0;
      op_q   <= '0;
    end else if (start) begin
      busy_q <= 1'b1;
      op_q   <= op_i;
    end else if (finished) begin
      busy_q <= 1'b0;
    end
  end

  npu_vec_walk #(
    .Lanes(Lanes)
  ) u_walk (
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
    .TagT(vec_tag_t)
  ) u_fetch (
    .clk_i,
    .rst_ni,
    .step_i      (step),
    .step_ready_o(step_ready),
    .step_tag_i  (step_tag),
    .valid_o     (fetch_valid),
    .ready_i     (fetch_ready),
    .tag_o       (fetch_tag),
    .word_o      (fetch_word),
    .empty_o     (fetch_empty),
    .rd_req_o,
    .rd_rsp_i
  );

  npu_vec_table #(
    .Lanes(Lanes)
  ) u_table (
    .clk_i,
    .rst_ni,
    .start_i      (start_table),
    .from_stream_i(op_i.stream),
    .word_valid_i (fetch_valid && fetch_tag.param),
    .word_i       (fetch_word),
    .share_i,
    .share_o,
    .streaming_o  (table_streaming),
    .ready_o      (table_ready),
    .read_i       (table_read),
    .row_i        (table_row),
    .byte_i       (table_byte),
    .value_o      (table_value)
  );

  npu_vec_lanes #(
    .Lanes(Lanes)
  ) u_lanes (
    .clk_i,
    .rst_ni,
    .op_i        (op_q),
    .read_o      (table_read),
    .row_o       (table_row),
    .byte_o      (table_byte),
    .value_i     (table_value),
    .start_i     (start),
    .valid_i     (fetch_valid && !fetch_tag.param && data_ok),
    .ready_o     (lanes_ready),
    .tag_i       (fetch_tag),
    .word_i      (fetch_word),
    .word_o      (word),
    .word_ready_i(write_ready),
    .empty_o     (lanes_empty)
  );

  npu_row_writer #(
    .Side(1'b0)
  ) u_writer (
    .clk_i,
    .rst_ni,
    .start_i(start),
    .dst_i  (op_i.dst),
    .pitch_i(op_i.dst_pitch),
    .ready_o(write_ready),
    .word_i (word),
    .side_i ('0),
    .empty_o(write_empty),
    .wr_req_o,
    .wr_ready_i
  );

`ifndef SYNTHESIS
  OperationKept_A :
  assert property (@(posedge clk_i) disable iff (!rst_ni) op_valid_i && !op_ready_o |=> op_valid_i)
  else $error("npu_vec: an operation is withdrawn before it is taken");
  ReadKept_A :
  assert property (@(posedge clk_i) disable iff (!rst_ni)
                   rd_req_o.valid && !rd_rsp_i.ready |=> rd_req_o.valid && $stable(
      rd_req_o.addr
  ))
  else $error("npu_vec: a read is withdrawn or changed before it is granted");
  DoneWithShare_A :
  assert property (@(posedge clk_i) disable iff (!rst_ni) finished |-> !table_streaming)
  else $error("npu_vec: done before the share is taken");
`endif

endmodule
