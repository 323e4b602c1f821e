// SPDX-License-Identifier: Apache-2.0
//
// Checks the streams of load and store.

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

bind npu_dma_load stream_checker #(
  .DataT(logic [$bits(rd_req_o)-1:0])
) u_check_read (
  .clk_i,
  .rst_ni,
  .valid_i(rd_req_o.valid),
  .ready_i(rd_rsp_i.ready),
  .data_i (rd_req_o)
);

bind npu_dma_store stream_checker #(
  .DataT(logic [$bits(wr_req_o)-1:0])
) u_check_request (
  .clk_i,
  .rst_ni,
  .valid_i(wr_req_o.valid),
  .ready_i(wr_rsp_i.ready),
  .data_i (wr_req_o)
);

bind npu_dma_store stream_checker #(
  .DataT(logic [$bits(w_o)-1:0])
) u_check_word (
  .clk_i,
  .rst_ni,
  .valid_i(w_o.valid),
  .ready_i(wr_rsp_i.word_ready),
  .data_i (w_o)
);

bind npu_dma_bursts stream_checker #(
  .DataT(logic [$bits({req_o, last_o})-1:0])
) u_check (
  .clk_i,
  .rst_ni,
  .valid_i(req_o.valid),
  .ready_i(ready_i),
  .data_i ({req_o, last_o})
);

bind npu_dma_list stream_checker #(
  .DataT(logic [$bits(addr_o)-1:0])
) u_check_addr (
  .clk_i,
  .rst_ni,
  .valid_i(addr_valid_o),
  .ready_i(addr_ready_i),
  .data_i (addr_o)
);

bind npu_dma_list stream_checker #(
  .DataT(logic [$bits({row_last_o, row_o})-1:0])
) u_check_row (
  .clk_i,
  .rst_ni,
  .valid_i(row_valid_o),
  .ready_i(row_ready_i),
  .data_i ({row_last_o, row_o})
);
