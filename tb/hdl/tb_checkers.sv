// SPDX-License-Identifier: Apache-2.0
//
// Where the rules of valid/ready streams are checked in every simulation: behind every FIFO, at the
// operations that engines take, and at the SRAM writes that they ask for.

// A FIFO shows what it stores: that valid stays is what can go wrong.
bind npu_flush_fifo stream_checker u_check (
  .clk_i,
  .rst_ni,
  .withdraw_i(flush_i),
  .valid_i(valid_o),
  .ready_i(ready_i),
  .data_i(1'b0)
);
bind npu_stream_fifo stream_checker u_check (
  .clk_i,
  .rst_ni,
  .withdraw_i(flush_i),
  .valid_i(rd_valid_o),
  .ready_i(rd_ready_i),
  .data_i(1'b0)
);

// Engines
bind npu_dma_load engine_checker #(
  .OperationT(npu_operation_pkg::load_operation_t)
) u_check (
  .clk_i,
  .rst_ni,
  .valid_i(op_valid_i),
  .ready_i(op_ready_o),
  .operation_i(op_i),
  .write_i(wr_req_o),
  .write_ready_i(wr_ready_i)
);
bind npu_dma_store engine_checker #(
  .OperationT(npu_operation_pkg::store_operation_t)
) u_check (
  .clk_i,
  .rst_ni,
  .valid_i(op_valid_i),
  .ready_i(op_ready_o),
  .operation_i(op_i),
  .write_i(sram_wr_req_o),
  .write_ready_i(sram_wr_ready_i)
);
bind npu_gemm engine_checker #(
  .OperationT(npu_operation_pkg::gemm_operation_t)
) u_check (
  .clk_i,
  .rst_ni,
  .valid_i(op_valid_i),
  .ready_i(op_ready_o),
  .operation_i(op_i),
  .write_i(wr_req_o),
  .write_ready_i(wr_ready_i)
);
bind npu_softmax engine_checker #(
  .OperationT(npu_operation_pkg::smx_operation_t)
) u_check (
  .clk_i,
  .rst_ni,
  .valid_i(op_valid_i),
  .ready_i(op_ready_o),
  .operation_i(op_i),
  .write_i(wr_req_o),
  .write_ready_i(wr_ready_i)
);
bind npu_nrm engine_checker #(
  .OperationT(npu_operation_pkg::nrm_operation_t)
) u_check (
  .clk_i,
  .rst_ni,
  .valid_i(op_valid_i),
  .ready_i(op_ready_o),
  .operation_i(op_i),
  .write_i(wr_req_o),
  .write_ready_i(wr_ready_i)
);
bind npu_vec engine_checker #(
  .OperationT(npu_operation_pkg::vec_operation_t)
) u_check (
  .clk_i,
  .rst_ni,
  .valid_i(op_valid_i),
  .ready_i(op_ready_o),
  .operation_i(op_i),
  .write_i(wr_req_o),
  .write_ready_i(wr_ready_i)
);
