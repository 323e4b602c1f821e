// SPDX-License-Identifier: Apache-2.0
//
// Bench of the softmax engine alone.

module unit_softmax;
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
  smx_operation_t op;

  unit_program u_program (
    .clk_i         (clk),
    .rst_ni        (rst_n),
    .world_i       (world),
    .program_i     (program_start),
    .start_i       (start),
    .end_o         (ended),
    .op_valid_o    (op_valid),
    .op_ready_i    (NumEngines'(op_ready) << EngSmx),
    .load_op_o     (),
    .store_op_o    (),
    .gemm_op_o     (),
    .smx_op_o      (op),
    .nrm_op_o      (),
    .vec_op_o      (),
    .done_i        (NumEngines'(status.done) << EngSmx),
    .argmax_i      ('0),
    .argmax_clear_o(),
    .line_valid_o  (),
    .line_data_o   (),
    .line_ready_i  (1'b0),
    .line_last_i   (1'b0)
  );

  sram_rd_req_t rd_req[1];
  sram_rd_rsp_t rd_rsp[1];
  sram_wr_req_t wr_req[1];
  logic rd_ready[1], wr_ready[1];

  unit_sram_model u_sram (
    .clk_i     (clk),
    .rst_ni    (rst_n),
    .world_i   (world),
    .rd_req_i  (rd_req),
    .rd_ready_o(rd_ready),
    .rd_rsp_o  (rd_rsp),
    .wr_req_i  (wr_req),
    .wr_ready_o(wr_ready)
  );

  npu_softmax u_softmax (
    .clk_i     (clk),
    .rst_ni    (rst_n),
    .op_valid_i(op_valid[EngSmx]),
    .op_ready_o(op_ready),
    .op_i      (op),
    .status_o  (status),
    .rd_req_o  (rd_req[0]),
    .rd_ready_i(rd_ready[0]),
    .rd_rsp_i  (rd_rsp[0]),
    .wr_req_o  (wr_req[0]),
    .wr_ready_i(wr_ready[0])
  );

endmodule
