// SPDX-License-Identifier: Apache-2.0
//
// Where the rules of valid/ready are checked inside of the blocks, room by room. `withdraw_i` is what
// the comment of the port names. Not checked, because their valid may go at any time: reads of npu_fetch
// and npu_streamer (a redirect, a seek), requests at the ports of SRAM and memory port (their clients
// are checked), what goes into a FIFO or into the command port's unit. Tickets and operations of
// npu_dispatch are pulses, and what has no ready cannot be withdrawn.

// -------------------------------------------------------------------------------------------------
// Memory port and the command port's way to memory
// -------------------------------------------------------------------------------------------------
bind npu_mem_port axi_checker u_check (
  .clk_i,
  .rst_ni,
  .axi_req_i(axi_req_o),
  .axi_rsp_i(axi_rsp_i)
);
bind npu_cmd_mem axi_checker u_check (
  .clk_i,
  .rst_ni,
  .axi_req_i(axi_req_o),
  .axi_rsp_i(axi_rsp_i)
);
bind npu_axi_mux axi_checker u_check (
  .clk_i,
  .rst_ni,
  .axi_req_i(bus_req_o),
  .axi_rsp_i(bus_rsp_i)
);

// -------------------------------------------------------------------------------------------------
// Host
// -------------------------------------------------------------------------------------------------
bind npu_axil_slave stream_checker #(
  .DataT(logic [$bits(axil_rsp_o.bresp)-1:0])
) u_check_b (
  .clk_i,
  .rst_ni,
  .withdraw_i(1'b0),
  .valid_i(axil_rsp_o.bvalid),
  .ready_i(axil_req_i.bready),
  .data_i(axil_rsp_o.bresp)
);
bind npu_axil_slave stream_checker #(
  .DataT(logic [$bits({axil_rsp_o.rdata, axil_rsp_o.rresp})-1:0])
) u_check_r (
  .clk_i,
  .rst_ni,
  .withdraw_i(1'b0),
  .valid_i(axil_rsp_o.rvalid),
  .ready_i(axil_req_i.rready),
  .data_i({axil_rsp_o.rdata, axil_rsp_o.rresp})
);

// -------------------------------------------------------------------------------------------------
// Command port: the end of the work, however it comes, withdraws what it asks for
// -------------------------------------------------------------------------------------------------
bind npu_cmd_fetch stream_checker #(
  .DataT(logic [$bits(entry_o)-1:0])
) u_check_entry (
  .clk_i,
  .rst_ni,
  .withdraw_i(!run_i),
  .valid_i(entry_o.valid),
  .ready_i(ready_i),
  .data_i(entry_o)
);
bind npu_cmd_fetch stream_checker #(
  .DataT(logic [$bits(read_o)-1:0])
) u_check_read (
  .clk_i,
  .rst_ni,
  .withdraw_i(!run_i),
  .valid_i(read_o.valid),
  .ready_i(read_i.ready || read_i.denied),
  .data_i(read_o)
);
bind npu_cmd_stream stream_checker #(
  .DataT(logic [$bits(read_o)-1:0])
) u_check_read (
  .clk_i,
  .rst_ni,
  .withdraw_i(!active_i),
  .valid_i(read_o.valid),
  .ready_i(read_i.ready || read_i.denied),
  .data_i(read_o)
);
bind npu_cmd_writeback stream_checker #(
  .DataT(logic [$bits(write_o)-1:0])
) u_check_write (
  .clk_i,
  .rst_ni,
  .withdraw_i(!active_i || (write_i.valid && write_i.error)),
  .valid_i(write_o.valid),
  .ready_i(write_i.ready || write_i.denied),
  .data_i(write_o)
);
bind npu_cmd_record stream_checker #(
  .DataT(logic [$bits(write_o)-1:0])
) u_check_write (
  .clk_i,
  .rst_ni,
  .withdraw_i(!record_i.active),
  .valid_i(write_o.valid),
  .ready_i(write_i.ready || write_i.denied),
  .data_i(write_o)
);
bind npu_cmd_run stream_checker #(
  .DataT(logic [$bits(op_valid_o)-1:0])
) u_check_op (
  .clk_i,
  .rst_ni,
  .withdraw_i(soft_reset_i),
  .valid_i(op_valid_o),
  .ready_i(unit_i.ready),
  .data_i(op_valid_o)
);
bind npu_cmd stream_checker #(
  .DataT(logic [$bits(launch_o)-1:0])
) u_check_launch (
  .clk_i,
  .rst_ni,
  .withdraw_i(soft_reset_i),
  .valid_i(launch_o.valid),
  .ready_i(launch_i.ready),
  .data_i(launch_o)
);

