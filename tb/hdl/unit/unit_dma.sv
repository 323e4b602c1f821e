// SPDX-License-Identifier: Apache-2.0
//
// Bench of the load and store engines, without the memory port.

module unit_dma;
  import npu_pkg::*;
  import npu_sram_pkg::*;
  import npu_mem_pkg::*;
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
  logic load_op_ready, store_op_ready;
  engine_status_t load_status, store_status;
  load_operation_t  load_op;
  store_operation_t store_op;

  unit_program u_program (
    .clk_i(clk),
    .rst_ni(rst_n),
    .world_i(world),
    .program_i(program_start),
    .start_i(start),
    .end_o(ended),
    .op_valid_o(op_valid),
    .op_ready_i((NumEngines'(load_op_ready) << EngLd) | (NumEngines'(store_op_ready) << EngSt)),
    .load_op_o(load_op),
    .store_op_o(store_op),
    .gemm_op_o(),
    .smx_op_o(),
    .nrm_op_o(),
    .vec_op_o(),
    .done_i((NumEngines'(load_status.done) << EngLd) | (NumEngines'(store_status.done) << EngSt)),
    .argmax_i('0),
    .argmax_clear_o(),
    .line_valid_o(),
    .line_data_o(),
    .line_ready_i(1'b0),
    .line_last_i(1'b0)
  );

  sram_rd_req_t rd_req[2];
  sram_rd_rsp_t rd_rsp[2];
  sram_wr_req_t wr_req[2];
  logic rd_ready[2], wr_ready[2];

  unit_sram_model #(
    .NumRd(2),
    .NumWr(2)
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

  mem_req_t load_req, store_req;
  mem_wdata_t  w;
  mem_rd_rsp_t load_rsp;
  mem_wr_rsp_t store_rsp;

  unit_memory_read #(
    .Salt(32'hA5A5_F0F0)
  ) u_read_memory (
    .clk_i  (clk),
    .rst_ni (rst_n),
    .world_i(world),
    .req_i  (load_req),
    .rsp_o  (load_rsp)
  );

  unit_memory_write u_write_memory (
    .clk_i  (clk),
    .rst_ni (rst_n),
    .world_i(world),
    .req_i  (store_req),
    .w_i    (w),
    .rsp_o  (store_rsp)
  );

  npu_dma_load u_load (
    .clk_i          (clk),
    .rst_ni         (rst_n),
    .op_valid_i     (op_valid[EngLd]),
    .op_ready_o     (load_op_ready),
    .op_i           (load_op),
    .status_o       (load_status),
    .error_o        (),
    .rd_req_o       (load_req),
    .rd_rsp_i       (load_rsp),
    .sram_rd_req_o  (rd_req[0]),
    .sram_rd_ready_i(rd_ready[0]),
    .sram_rd_rsp_i  (rd_rsp[0]),
    .wr_req_o       (wr_req[0]),
    .wr_ready_i     (wr_ready[0])
  );

  npu_dma_store u_store (
    .clk_i          (clk),
    .rst_ni         (rst_n),
    .op_valid_i     (op_valid[EngSt]),
    .op_ready_o     (store_op_ready),
    .op_i           (store_op),
    .status_o       (store_status),
    .token_done_o   (),
    .rd_req_o       (rd_req[1]),
    .rd_ready_i     (rd_ready[1]),
    .rd_rsp_i       (rd_rsp[1]),
    .wr_req_o       (store_req),
    .w_o            (w),
    .wr_rsp_i       (store_rsp),
    .sram_wr_req_o  (wr_req[1]),
    .sram_wr_ready_i(wr_ready[1])
  );

endmodule
