// SPDX-License-Identifier: Apache-2.0
//
// The probes of the bench, bound to the modules that own the signals: the one place that knows names
// inside of modules of the chip. The design knows nothing of it.

// Engines. A row engine works where a word goes through one of its SRAM ports.
`define ROW_ENGINE(LATE) \
    trace_pkg::engine_trace_t'{ \
      take: op_valid_i && op_ready_o, \
      done: status_o.done, \
      busy: status_o.busy, \
      works: (rd_req_o.valid && rd_rsp_i.ready) || (wr_req_o.valid && wr_ready_i), \
      read_goes: rd_req_o.valid && rd_rsp_i.ready, \
      read_refused: rd_req_o.valid && !rd_rsp_i.ready, \
      write_valid: wr_req_o.valid, \
      write_ready: wr_ready_i, \
      write_addr: wr_req_o.addr, \
      write_data: wr_req_o.data, \
      stream_late: LATE, \
      default: '0 \
    }

bind npu_softmax trace_probe #(
  .TraceT(trace_pkg::engine_trace_t)
) u_probe (.trace_i(`ROW_ENGINE(1'b0)));
bind npu_nrm trace_probe #(
  .TraceT(trace_pkg::engine_trace_t)
) u_probe (.trace_i(`ROW_ENGINE(streaming && !share_i.valid)));
bind npu_vec trace_probe #(
  .TraceT(trace_pkg::engine_trace_t)
) u_probe (.trace_i(`ROW_ENGINE(table_streaming && !share_i.valid)));

bind npu_gemm trace_probe #(
  .TraceT(trace_pkg::engine_trace_t)
) u_probe (
  .trace_i(trace_pkg::engine_trace_t
'{
      take: op_valid_i && op_ready_o,
      done: status_o.done,
      busy: status_o.busy,
      works: row_valid || u_loader.line_go,
      read_refused:
      (
      rd_req_o[0].valid && !rd_rsp_i[0].ready
      ) || (
      rd_req_o[1].valid && !rd_rsp_i[1].ready
      ) || (
      rd_req_o[2].valid && !rd_rsp_i[2].ready
      ) || (
      rd_req_o[3].valid && !rd_rsp_i[3].ready
      ),
      write_valid: wr_req_o.valid,
      write_ready: wr_ready_i,
      write_addr: wr_req_o.addr,
      write_data: wr_req_o.data,
      stream_late: share_wanted && !share_i.valid,
      bank_waits:
      u_sums.u_feeder.slice_valid
      &&
      u_sums.u_feeder.column_start
      &&
      u_sums.u_feeder.banks_q
      == '0,
      parameter_waits: param_valid && !param_ready,
      row_goes: u_sums.u_array.act_valid_i,
      default: '0
  }
  )
);

bind npu_dma_load trace_probe #(
  .TraceT(trace_pkg::engine_trace_t)
) u_probe (
  .trace_i(trace_pkg::engine_trace_t
'{
      take: op_valid_i && op_ready_o,
      done: status_o.done,
      busy: status_o.busy,
      works: wr_req_o.valid && wr_ready_i,
      write_valid: wr_req_o.valid,
      write_ready: wr_ready_i,
      write_addr: wr_req_o.addr,
      write_data: wr_req_o.data,
      default: '0
  }
  )
);

bind npu_dma_store trace_probe #(
  .TraceT(trace_pkg::engine_trace_t)
) u_probe (
  .trace_i(trace_pkg::engine_trace_t
'{
      take: op_valid_i && op_ready_o,
      done: status_o.done,
      busy: status_o.busy,
      works: (w_o.valid && wr_rsp_i.word_ready) || (sram_wr_req_o.valid && sram_wr_ready_i),
      read_refused: rd_req_o.valid && !rd_rsp_i.ready,
      write_valid: sram_wr_req_o.valid,
      write_ready: sram_wr_ready_i,
      write_addr: sram_wr_req_o.addr,
      write_data: sram_wr_req_o.data,
      write_last: delivered,
      channel_waits: w_o.valid || wr_req_o.valid,
      default: '0
  }
  )
);

bind npu_dispatch trace_probe #(
  .TraceT(trace_pkg::dispatch_trace_t)
) u_probe (
  .trace_i(trace_pkg::dispatch_trace_t
'{
      valid: entry_valid_i,
      taken: entry_valid_i && entry_ready_o,
      fire: fire_o,
      ended: progress_o.ended,
      resolved: resolved.ready,
      queue_full: !extents_i.nothing && (kind_i.engine & ~op_ready_i) != '0,
      index: entry_i.index,
      word: word,
      queued: op_valid_o & op_ready_i
  }
  )
);

bind npu_core trace_probe #(
  .TraceT(trace_pkg::core_trace_t)
) u_probe (
  .trace_i(trace_pkg::core_trace_t
'{
      rst_n: core_rst_n,
      started: status_o.started,
      busy: status_o.busy,
      finish: status_o.finish,
      soft_reset: control_i.soft_reset,
      stream_beat: events_o.stream_beat,
      ticket_valid: ticket_valid,
      ticket_ready: ticket_ready,
      line_valid: line_valid,
      line_ready: line_ready,
      engine_busy: events_o.engine_busy,
      engine_stall: events_o.engine_stall
  }
  )
);

// Lines in the FIFO of the parameter stream
bind npu_stream_fifo trace_probe #(
  .TraceT(logic [31:0])
) u_probe (.trace_i(32'(stored_q) + 32'(out_valid_q)));

// PERF_CTRL.CLEAR
bind npu_chip_window trace_probe u_probe (.trace_i(chip_out.PERF_CTRL.CLEAR.value));

bind npu_cmd trace_probe #(
  .TraceT(trace_pkg::cmd_trace_t)
) u_probe (
  .trace_i(trace_pkg::cmd_trace_t
'{
      start: start,
      descriptor: descriptor,
      irq: irq_o,
      status: status,
      op_valid: op_start || ring_op_valid,
      op_done: status.unit.done,
      ring_start: ring_start,
      ring_end: ring.ended,
      ring_code: ring.code,
      entry: ring.entry,
      stall: events.ring.stall,
      launch_valid: launch_o.valid,
      launch_ready: launch_i.ready,
      head: ring_regs.head,
      tail: ring_regs.tail
  }
  )
);

bind npu_cop trace_probe #(
  .TraceT(trace_pkg::cop_trace_t)
) u_probe (
  .trace_i(trace_pkg::cop_trace_t
'{
      offered: x_req_i.issue.valid && x_rsp_o.issue.ready,
      word: npu_cop_isa_pkg::decode(x_req_i.issue.instr),
      running: op.valid,
      op: op.decoded.op,
      fault: fault
  }
  )
);

bind npu_memory residue_probe #(
  .DataT(DataT),
  .Rows (Rows)
) u_residue (.mem_i(mem_q));