// -------------------------------------------------------------------------------------------------
// Load and store
// -------------------------------------------------------------------------------------------------
bind npu_dma_load stream_checker #(
  .DataT(logic [$bits(rd_req_o)-1:0])
) u_check_read (
  .clk_i,
  .rst_ni,
  .withdraw_i(1'b0),
  .valid_i(rd_req_o.valid),
  .ready_i(rd_rsp_i.ready),
  .data_i(rd_req_o)
);
bind npu_dma_store stream_checker #(
  .DataT(logic [$bits(wr_req_o)-1:0])
) u_check_request (
  .clk_i,
  .rst_ni,
  .withdraw_i(1'b0),
  .valid_i(wr_req_o.valid),
  .ready_i(wr_rsp_i.ready),
  .data_i(wr_req_o)
);
bind npu_dma_store stream_checker #(
  .DataT(logic [$bits(w_o)-1:0])
) u_check_word (
  .clk_i,
  .rst_ni,
  .withdraw_i(1'b0),
  .valid_i(w_o.valid),
  .ready_i(wr_rsp_i.word_ready),
  .data_i(w_o)
);
bind npu_dma_bursts stream_checker #(
  .DataT(logic [$bits({req_o, last_o})-1:0])
) u_check (
  .clk_i,
  .rst_ni,
  .withdraw_i(1'b0),
  .valid_i(req_o.valid),
  .ready_i(ready_i),
  .data_i({req_o, last_o})
);
bind npu_dma_list stream_checker #(
  .DataT(logic [$bits(addr_o)-1:0])
) u_check_addr (
  .clk_i,
  .rst_ni,
  .withdraw_i(1'b0),
  .valid_i(addr_valid_o),
  .ready_i(addr_ready_i),
  .data_i(addr_o)
);
bind npu_dma_list stream_checker #(
  .DataT(logic [$bits({row_last_o, row_o})-1:0])
) u_check_row (
  .clk_i,
  .rst_ni,
  .withdraw_i(1'b0),
  .valid_i(row_valid_o),
  .ready_i(row_ready_i),
  .data_i({row_last_o, row_o})
);

// -------------------------------------------------------------------------------------------------
// GEMM
// -------------------------------------------------------------------------------------------------
bind npu_gemm_loader stream_checker #(
  .DataT(logic [$bits(param_o)-1:0])
) u_check (
  .clk_i,
  .rst_ni,
  .withdraw_i(1'b0),
  .valid_i(param_valid_o),
  .ready_i(param_ready_i),
  .data_i(param_o)
);
bind npu_gemm_operand_a stream_checker #(
  .DataT(logic [$bits(slice_o)-1:0])
) u_check (
  .clk_i,
  .rst_ni,
  .withdraw_i(1'b0),
  .valid_i(slice_valid_o),
  .ready_i(slice_ready_i),
  .data_i(slice_o)
);
bind npu_gemm_operand_b stream_checker #(
  .DataT(logic [$bits({pair_o[0], pair_o[1]})-1:0])
) u_check (
  .clk_i,
  .rst_ni,
  .withdraw_i(1'b0),
  .valid_i(pair_valid_o),
  .ready_i(pair_ready_i),
  .data_i({pair_o[0], pair_o[1]})
);
bind npu_gemm_operand_d stream_checker #(
  .DataT(logic [$bits(word_o)-1:0])
) u_check (
  .clk_i,
  .rst_ni,
  .withdraw_i(1'b0),
  .valid_i(word_valid_o),
  .ready_i(word_ready_i),
  .data_i(word_o)
);
bind npu_gemm_drain stream_checker #(
  .DataT(logic [$bits({drain_bank_o, drain_row_o})-1:0])
) u_check_drain (
  .clk_i,
  .rst_ni,
  .withdraw_i(1'b0),
  .valid_i(drain_valid_o),
  .ready_i(drain_ready_i),
  .data_i({drain_bank_o, drain_row_o})
);
bind npu_gemm_drain stream_checker #(
  .DataT(logic [$bits(sums_o)-1:0])
) u_check_sums (
  .clk_i,
  .rst_ni,
  .withdraw_i(1'b0),
  .valid_i(sums_valid_o),
  .ready_i(sums_ready_i),
  .data_i(sums_o)
);
// `done` follows ready, and without a second operand its words may be anything.
bind npu_gemm_collect stream_checker #(
  .DataT(logic [$bits(
{row_ctrl_o.addr, row_columns_o}
)-1:0])
) u_check (
  .clk_i,
  .rst_ni,
  .withdraw_i(1'b0),
  .valid_i(row_valid_o),
  .ready_i(row_ready_i),
  .data_i({row_ctrl_o.addr, row_columns_o})
);
bind npu_gemm_post stream_checker #(
  .DataT(logic [$bits({out_ctrl_o, out_o})-1:0])
) u_check (
  .clk_i,
  .rst_ni,
  .withdraw_i(1'b0),
  .valid_i(out_valid_o),
  .ready_i(out_ready_i),
  .data_i({out_ctrl_o, out_o})
);
bind npu_gemm_argmax stream_checker #(
  .DataT(logic [$bits({row_ctrl_i, row_i})-1:0])
) u_check (
  .clk_i,
  .rst_ni,
  .withdraw_i(1'b0),
  .valid_i(row_valid_o),
  .ready_i(row_ready_i),
  .data_i({row_ctrl_i, row_i})
);

// -------------------------------------------------------------------------------------------------
// Sequencer: a redirect or a flush withdraws what was fetched and checked
// -------------------------------------------------------------------------------------------------
bind npu_fetch stream_checker #(
  .DataT(logic [$bits({fetched_o.word, fetched_o.index})-1:0])
) u_check (
  .clk_i,
  .rst_ni,
  .withdraw_i(redirect_i.valid),
  .valid_i(fetched_o.valid),
  .ready_i(ready_i),
  .data_i({fetched_o.word, fetched_o.index})
);
bind npu_check stream_checker #(
  .DataT(logic [$bits(entry_o)-1:0])
) u_check (
  .clk_i,
  .rst_ni,
  .withdraw_i(flush_i),
  .valid_i(entry_valid_o),
  .ready_i(entry_ready_i),
  .data_i(entry_o)
);

