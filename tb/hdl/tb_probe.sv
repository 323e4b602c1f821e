// SPDX-License-Identifier: Apache-2.0
//
// The only module of the bench that looks inside the chip. It writes down every SRAM write with its
// instruction, every dispatched word and every finished instruction as records that Python reads
// (tb/logs.py), on demand also what every engine does or waits for in each cycle, copies the SRAM to
// the shared file on request, and shows opcodes for waveforms.

module tb_probe #(
  parameter int unsigned SramKiB   = 256,
  parameter bit          EnableCmd = 1'b1
) (
  input logic        clk_i,
  input logic        rst_ni,
  input logic [63:0] cycle_i,
  input logic        log_i,
  input logic        trace_i,  // with states and samples
  input logic        irq_i,
  input logic        sync_i,   // rising edge: copy the SRAM, flush the logs

  output logic [ 5:0]       engine_busy_o,
  output logic [ 5:0]       engine_stall_o,
  output logic [ 5:0][31:0] engine_instr_o,
  output logic [31:0]       last_dispatched_o,
  output logic              barrier_wait_o,

  // For the monitor of the performance counters
  output logic       started_o,
  output logic       core_rst_no,
  output logic       perf_clear_o,
  output logic       word_taken_o,    // by the dispatcher
  output logic [5:0] engine_queue_o,  // its queue takes a command
  output logic [5:0] engine_take_o,
  output logic [5:0] engine_done_o,
  output logic [5:0] engine_waits_o,  // its ports show what STALL counts, if it has an instruction

  output logic cmd_start_o,      // strobe of a start of the command port
  output logic cmd_ring_o,       // it starts the ring
  output logic cmd_irq_o,
  output logic cmd_soft_reset_o
);
  import tb_pkg::*;

  localparam int unsigned NumEngines = npu_pkg::NumEngines;
  localparam int unsigned NumPorts = 6;  // SRAM write ports: ld, gemm, smx, nrm, vec, st
  localparam int unsigned NumBanks = npu_pkg::NumSramBanks;
  localparam int unsigned BankRows = SramKiB * 1024 / 16 / NumBanks;

  // -----------------------------------------------------------------------------------------------
  // The signals of the chip that the bench depends on
  // -----------------------------------------------------------------------------------------------
  logic dispatch_fire;
  logic [31:0] dispatch_instr;
  logic [127:0] dispatch_word;
  logic [NumEngines-1:0] engine_done;
  logic [NumEngines-1:0] engine_take;
  logic [NumEngines-1:0] engine_waits;
  logic started;

  assign dispatch_fire  = tb_top.dut.u_core.u_seq.u_dispatch.fire_o;
  assign dispatch_instr = tb_top.dut.u_core.u_seq.u_dispatch.entry_i.index;
  assign dispatch_word  = tb_top.dut.u_core.u_seq.u_dispatch.entry_i.word;
  assign engine_done    = tb_top.dut.u_core.engine_done;
  assign engine_take    = tb_top.dut.u_core.cmd_valid & tb_top.dut.u_core.cmd_ready;
  assign started        = tb_top.dut.u_core.started_o;
  assign engine_busy_o  = tb_top.dut.u_core.engine_busy_o;
  assign engine_stall_o = tb_top.dut.u_core.engine_stall_o;
  for (genvar e = 0; e < int'(NumEngines); e++) begin : gen_engine_instr
    assign engine_instr_o[e] = tb_top.dut.u_core.u_engines.instr_o[e];
  end

  assign started_o = started;
  assign core_rst_no = tb_top.dut.u_core.u_engines.rst_ni;
  assign perf_clear_o = tb_top.dut.u_host.u_chip.chip_out.PERF_CTRL.CLEAR.value;
  assign engine_queue_o = tb_top.dut.u_core.u_seq.push & tb_top.dut.u_core.u_seq.push_ready;
  assign engine_take_o = engine_take;
  assign engine_done_o = engine_done;
  assign engine_waits_o = engine_waits;

  assign word_taken_o   = tb_top.dut.u_core.u_seq.u_dispatch.entry_valid_i &&
                          tb_top.dut.u_core.u_seq.u_dispatch.entry_ready_o;
  assign barrier_wait_o =
      tb_top.dut.u_core.u_seq.u_dispatch.entry_valid_i && !tb_top.dut.u_core.instr_o &&
      tb_top.dut.u_core.u_seq.u_dispatch.word.opcode == npu_isa_pkg::OpBarrier;

  // The command port; `cmd_op` is the operation last handed to its unit, for waveforms
  logic [3:0] cmd_op;

  if (EnableCmd) begin : gen_cmd
    assign cmd_start_o = tb_top.dut.gen_cmd.u_cmd.u_control.start_i;
    assign cmd_ring_o  = tb_top.dut.gen_cmd.u_cmd.u_control.descriptor_i;
    assign cmd_irq_o   = tb_top.dut.gen_cmd.u_cmd.irq_o;
    assign cmd_op      = tb_top.dut.gen_cmd.u_cmd.u_unit.opcode_o;
  end else begin : gen_no_cmd
    assign cmd_start_o = 1'b0;
    assign cmd_ring_o  = 1'b0;
    assign cmd_irq_o   = 1'b0;
    assign cmd_op      = '0;
  end
  assign cmd_soft_reset_o = tb_top.dut.soft_reset;

  logic [NumPorts-1:0] sram_wr_fire;
  logic [NumPorts-1:0][15:0] sram_wr_addr;
  logic [NumPorts-1:0][127:0] sram_wr_data;
  logic [NumPorts-1:0][31:0] sram_wr_instr;

  for (genvar p = 0; p < int'(NumPorts); p++) begin : gen_sram_wr
    assign sram_wr_fire[p]  = tb_top.dut.u_core.u_engines.wr_req[p].valid &&
                              tb_top.dut.u_core.u_engines.wr_ready[p];
    assign sram_wr_addr[p] = tb_top.dut.u_core.u_engines.wr_req[p].addr;
    assign sram_wr_data[p] = tb_top.dut.u_core.u_engines.wr_req[p].data;
    assign sram_wr_instr[p] = tb_top.dut.u_core.u_engines.wr_req[p].instr;
  end

  // The instruction of the command that waits in front of each engine
  logic [NumEngines-1:0][31:0] taken_instr;
  assign taken_instr[npu_isa_pkg::EngLd]   = tb_top.dut.u_core.load_cmd.instr;
  assign taken_instr[npu_isa_pkg::EngSt]   = tb_top.dut.u_core.store_cmd.instr;
  assign taken_instr[npu_isa_pkg::EngGemm] = tb_top.dut.u_core.gemm_cmd.instr;
  assign taken_instr[npu_isa_pkg::EngSmx]  = tb_top.dut.u_core.smx_cmd.instr;
  assign taken_instr[npu_isa_pkg::EngNrm]  = tb_top.dut.u_core.nrm_cmd.instr;
  assign taken_instr[npu_isa_pkg::EngVec]  = tb_top.dut.u_core.vec_cmd.instr;

  // -----------------------------------------------------------------------------------------------
  // What STALL counts, at the ports of the engines
  // -----------------------------------------------------------------------------------------------
  `define ENGINES tb_top.dut.u_core.u_engines
  `define GOES(ENGINE, PORT, READY) (ENGINE.PORT.valid && ENGINE.READY)
  `define REFUSED(ENGINE, PORT, READY) (ENGINE.PORT.valid && !ENGINE.READY)
  `define LATE(ENGINE) (ENGINE.stream_ready_o && !ENGINE.stream_valid_i)
  `define ROW_WAITS(ENGINE, LATE) \
      (`REFUSED(ENGINE, wr_req_o, wr_ready_i) || `REFUSED(ENGINE, rd_req_o, rd_ready_i) || \
       (LATE && !`GOES(ENGINE, rd_req_o, rd_ready_i)))

  logic gemm_refused, gemm_starves, st_to_memory, st_to_sram;
  assign gemm_refused = `REFUSED(`ENGINES.u_gemm, wr_req_o, wr_ready_i);
  assign st_to_memory = `GOES(`ENGINES.u_store, w_o, w_ready_i);
  assign st_to_sram   = `GOES(`ENGINES.u_store, sram_wr_req_o, sram_wr_ready_i);
  always_comb begin
    gemm_starves = `LATE(`ENGINES.u_gemm);
    for (int unsigned p = 0; p < 4; p++) begin
      if (`REFUSED(`ENGINES.u_gemm, rd_req_o[p], rd_ready_i[p])) gemm_starves = 1'b1;
    end
  end

  assign engine_waits[npu_isa_pkg::EngLd] = !`GOES(`ENGINES.u_load, wr_req_o, wr_ready_i);
  assign engine_waits[npu_isa_pkg::EngSt] = !st_to_memory && !st_to_sram;
  assign engine_waits[npu_isa_pkg::EngGemm] =
      gemm_refused || (gemm_starves && !`ENGINES.u_gemm.u_sums.u_array.act_valid_i);
  assign engine_waits[npu_isa_pkg::EngSmx] = `ROW_WAITS(`ENGINES.u_softmax, 1'b0);
  assign engine_waits[npu_isa_pkg::EngNrm] = `ROW_WAITS(`ENGINES.u_nrm, `LATE(`ENGINES.u_nrm));
  assign engine_waits[npu_isa_pkg::EngVec] = `ROW_WAITS(`ENGINES.u_vec, `LATE(`ENGINES.u_vec));

  // -----------------------------------------------------------------------------------------------
  // Logs
  // -----------------------------------------------------------------------------------------------
  logic irq_q = 1'b0;
  logic cmd_irq_q = 1'b0;
  always_ff @(posedge clk_i) irq_q <= irq_i;
  always_ff @(posedge clk_i) cmd_irq_q <= cmd_irq_o;

  always_ff @(posedge clk_i) begin
    if (rst_ni && log_i) begin
      if (sram_wr_fire != '0) begin
        for (int unsigned p = 0; p < NumPorts; p++) begin
          if (sram_wr_fire[p])
            tb_log_write(cycle_i, sram_wr_instr[p], p, 32'(sram_wr_addr[p]), sram_wr_data[p]);
        end
      end
      if (dispatch_fire) tb_log_event(cycle_i, EventDispatch, 0, dispatch_instr, dispatch_word);
      if (engine_done != '0) begin
        for (int unsigned e = 0; e < NumEngines; e++) begin
          if (engine_done[e]) tb_log_event(cycle_i, EventDone, e, engine_instr_o[e], '0);
        end
      end
      if (engine_take != '0) begin
        for (int unsigned e = 0; e < NumEngines; e++) begin
          if (engine_take[e]) tb_log_trace(cycle_i, TraceTake, e, taken_instr[e], '0);
        end
      end
      if (started) tb_log_trace(cycle_i, TraceStart, 0, '0, '0);
      if (irq_i && !irq_q) tb_log_trace(cycle_i, TraceInterrupt, 0, '0, '0);
      if (tb_top.dut.u_core.finish_o) tb_log_trace(cycle_i, TraceFinish, 0, '0, '0);
      if (cmd_start_o) tb_log_trace(cycle_i, TraceCmdStart, 0, '0, '0);
      if (cmd_irq_o && !cmd_irq_q) tb_log_trace(cycle_i, TraceCmdInterrupt, 0, '0, '0);
    end
  end

  // -----------------------------------------------------------------------------------------------
  // Trace: the states of the engines and of the sequencer, whenever one changes
  // -----------------------------------------------------------------------------------------------
  // Functions, so that nothing of this is computed while there is no trace.

  // An engine that is busy between its SRAM ports and the parameter stream
  function automatic state_e port_state(logic busy, logic works, logic read_refused,
                                        logic write_refused, logic stream_empty);
    if (!busy) return StateIdle;
    if (works) return StateWork;
    if (write_refused) return StateWritePort;
    if (stream_empty) return StateStream;
    if (read_refused) return StateReadPort;
    return StatePipeline;
  endfunction

  `define DISPATCH tb_top.dut.u_core.u_seq.u_dispatch

  function automatic state_e load_state();
    if (!`ENGINES.u_load.busy_o) return StateIdle;
    if (!`ENGINES.u_load.wr_req_o.valid) return StateReadData;
    return `ENGINES.u_load.wr_ready_i ? StateWork : StateWritePort;
  endfunction

  function automatic state_e store_state();
    if (!`ENGINES.u_store.busy_o) return StateIdle;
    if (`ENGINES.u_store.w_o.valid && `ENGINES.u_store.w_ready_i) return StateWork;
    if (`ENGINES.u_store.sram_wr_req_o.valid)
      return `ENGINES.u_store.sram_wr_ready_i ? StateWork : StateWritePort;
    if (`ENGINES.u_store.w_o.valid || `ENGINES.u_store.wr_req_o.valid) return StateWriteChannel;
    if (`ENGINES.u_store.rd_req_o.valid && !`ENGINES.u_store.rd_ready_i) return StateReadPort;
    return StateResponse;
  endfunction

  function automatic state_e gemm_state();
    state_e state;
    logic   read_refused;
    read_refused = 1'b0;
    for (int unsigned p = 0; p < 4; p++) begin
      read_refused |= `ENGINES.u_gemm.rd_req_o[p].valid && !`ENGINES.u_gemm.rd_ready_i[p];
    end
    state = port_state(
        `ENGINES.u_gemm.busy_o,
        `ENGINES.u_gemm.row_valid || `ENGINES.u_gemm.u_loader.beat_go,
        read_refused,
        `ENGINES.u_gemm.wr_req_o.valid && !`ENGINES.u_gemm.wr_ready_i,
        `ENGINES.u_gemm.stream_ready_o && !`ENGINES.u_gemm.stream_valid_i
    );
    if (state != StatePipeline) return state;
    if (`ENGINES.u_gemm.u_sums.u_feeder.slice_valid &&
        `ENGINES.u_gemm.u_sums.u_feeder.column_start &&
        `ENGINES.u_gemm.u_sums.u_feeder.banks_q == '0)
      return StateAccumulator;
    if (`ENGINES.u_gemm.param_in_valid && !`ENGINES.u_gemm.param_in_ready) return StateParameter;
    return StatePipeline;
  endfunction

  `define ROW_STATE(ENGINE, STREAM_EMPTY) \
      port_state(ENGINE.busy_o, (ENGINE.rd_req_o.valid && ENGINE.rd_ready_i) || \
                 (ENGINE.wr_req_o.valid && ENGINE.wr_ready_i), \
                 ENGINE.rd_req_o.valid && !ENGINE.rd_ready_i, \
                 ENGINE.wr_req_o.valid && !ENGINE.wr_ready_i, STREAM_EMPTY)

  function automatic state_e sequencer_state();
    if (!tb_top.dut.u_core.busy_o || `DISPATCH.end_o) return StateIdle;
    if (!`DISPATCH.entry_valid_i) return StateFetch;
    if (`DISPATCH.fire_o || !`DISPATCH.resolved) return StateWork;
    if (`DISPATCH.is_engine && !`DISPATCH.nothing && !`DISPATCH.cmd_ready_i[`DISPATCH.engine])
      return StateQueueFull;
    if (`DISPATCH.word.opcode inside {npu_isa_pkg::OpBarrier, npu_isa_pkg::OpArgmax})
      return StateBarrier;
    if (`DISPATCH.word.opcode == npu_isa_pkg::OpEnd) return StateEnd;
    return StateTicket;
  endfunction

  function automatic state_e state_of(int unsigned e);
    unique case (e)
      0: return load_state();
      1: return store_state();
      2: return gemm_state();
      3: return `ROW_STATE(`ENGINES.u_softmax, 1'b0);
      4:
      return
      `ROW_STATE(`ENGINES.u_nrm, `ENGINES.u_nrm.stream_ready_o && !`ENGINES.u_nrm.stream_valid_i)
      ;
      5:
      return
      `ROW_STATE(`ENGINES.u_vec, `ENGINES.u_vec.stream_ready_o && !`ENGINES.u_vec.stream_valid_i)
      ;
      default: return sequencer_state();
    endcase
  endfunction

  state_e traced_q[NumEngines+1] = '{default: StateIdle};
  logic [NumEngines:0][31:0] traced_instr_q;
  int unsigned reads_q = 0;
  int unsigned stream_reads_q = 0;
  int unsigned writes_q = 0;

  always_ff @(posedge clk_i) begin
    if (rst_ni && trace_i) begin
      automatic logic [NumEngines:0][31:0] state_instr = {dispatch_instr, engine_instr_o};
      for (int unsigned e = 0; e <= NumEngines; e++) begin
        automatic state_e state = state_of(e);
        if (state != traced_q[e] || (state != StateIdle && state_instr[e] != traced_instr_q[e]))
          tb_log_trace(cycle_i, TraceState, e, state_instr[e], 128'(state));
        traced_q[e] <= state;
      end
      traced_instr_q <= state_instr;

      reads_q <= reads_q + 32'(tb_top.rvalid && tb_top.M_AXI_RREADY);
      stream_reads_q <= stream_reads_q + 32'(tb_top.dut.u_core.stream_beat_o);
      writes_q <= writes_q + 32'(tb_top.M_AXI_WVALID && tb_top.wready);
      if (cycle_i % 64'(TraceWindow) == '0) begin
        tb_log_trace(cycle_i, TraceSample, 0, '0, {
                     writes_q,
                     stream_reads_q,
                     reads_q,
                     4 * (32'(tb_top.dut.u_core.u_streamer.u_fifo.stored_q) +
               32'(tb_top.dut.u_core.u_streamer.u_fifo.out_valid_q))
                     });
        reads_q <= 32'(tb_top.rvalid && tb_top.M_AXI_RREADY);
        stream_reads_q <= 32'(tb_top.dut.u_core.stream_beat_o);
        writes_q <= 32'(tb_top.M_AXI_WVALID && tb_top.wready);
      end
    end
  end

  // -----------------------------------------------------------------------------------------------
  // The shared files
  // -----------------------------------------------------------------------------------------------
  initial begin
    string run_dir;
    if (!$value$plusargs("run_dir=%s", run_dir)) $fatal(1, "+run_dir=<folder> is missing");
    tb_open(run_dir, SramKiB * 1024);
  end

  always @(posedge sync_i) tb_flush();

  for (genvar b = 0; b < int'(NumBanks); b++) begin : gen_sram_copy
    always @(posedge sync_i) begin
      for (int unsigned r = 0; r < BankRows; r++) begin
        automatic logic [15:0] row = 16'(r << 4);
        // The bank of a word is its low nibble XOR a fold of the rest, so the fold gives it back.
        tb_sram_store(32'({row[15:4], npu_pkg::sram_bank(row | 16'(b))}),
                      tb_top.dut.u_core.u_engines.u_sram.gen_bank[b].u_bank.mem_q[r]);
      end
    end
  end

  // -----------------------------------------------------------------------------------------------
  // For waveforms: opcode bytes, which the viewer shows as mnemonics; unread, so the fast build
  // drops them
  // -----------------------------------------------------------------------------------------------
  localparam int unsigned Depth = 1024;  // more words than the queues of all engines hold
  localparam int unsigned Bits = $clog2(Depth);

  logic [7:0] opcodes[Depth];
  logic [7:0] dispatched = '0;
  logic [7:0] ld, st, gemm, smx, nrm, vec;

  always_ff @(posedge clk_i) begin
    if (dispatch_fire) begin
      opcodes[dispatch_instr[Bits-1:0]] <= dispatch_word[7:0];
      dispatched <= dispatch_word[7:0];
      last_dispatched_o <= dispatch_instr;
    end
  end

  assign ld   = engine_busy_o[0] ? opcodes[engine_instr_o[0][Bits-1:0]] : '0;
  assign st   = engine_busy_o[1] ? opcodes[engine_instr_o[1][Bits-1:0]] : '0;
  assign gemm = engine_busy_o[2] ? opcodes[engine_instr_o[2][Bits-1:0]] : '0;
  assign smx  = engine_busy_o[3] ? opcodes[engine_instr_o[3][Bits-1:0]] : '0;
  assign nrm  = engine_busy_o[4] ? opcodes[engine_instr_o[4][Bits-1:0]] : '0;
  assign vec  = engine_busy_o[5] ? opcodes[engine_instr_o[5][Bits-1:0]] : '0;

endmodule
