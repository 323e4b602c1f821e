// SPDX-License-Identifier: Apache-2.0
//
// Bench of the GEMM engine alone. A token of ARGMAX goes to memory at once.

module unit_gemm;
  import npu_pkg::*;
  import npu_sram_pkg::*;
  import npu_operation_pkg::*;
  import npu_isa_pkg::*;

  logic clk, rst_n, start, ended;
  unit_pkg::world_t   world;
  unit_pkg::program_t program_start;

  unit_control u_control (
    .clk_o    (clk),
    .rst_no   (rst_n),
    .world_o  (world),
    .program_o(program_start),
    .start_o  (start),
    .end_i    (ended)
  );

  logic [NumEngines-1:0] op_valid;
  logic op_ready;
  engine_status_t status;
  gemm_operation_t op;
  logic line_valid, line_ready, line_last;
  line_t line;
  argmax_t argmax;
  store_operation_t store;
  logic argmax_clear, stored;

  unit_program u_program (
    .clk_i         (clk),
    .rst_ni        (rst_n),
    .world_i       (world),
    .program_i     (program_start),
    .start_i       (start),
    .end_o         (ended),
    .op_valid_o    (op_valid),
    .op_ready_i    ((NumEngines'(op_ready) << EngGemm) | (NumEngines'(1) << EngSt)),
    .load_op_o     (),
    .store_op_o    (store),
    .gemm_op_o     (op),
    .smx_op_o      (),
    .nrm_op_o      (),
    .vec_op_o      (),
    .done_i        ((NumEngines'(status.done) << EngGemm) | (NumEngines'(stored) << EngSt)),
    .argmax_i      (argmax),
    .argmax_clear_o(argmax_clear),
    .line_valid_o  (line_valid),
    .line_data_o   (line),
    .line_ready_i  (line_ready),
    .line_last_i   (line_last)
  );

  sram_rd_req_t rd_req[4];
  sram_rd_rsp_t rd_rsp[4];
  sram_wr_req_t wr_req[1];
  logic rd_ready[4], wr_ready[1];

  unit_sram_model #(
    .NumRd(4)
  ) u_sram (
    .clk_i     (clk),
    .rst_ni    (rst_n),
    .world_i   (world),
    .rd_req_i  (rd_req),
    .rd_ready_o(rd_ready),
    .rd_rsp_o  (rd_rsp),
    .wr_req_i  (wr_req),
    .wr_ready_o(wr_ready)
  );

  npu_gemm u_gemm (
    .clk_i         (clk),
    .rst_ni        (rst_n),
    .op_valid_i    (op_valid[EngGemm]),
    .op_ready_o    (op_ready),
    .op_i          (op),
    .status_o      (status),
    .rd_req_o      (rd_req),
    .rd_ready_i    (rd_ready),
    .rd_rsp_i      (rd_rsp),
    .wr_req_o      (wr_req[0]),
    .wr_ready_i    (wr_ready[0]),
    .stream_valid_i(line_valid),
    .stream_data_i (line),
    .stream_ready_o(line_ready),
    .stream_last_o (line_last),
    .argmax_o      (argmax),
    .argmax_clear_i(argmax_clear),
    .macs_o        ()
  );

  always @(posedge clk) begin
    stored <= rst_n && op_valid[EngSt];
    if (rst_n && op_valid[EngSt]) begin
      tb_pkg::tb_memory_hold({store.mem[31:4], 4'b0}, {4{store.token}}, 16'hf << store.mem[3:0]);
      tb_pkg::tb_memory_commit(1);
    end
  end

endmodule
