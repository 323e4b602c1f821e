// SPDX-License-Identifier: Apache-2.0
//
// Collects what the probes inside the chip show (tb_binds.sv, trace_pkg.sv), and is the only module
// that reads them. It writes down every SRAM write with its instruction, every dispatched word and
// every finished instruction as records that Python reads (tb/bench/logs.py), on demand also what every
// engine does or waits for in each cycle, copies the SRAM to the shared file on request, and shows
// opcodes for waveforms.

module tb_probe #(
  parameter int unsigned ArrayDim  = 16,
  parameter int unsigned SramKiB   = 256,
  parameter bit          EnableCmd = 1'b1,
  parameter bit          EnableCop = 1'b1
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
  output logic [5:0] engine_queue_o,  // its queue takes an operation
  output logic [5:0] engine_take_o,
  output logic [5:0] engine_done_o,
  output logic [5:0] engine_waits_o,  // its ports show what STALL counts, if it has an instruction

  output logic cmd_start_o,      // strobe of a start of the command port
  output logic cmd_ring_o,       // it starts the ring
  output logic cmd_irq_o,
  output logic cmd_soft_reset_o
);
  import tb_pkg::*;
  import trace_pkg::*;

  localparam int unsigned NumPorts = 6;  // SRAM write ports: ld, gemm, smx, nrm, vec, st
  localparam int unsigned NumBanks = npu_sram_pkg::sram_banks(ArrayDim);
  localparam int unsigned BankRows = SramKiB * 1024 / 16 / NumBanks;

  // -----------------------------------------------------------------------------------------------
  // The probes that tb_binds.sv puts into the chip
  // -----------------------------------------------------------------------------------------------
  core_trace_t core;
  dispatch_trace_t dispatch;
  engine_trace_t engine[NumEngines];
  cmd_trace_t cmd;
  cop_trace_t cop;
  logic [31:0] stream_fifo_lines;

  assign core = tb_top.dut.u_core.u_probe.trace_i;
  assign dispatch = tb_top.dut.u_core.u_seq.u_dispatch.u_probe.trace_i;
  assign engine[npu_isa_pkg::EngLd] = tb_top.dut.u_core.u_engines.u_load.u_probe.trace_i;
  assign engine[npu_isa_pkg::EngSt] = tb_top.dut.u_core.u_engines.u_store.u_probe.trace_i;
  assign engine[npu_isa_pkg::EngGemm] = tb_top.dut.u_core.u_engines.u_gemm.u_probe.trace_i;
  assign engine[npu_isa_pkg::EngSmx] = tb_top.dut.u_core.u_engines.u_softmax.u_probe.trace_i;
  assign engine[npu_isa_pkg::EngNrm] = tb_top.dut.u_core.u_engines.u_nrm.u_probe.trace_i;
  assign engine[npu_isa_pkg::EngVec] = tb_top.dut.u_core.u_engines.u_vec.u_probe.trace_i;
  assign stream_fifo_lines = tb_top.dut.u_core.u_streamer.u_fifo.u_probe.trace_i;
  assign perf_clear_o = tb_top.dut.u_host.u_chip.u_probe.trace_i;

  if (EnableCmd) begin : gen_cmd
    assign cmd = tb_top.dut.gen_cmd.u_cmd.u_probe.trace_i;
  end else begin : gen_no_cmd
    assign cmd = '0;
  end

  if (EnableCop) begin : gen_cop
    assign cop = tb_top.dut.gen_cop.u_cop.u_probe.trace_i;
  end else begin : gen_no_cop
    assign cop = '0;
  end

  // -----------------------------------------------------------------------------------------------
  // What the bench and the waveforms show of them
  // -----------------------------------------------------------------------------------------------
  logic dispatch_fire;
  logic [31:0] dispatch_instr;
  logic [127:0] dispatch_word;
  logic [NumEngines-1:0] engine_done;
  logic [NumEngines-1:0] engine_take;

  assign dispatch_fire = dispatch.fire;
  assign dispatch_instr = dispatch.index;
  assign dispatch_word = dispatch.word;
  assign engine_busy_o = core.engine_busy;
  assign engine_stall_o = core.engine_stall;
  assign started_o = core.started;
  assign core_rst_no = core.rst_n;
  assign word_taken_o = dispatch.taken;
  assign engine_queue_o = dispatch.queued;
  assign engine_take_o = engine_take;
  assign engine_done_o = engine_done;
  assign barrier_wait_o   = dispatch.valid && !dispatch.fire &&
                            dispatch.word.opcode == npu_isa_pkg::OpBarrier;
  assign cmd_start_o = cmd.start;
  assign cmd_ring_o = cmd.descriptor;
  assign cmd_irq_o = cmd.irq;
  assign cmd_soft_reset_o = core.soft_reset;

  // What STALL counts, at the ports of the engines
  for (genvar e = 0; e < int'(NumEngines); e++) begin : gen_engine
    assign engine_take[e] = engine[e].take;
    assign engine_done[e] = engine[e].done;
  end

  function automatic logic write_refused(engine_trace_t engine);
    return engine.write_valid && !engine.write_ready;
  endfunction

  function automatic logic row_waits(engine_trace_t engine);
    return write_refused(engine) || engine.read_refused ||
        (engine.stream_late && !engine.read_goes);
  endfunction

  assign engine_waits_o = {
    row_waits(engine[npu_isa_pkg::EngVec]),
    row_waits(engine[npu_isa_pkg::EngNrm]),
    row_waits(engine[npu_isa_pkg::EngSmx]),
    write_refused(
        engine[npu_isa_pkg::EngGemm]
    ) || ((engine[npu_isa_pkg::EngGemm].stream_late || engine[npu_isa_pkg::EngGemm].read_refused) &&
          !engine[npu_isa_pkg::EngGemm].row_goes),
    !engine[npu_isa_pkg::EngSt].works,
    !engine[npu_isa_pkg::EngLd].works
  };

  // -----------------------------------------------------------------------------------------------
  // The instructions of each engine that are not done, in order. Its words belong to the oldest one;
  // only the store engine goes on to the next while memory has not acknowledged the last.
  // -----------------------------------------------------------------------------------------------
  localparam int unsigned MostInstrs = 32;  // in the queue of an engine and in the engine
  localparam int unsigned InstrBits = $clog2(MostInstrs);

  logic [31:0] instrs[NumEngines][MostInstrs];
  logic [InstrBits-1:0] queued_q[NumEngines];
  logic [InstrBits-1:0] taken_q[NumEngines];
  logic [InstrBits-1:0] done_q[NumEngines];
  logic [InstrBits-1:0] stored_q;

  always_ff @(posedge clk_i) begin
    if (!core.rst_n) begin
      for (int unsigned e = 0; e < NumEngines; e++) begin
        queued_q[e] <= '0;
        taken_q[e]  <= '0;
        done_q[e]   <= '0;
      end
      stored_q <= '0;
    end else begin
      for (int unsigned e = 0; e < NumEngines; e++) begin
        if (dispatch.queued[e]) begin
          instrs[e][queued_q[e]] <= dispatch.index;
          queued_q[e] <= queued_q[e] + 1'b1;
        end
        if (engine_take[e]) taken_q[e] <= taken_q[e] + 1'b1;
        if (engine_done[e]) done_q[e] <= done_q[e] + 1'b1;
      end
      if (engine[npu_isa_pkg::EngSt].write_last) stored_q <= stored_q + 1'b1;
    end
  end

  for (genvar e = 0; e < int'(NumEngines); e++) begin : gen_engine_instr
    assign engine_instr_o[e] = instrs[e][done_q[e]];
  end

  // -----------------------------------------------------------------------------------------------
  // SRAM writes
  // -----------------------------------------------------------------------------------------------
  localparam npu_isa_pkg::engine_e Writers[NumPorts] = '{
      npu_isa_pkg::EngLd,
      npu_isa_pkg::EngGemm,
      npu_isa_pkg::EngSmx,
      npu_isa_pkg::EngNrm,
      npu_isa_pkg::EngVec,
      npu_isa_pkg::EngSt
  };

  logic [NumPorts-1:0] sram_wr_fire;
  logic [NumPorts-1:0][15:0] sram_wr_addr;
  logic [NumPorts-1:0][127:0] sram_wr_data;
  logic [NumPorts-1:0][31:0] sram_wr_instr;

  for (genvar p = 0; p < int'(NumPorts); p++) begin : gen_sram_wr
    localparam npu_isa_pkg::engine_e Writer = Writers[p];
    assign sram_wr_fire[p] = engine[Writer].write_valid && engine[Writer].write_ready;
    assign sram_wr_addr[p] = engine[Writer].write_addr;
    assign sram_wr_data[p] = engine[Writer].write_data;
    if (Writer == npu_isa_pkg::EngSt) begin : gen_store
      assign sram_wr_instr[p] = instrs[Writer][stored_q];
    end else begin : gen_in_order
      assign sram_wr_instr[p] = engine_instr_o[Writer];
    end
  end

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
          if (engine_take[e]) tb_log_trace(cycle_i, TraceTake, e, instrs[e][taken_q[e]], '0);
        end
      end
      if (core.started) tb_log_trace(cycle_i, TraceStart, 0, '0, '0);
      if (irq_i && !irq_q) tb_log_trace(cycle_i, TraceInterrupt, 0, '0, '0);
      if (core.finish) tb_log_trace(cycle_i, TraceFinish, 0, '0, '0);
      if (cmd_start_o) tb_log_trace(cycle_i, TraceCmdStart, 0, '0, '0);
      if (cmd_irq_o && !cmd_irq_q) tb_log_trace(cycle_i, TraceCmdInterrupt, 0, '0, '0);
    end
  end

  // -----------------------------------------------------------------------------------------------
  // Trace: the states of the engines and of the sequencer, whenever one changes
  // -----------------------------------------------------------------------------------------------
  // Functions, so that nothing of this is computed while there is no trace.

  function automatic state_e load_state(engine_trace_t load);
    if (!load.busy) return StateIdle;
    if (!load.write_valid) return StateReadData;
    return load.write_ready ? StateWork : StateWritePort;
  endfunction

  function automatic state_e store_state(engine_trace_t store);
    if (!store.busy) return StateIdle;
    if (store.works) return StateWork;
    if (store.write_valid) return StateWritePort;
    if (store.channel_waits) return StateWriteChannel;
    if (store.read_refused) return StateReadPort;
    return StateResponse;
  endfunction

  // An engine that is busy between its SRAM ports and the parameter stream
  function automatic state_e port_state(engine_trace_t engine);
    if (!engine.busy) return StateIdle;
    if (engine.works) return StateWork;
    if (write_refused(engine)) return StateWritePort;
    if (engine.stream_late) return StateStream;
    if (engine.read_refused) return StateReadPort;
    if (engine.bank_waits) return StateAccumulator;
    if (engine.parameter_waits) return StateParameter;
    return StatePipeline;
  endfunction

  function automatic state_e sequencer_state();
    if (!core.busy || dispatch.ended) return StateIdle;
    if (!dispatch.valid) return StateFetch;
    if (dispatch.fire || !dispatch.resolved) return StateWork;
    if (dispatch.queue_full) return StateQueueFull;
    if (dispatch.word.opcode inside {npu_isa_pkg::OpBarrier, npu_isa_pkg::OpArgmax})
      return StateBarrier;
    if (dispatch.word.opcode == npu_isa_pkg::OpEnd) return StateEnd;
    return StateTicket;
  endfunction

  function automatic state_e state_of(int unsigned e);
    if (e == NumEngines) return sequencer_state();
    if (e == 32'(npu_isa_pkg::EngLd)) return load_state(engine[e]);
    if (e == 32'(npu_isa_pkg::EngSt)) return store_state(engine[e]);
    return port_state(engine[e]);
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
      stream_reads_q <= stream_reads_q + 32'(core.stream_beat);
      writes_q <= writes_q + 32'(tb_top.M_AXI_WVALID && tb_top.wready);
      if (cycle_i % 64'(TraceWindow) == '0) begin
        tb_log_trace(cycle_i, TraceSample, 0, '0, {
                     writes_q, stream_reads_q, reads_q, 4 * stream_fifo_lines});
        reads_q <= 32'(tb_top.rvalid && tb_top.M_AXI_RREADY);
        stream_reads_q <= 32'(core.stream_beat);
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
    tb_pkg::residue_file = {run_dir, "/residue.txt"};
  end

  always @(posedge sync_i) tb_flush();

  for (genvar b = 0; b < int'(NumBanks); b++) begin : gen_sram_copy
    always @(posedge sync_i) begin
      for (int unsigned r = 0; r < BankRows; r++) begin
        automatic logic [15:0] row = 16'(r * NumBanks);
        // The bank of a word is its low bits XOR a fold of the rest, so the fold gives them back.
        tb_sram_store(32'(row) | (32'(npu_sram_pkg::sram_bank(row | 16'(b))) & (NumBanks - 1)),
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
  // Instructions of the coprocessor have names of their own; there is none at 0xFF.
  logic [7:0] cop_offered, cop_running;

  always_ff @(posedge clk_i) begin
    if (dispatch_fire) begin
      opcodes[dispatch_instr[Bits-1:0]] <= dispatch_word[7:0];
      dispatched <= dispatch_word[7:0];
      last_dispatched_o <= dispatch_instr;
    end
  end

  assign cop_offered = (cop.offered && cop.word.legal) ? 8'(cop.word.op) : '1;
  assign cop_running = cop.running ? 8'(cop.op) : '1;

  assign ld = engine_busy_o[0] ? opcodes[engine_instr_o[0][Bits-1:0]] : '0;
  assign st = engine_busy_o[1] ? opcodes[engine_instr_o[1][Bits-1:0]] : '0;
  assign gemm = engine_busy_o[2] ? opcodes[engine_instr_o[2][Bits-1:0]] : '0;
  assign smx = engine_busy_o[3] ? opcodes[engine_instr_o[3][Bits-1:0]] : '0;
  assign nrm = engine_busy_o[4] ? opcodes[engine_instr_o[4][Bits-1:0]] : '0;
  assign vec = engine_busy_o[5] ? opcodes[engine_instr_o[5][Bits-1:0]] : '0;

endmodule
