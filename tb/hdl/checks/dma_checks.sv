// SPDX-License-Identifier: Apache-2.0
//
// Checks the streams of load and store.

`STREAM(npu_dma_load, u_check_operation, op_valid_i, op_ready_o, op_i)
`STREAM(npu_dma_load, u_check_write, wr_req_o.valid, wr_ready_i, wr_req_o)
`STREAM(npu_dma_store, u_check_operation, op_valid_i, op_ready_o, op_i)
`STREAM(npu_dma_store, u_check_write, sram_wr_req_o.valid, sram_wr_ready_i, sram_wr_req_o)
`STREAM(npu_dma_load, u_check_read, rd_req_o.valid, rd_rsp_i.ready, rd_req_o)
`STREAM(npu_dma_store, u_check_request, wr_req_o.valid, wr_rsp_i.ready, wr_req_o)
`STREAM(npu_dma_store, u_check_word, w_o.valid, wr_rsp_i.word_ready, w_o)
`STREAM(npu_dma_bursts, u_check, req_o.valid, ready_i, {req_o, last_o})
`STREAM(npu_dma_list, u_check_addr, addr_valid_o, addr_ready_i, addr_o)
`STREAM(npu_dma_list, u_check_row, row_valid_o, row_ready_i, {row_last_o, row_o})
