// SPDX-License-Identifier: Apache-2.0
//
// Bench of the load and store engines, without the memory port.

module unit_dma
  import npu_pkg::*;
  import npu_mem_pkg::*;
  import npu_isa_pkg::*;
#(
  parameter int unsigned ArrayDim = 16  // rows and columns of the systolic array: 4, 8, 16 or 32
);

  localparam int unsigned NumPorts = 2;

  unit_engine_if #(
    .NumRd(NumPorts),
    .NumWr(NumPorts)
  ) bench ();

  unit_engine #(
    .ArrayDim(ArrayDim),
    .NumRd(NumPorts),
    .NumWr(NumPorts)
  ) u_engine (
    .bench
  );

  logic load_ready, store_ready;
  engine_status_t load_status, store_status;

  assign bench.op_ready = (NumEngines'(load_ready) << EngLd) | (NumEngines'(store_ready) << EngSt);
  assign bench.done = (NumEngines'(load_status.done) << EngLd) |
                      (NumEngines'(store_status.done) << EngSt);
  assign bench.argmax = '0;
  assign bench.take = '0;

  mem_req_t load_req, store_req;
  mem_wdata_t  w;
  mem_rd_rsp_t load_rsp;
  mem_wr_rsp_t store_rsp;

  unit_memory_read #(
    .Salt(32'hA5A5_F0F0)
  ) u_read_memory (
    .clk_i  (bench.clk),
    .rst_ni (bench.rst_n),
    .world_i(bench.world),
    .req_i  (load_req),
    .rsp_o  (load_rsp)
  );

  unit_memory_write u_write_memory (
    .clk_i  (bench.clk),
    .rst_ni (bench.rst_n),
    .world_i(bench.world),
    .req_i  (store_req),
    .w_i    (w),
    .rsp_o  (store_rsp)
  );

  npu_dma_load #(
    .ArrayDim(ArrayDim)
  ) u_load (
    .clk_i        (bench.clk),
    .rst_ni       (bench.rst_n),
    .op_valid_i   (bench.op_valid[EngLd]),
    .op_ready_o   (load_ready),
    .op_i         (bench.operations.load),
    .status_o     (load_status),
    .error_o      (),
    .rd_req_o     (load_req),
    .rd_rsp_i     (load_rsp),
    .sram_rd_req_o(bench.rd_req[0]),
    .sram_rd_rsp_i(bench.rd_rsp[0]),
    .wr_req_o     (bench.wr_req[0]),
    .wr_ready_i   (bench.wr_ready[0])
  );

  npu_dma_store #(
    .ArrayDim(ArrayDim)
  ) u_store (
    .clk_i          (bench.clk),
    .rst_ni         (bench.rst_n),
    .op_valid_i     (bench.op_valid[EngSt]),
    .op_ready_o     (store_ready),
    .op_i           (bench.operations.store),
    .status_o       (store_status),
    .token_done_o   (),
    .rd_req_o       (bench.rd_req[1]),
    .rd_rsp_i       (bench.rd_rsp[1]),
    .wr_req_o       (store_req),
    .w_o            (w),
    .wr_rsp_i       (store_rsp),
    .sram_wr_req_o  (bench.wr_req[1]),
    .sram_wr_ready_i(bench.wr_ready[1])
  );

endmodule
