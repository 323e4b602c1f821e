// SPDX-License-Identifier: Apache-2.0
//
// LAYERNORM engine: normalises int16 rows in SRAM to int8 or int16 with a gain and a bias per
// column. A walker issues octets of two passes over each row, the summing pass one row ahead;
// parameters come from the stream or from SRAM, once per instruction. One instruction at a time.

module npu_layernorm #(
  // Longest row, a multiple of 16: sizes the parameter buffer
  parameter int unsigned NormMax = 8192
) (
  input logic clk_i,
  input logic rst_ni,

  input  logic              cmd_valid_i,
  output logic              cmd_ready_o,
  input  npu_pkg::nrm_cmd_t cmd_i,

  output logic                done_o,
  output logic                busy_o,
  output logic                stall_o,
  output npu_pkg::instr_idx_t instr_o,

  output npu_pkg::sram_rd_req_t rd_req_o,
  input  logic                  rd_ready_i,
  input  npu_pkg::sram_rd_rsp_t rd_rsp_i,
  output npu_pkg::sram_wr_req_t wr_req_o,
  input  logic                  wr_ready_i,

  input  logic           stream_valid_i,
  input  npu_pkg::beat_t stream_data_i,
  output logic           stream_ready_o,
  output logic           stream_last_o
);

  import npu_pkg::*;
  import npu_rows_pkg::*;

  // Instruction
  logic busy_q, start, finished, out16_q;
  dim_t cols_q;
  instr_idx_t instr_q;

  // Tokens
  logic walk_active, token_valid, token_ready;
  sram_addr_t token_addr;
  nrm_tag_t   token_tag;
  logic fetch_valid, fetch_param, fetch_empty;
  nrm_tag_t fetch_tag;
  word_t fetch_word;

  // Statistics and parameters
  logic stat_valid, stat_first, stat_last, scale_valid, scale_pop, eps_valid, param_read;
  logic signed [18:0] stat_sum;
  logic [RowLanes-1:0][31:0] stat_square;
  nrm_sum_t row_sum;
  nrm_scale_t row_scale;
  logic [63:0] eps;
  logic [10:0] octets;
  logic [9:0] param_octet;
  nrm_record_t [RowLanes-1:0] record;

  // Results
  logic pipe_ready, pipe_wait, pipe_empty, write_ready, write_empty, word_valid, row_last;
  word_t word;

  assign finished = busy_q && !walk_active && fetch_empty && pipe_empty && write_empty;
  assign cmd_ready_o = !busy_q || finished;
  assign start = cmd_valid_i && cmd_ready_o;
  assign done_o = finished;
  assign busy_o = busy_q;
  assign instr_o = instr_q;
  assign stall_o     = (rd_req_o.valid && !rd_ready_i) || (wr_req_o.valid && !wr_ready_i) ||
                       (pipe_wait && stream_ready_o && !stream_valid_i);

  assign fetch_param = fetch_valid && fetch_tag.kind == NrmParam;

  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) begin
      busy_q  <= 1'b0;
      out16_q <= 1'b0;
      cols_q  <= '0;
      instr_q <= '0;
    end else if (start) begin
      busy_q  <= 1'b1;
      out16_q <= cmd_i.out16;
      cols_q  <= cmd_i.cols;
      instr_q <= cmd_i.instr;
    end else if (finished) begin
      busy_q <= 1'b0;
    end
  end

  npu_nrm_walk u_walk (
    .clk_i,
    .rst_ni,
    .start_i      (start),
    .cmd_i,
    .active_o     (walk_active),
    .token_valid_o(token_valid),
    .token_ready_i(token_ready),
    .token_addr_o (token_addr),
    .token_tag_o  (token_tag)
  );

  npu_row_fetch #(
    .TagT(nrm_tag_t)
  ) u_fetch (
    .clk_i,
    .rst_ni,
    .token_valid_i(token_valid),
    .token_ready_o(token_ready),
    .token_read_i (1'b1),
    .token_word_i (1'b1),
    .token_keep_i (1'b0),
    .token_addr_i (token_addr),
    .token_tag_i  (token_tag),
    .valid_o      (fetch_valid),
    .ready_i      (fetch_param || pipe_ready),
    .tag_o        (fetch_tag),
    .word_o       (fetch_word),
    .empty_o      (fetch_empty),
    .rd_req_o,
    .rd_ready_i,
    .rd_rsp_i
  );

  npu_nrm_param #(
    .NormMax(NormMax)
  ) u_param (
    .clk_i,
    .rst_ni,
    .start_i      (start),
    .from_stream_i(cmd_i.stream),
    .cols_i       (cmd_i.cols),
    .word_valid_i (fetch_param),
    .word_i       (fetch_word),
    .stream_valid_i,
    .stream_data_i,
    .stream_ready_o,
    .stream_last_o,
    .eps_valid_o  (eps_valid),
    .eps_o        (eps),
    .octets_o     (octets),
    .read_i       (param_read),
    .octet_i      (param_octet),
    .record_o     (record)
  );

  npu_nrm_stat u_stat (
    .clk_i,
    .rst_ni,
    .cols_i     (cols_q),
    .eps_valid_i(eps_valid),
    .eps_i      (eps),
    .valid_i    (stat_valid),
    .first_i    (stat_first),
    .last_i     (stat_last),
    .sum_i      (stat_sum),
    .square_i   (stat_square),
    .valid_o    (scale_valid),
    .pop_i      (scale_pop),
    .sum_o      (row_sum),
    .scale_o    (row_scale)
  );

  npu_nrm_pipe u_pipe (
    .clk_i,
    .rst_ni,
    .cols_i       (cols_q),
    .out16_i      (out16_q),
    .valid_i      (fetch_valid && !fetch_param),
    .ready_o      (pipe_ready),
    .tag_i        (fetch_tag),
    .word_i       (fetch_word),
    .stat_valid_o (stat_valid),
    .stat_first_o (stat_first),
    .stat_last_o  (stat_last),
    .stat_sum_o   (stat_sum),
    .stat_square_o(stat_square),
    .scale_valid_i(scale_valid),
    .scale_pop_o  (scale_pop),
    .sum_i        (row_sum),
    .scale_i      (row_scale),
    .octets_i     (octets),
    .param_read_o (param_read),
    .param_octet_o(param_octet),
    .record_i     (record),
    .word_valid_o (word_valid),
    .word_ready_i (write_ready),
    .word_o       (word),
    .row_last_o   (row_last),
    .wait_o       (pipe_wait),
    .empty_o      (pipe_empty)
  );

  npu_row_writer u_writer (
    .clk_i,
    .rst_ni,
    .start_i     (start),
    .dst_i       (cmd_i.dst),
    .pitch_i     (cmd_i.dst_pitch),
    .instr_i     (cmd_i.instr),
    .ready_o     (write_ready),
    .word_valid_i(word_valid),
    .word_i      (word),
    .row_last_i  (row_last),
    .side_valid_i(1'b0),
    .side_addr_i ('0),
    .side_word_i ('0),
    .empty_o     (write_empty),
    .wr_req_o,
    .wr_ready_i
  );

`ifndef SYNTHESIS
  assert property (@(posedge clk_i) disable iff (!rst_ni)
                   cmd_valid_i && !cmd_ready_o |=> cmd_valid_i);
  assert property (@(posedge clk_i) disable iff (!rst_ni)
                   rd_req_o.valid && !rd_ready_i |=> rd_req_o.valid && $stable(
      rd_req_o.addr
  ));
  assert property (@(posedge clk_i) disable iff (!rst_ni) finished |-> !stream_ready_o);
`endif

endmodule