// -------------------------------------------------------------------------------------------------
// Stream: a line counts for the engine that holds the oldest ticket
// -------------------------------------------------------------------------------------------------
bind npu_streamer stream_checker #(
  .DataT(logic [$bits({line_valid_o, line_data_o})-1:0])
) u_check (
  .clk_i,
  .rst_ni,
  .withdraw_i(1'b0),
  .valid_i(line_valid_o != '0),
  .ready_i((line_valid_o & line_ready_i) != '0),
  .data_i({line_valid_o, line_data_o})
);

// -------------------------------------------------------------------------------------------------
// Row engines and what engines share
// -------------------------------------------------------------------------------------------------
bind npu_norm_pipe stream_checker #(
  .DataT(logic [$bits({tag_i, word_i})-1:0])
) u_check_in (
  .clk_i,
  .rst_ni,
  .withdraw_i(1'b0),
  .valid_i(valid_i),
  .ready_i(ready_o),
  .data_i({tag_i, word_i})
);
bind npu_norm_pipe stream_checker #(
  .DataT(logic [$bits(word_o)-1:0])
) u_check_out (
  .clk_i,
  .rst_ni,
  .withdraw_i(1'b0),
  .valid_i(word_o.valid),
  .ready_i(word_ready_i),
  .data_i(word_o)
);
bind npu_norm_stat stream_checker #(
  .DataT(logic [$bits(result_o)-1:0])
) u_check (
  .clk_i,
  .rst_ni,
  .withdraw_i(1'b0),
  .valid_i(result_o.valid),
  .ready_i(pop_i),
  .data_i(result_o)
);
bind npu_rope_turn stream_checker #(
  .DataT(logic [$bits({tag_i, word_i})-1:0])
) u_check_in (
  .clk_i,
  .rst_ni,
  .withdraw_i(1'b0),
  .valid_i(valid_i),
  .ready_i(ready_o),
  .data_i({tag_i, word_i})
);
bind npu_rope_turn stream_checker #(
  .DataT(logic [$bits({tag_o, a_o, b_o})-1:0])
) u_check_out (
  .clk_i,
  .rst_ni,
  .withdraw_i(1'b0),
  .valid_i(valid_o),
  .ready_i(ready_i),
  .data_i({tag_o, a_o, b_o})
);
bind npu_rope_pack stream_checker #(
  .DataT(logic [$bits(word_o)-1:0])
) u_check (
  .clk_i,
  .rst_ni,
  .withdraw_i(1'b0),
  .valid_i(word_o.valid),
  .ready_i(word_ready_i),
  .data_i(word_o)
);
bind npu_vec_lanes stream_checker #(
  .DataT(logic [$bits({tag_i, word_i})-1:0])
) u_check_in (
  .clk_i,
  .rst_ni,
  .withdraw_i(1'b0),
  .valid_i(valid_i),
  .ready_i(ready_o),
  .data_i({tag_i, word_i})
);
bind npu_vec_lanes stream_checker #(
  .DataT(logic [$bits(word_o)-1:0])
) u_check_out (
  .clk_i,
  .rst_ni,
  .withdraw_i(1'b0),
  .valid_i(word_o.valid),
  .ready_i(word_ready_i),
  .data_i(word_o)
);
bind npu_row_fetch stream_checker #(
  .DataT(logic [$bits({step_i, step_tag_i})-1:0])
) u_check_in (
  .clk_i,
  .rst_ni,
  .withdraw_i(1'b0),
  .valid_i(step_i.valid),
  .ready_i(step_ready_o),
  .data_i({step_i, step_tag_i})
);
bind npu_row_fetch stream_checker #(
  .DataT(logic [$bits(tag_o)-1:0])
) u_check_out (
  .clk_i,
  .rst_ni,
  .withdraw_i(1'b0),
  .valid_i(valid_o),
  .ready_i(ready_i),
  .data_i(tag_o)
);
bind npu_row_writer stream_checker #(
  .DataT(logic [$bits(wr_req_o)-1:0])
) u_check (
  .clk_i,
  .rst_ni,
  .withdraw_i(1'b0),
  .valid_i(wr_req_o.valid),
  .ready_i(wr_ready_i),
  .data_i(wr_req_o)
);
bind npu_sram_reader stream_checker #(
  .DataT(logic [$bits(data_o)-1:0])
) u_check (
  .clk_i,
  .rst_ni,
  .withdraw_i(1'b0),
  .valid_i(data_valid_o),
  .ready_i(data_ready_i),
  .data_i(data_o)
);
bind npu_multicast_fifo multicast_checker #(
  .NumReaders(NumReaders)
) u_check (
  .clk_i,
  .rst_ni,
  .valid_i(valid_o),
  .ready_i(ready_i)
);
