// SPDX-License-Identifier: Apache-2.0
//
// The bench: the one real top `npu_top` between a player of register accesses, a behavioural memory
// whose bytes Python shares, and passive monitors. The clock lives here, so that Python sleeps while
// the chip runs. Only this module's signals are visible to Python in the fast build.

module tb_top #(
  parameter int unsigned ArrayDim = 16,
  parameter int unsigned SramKiB = 256,
  parameter bit EnableCmd = 1'b1,
  parameter int unsigned CmdScratchBytes = 64,
  parameter bit EnableCop = 1'b1,
  parameter int unsigned CopNumRs = 3,
  parameter int unsigned CopIdWidth = 4,
  parameter int unsigned CopHartIdWidth = 1,
  parameter bit CopIssueRegisterSplit = 1'b0,
  parameter bit NarrowFormats = 1'b1
);
  import tb_pkg::*;

  `include "bench.svh"

  logic knob_log = 1'b1;
  logic knob_trace = 1'b0;  // write down what every engine does or waits for, cycle by cycle
  logic knob_python_memory = 1'b0;  // Python answers on M_AXI_* instead of the memory here

  // -----------------------------------------------------------------------------------------------
  // Memory port: the chip, the memory here (mem_answers), and what Python drives when it is the memory
  // -----------------------------------------------------------------------------------------------
  logic M_AXI_ARVALID;
  logic arready;
  logic [3:0] M_AXI_ARID;
  logic [31:0] M_AXI_ARADDR;
  logic [7:0] M_AXI_ARLEN;
  logic [2:0] arsize;
  logic [1:0] arburst;
  logic rvalid;
  logic M_AXI_RREADY;
  logic [3:0] rid;
  logic [127:0] rdata;
  logic [1:0] rresp;
  logic rlast;
  logic M_AXI_AWVALID;
  logic awready;
  logic [3:0] M_AXI_AWID;
  logic [31:0] M_AXI_AWADDR;
  logic [7:0] M_AXI_AWLEN;
  logic [2:0] awsize;
  logic [1:0] awburst;
  logic M_AXI_WVALID;
  logic wready;
  logic [127:0] M_AXI_WDATA;
  logic [15:0] M_AXI_WSTRB;
  logic M_AXI_WLAST;
  logic bvalid;
  logic M_AXI_BREADY;
  logic [3:0] bid;
  logic [1:0] bresp;

  logic M_AXI_ARREADY = 1'b0;
  logic M_AXI_RVALID = 1'b0;
  logic [3:0] M_AXI_RID = '0;
  logic [127:0] M_AXI_RDATA = '0;
  logic [1:0] M_AXI_RRESP = '0;
  logic M_AXI_RLAST = 1'b0;
  logic M_AXI_AWREADY = 1'b0;
  logic M_AXI_WREADY = 1'b0;
  logic M_AXI_BVALID = 1'b0;
  logic [3:0] M_AXI_BID = '0;
  logic [1:0] M_AXI_BRESP = '0;

  // What Python drives reaches the chip at the rising edge: if it did so at once, the simulator would
  // have to look at all that depends on it each time that Python may have been at work.
  npu_axi_pkg::axi_req_t mem_req;
  npu_axi_pkg::axi_rsp_t mem_answers;
  npu_axi_pkg::axi_rsp_t python_answers = '0;
  logic python_memory = 1'b0;

  always_ff @(posedge clk) begin
    python_memory <= knob_python_memory;
    python_answers.rd <= '{
        arready: M_AXI_ARREADY,
        rvalid: M_AXI_RVALID,
        rid: M_AXI_RID,
        rdata: M_AXI_RDATA,
        rresp: M_AXI_RRESP,
        rlast: M_AXI_RLAST
    };
    python_answers.wr <= '{
        awready: M_AXI_AWREADY,
        wready: M_AXI_WREADY,
        bvalid: M_AXI_BVALID,
        bid: M_AXI_BID,
        bresp: M_AXI_BRESP
    };
  end

  assign axi_rsp = python_memory ? python_answers : mem_answers;
  assign {arready, rvalid, rid, rdata, rresp, rlast} = axi_rsp.rd;
  assign {awready, wready, bvalid, bid, bresp} = axi_rsp.wr;
  assign {M_AXI_ARVALID, M_AXI_ARID, M_AXI_ARADDR, M_AXI_ARLEN, M_AXI_RREADY} = axi_req.rd;
  assign {M_AXI_AWVALID, M_AXI_AWID, M_AXI_AWADDR, M_AXI_AWLEN, M_AXI_WVALID, M_AXI_WDATA,
          M_AXI_WSTRB, M_AXI_WLAST, M_AXI_BREADY} = axi_req.wr;

  always_comb begin
    mem_req = axi_req;
    if (python_memory) {mem_req.rd.arvalid, mem_req.wr.awvalid, mem_req.wr.wvalid} = '0;
  end

  axi_memory u_memory (
    .clk_i        (clk),
    .rst_ni       (rst_n),
    .cycle_i      (cycle),
    .read_knobs_i (read_knobs),
    .write_knobs_i(write_knobs),
    .axi_req_i    (mem_req),
    .axi_rsp_o    (mem_answers)
  );

  // -----------------------------------------------------------------------------------------------
  // The chip
  // -----------------------------------------------------------------------------------------------
  logic [CopNumRs-1:0] register_read;
  logic [CopHartIdWidth-1:0] result_hartid;
  logic [CopIdWidth-1:0] result_id;

  assign x_chip.issue_register_read = XSources'(register_read);
  assign x_chip.result_hartid = XIdBits'(result_hartid);
  assign x_chip.result_id = XIdBits'(result_id);

  npu_top #(
    .ArrayDim(ArrayDim),
    .SramKiB(SramKiB),
    .EnableCmd(EnableCmd),
    .CmdScratchBytes(CmdScratchBytes),
    .EnableCop(EnableCop),
    .CopNumRs(CopNumRs),
    .CopIdWidth(CopIdWidth),
    .CopHartIdWidth(CopHartIdWidth),
    .CopIssueRegisterSplit(CopIssueRegisterSplit),
    .NarrowFormats(NarrowFormats)
  ) dut (
    .clk_i                  (clk),
    .rst_ni                 (rst_n),
    .irq_o                  (irq),
    .x_issue_valid_i        (x_host.issue_valid),
    .x_issue_ready_o        (x_issue_ready),
    .x_issue_instr_i        (x_host.issue_instr),
    .x_issue_hartid_i       (x_host.issue_hartid[CopHartIdWidth-1:0]),
    .x_issue_id_i           (x_host.issue_id[CopIdWidth-1:0]),
    .x_issue_accept_o       (x_chip.issue_accept),
    .x_issue_writeback_o    (x_chip.issue_writeback),
    .x_issue_register_read_o(register_read),
    .x_issue_float_o        (x_chip.issue_float),
    .x_register_valid_i     (x_host.register_valid),
    .x_register_ready_o     (x_chip.register_ready),
    .x_register_hartid_i    (x_host.register_hartid[CopHartIdWidth-1:0]),
    .x_register_id_i        (x_host.register_id[CopIdWidth-1:0]),
    .x_register_rs_i        (x_host.register_rs[CopNumRs-1:0]),
    .x_register_rs_valid_i  (x_host.register_rs_valid[CopNumRs-1:0]),
    .x_commit_valid_i       (x_commit.valid),
    .x_commit_hartid_i      (x_commit.hartid[CopHartIdWidth-1:0]),
    .x_commit_id_i          (x_commit.id[CopIdWidth-1:0]),
    .x_commit_kill_i        (x_commit.kill),
    .x_result_valid_o       (x_chip.result_valid),
    .x_result_ready_i       (x_host.result_ready),
    .x_result_hartid_o      (result_hartid),
    .x_result_id_o          (result_id),
    .x_result_rd_o          (x_chip.result_rd),
    .x_result_we_o          (x_chip.result_we),
    .x_result_data_o        (x_chip.result_data),
    `include "chip_ports.svh"
  );

  // -----------------------------------------------------------------------------------------------
  // Monitors and logs
  // -----------------------------------------------------------------------------------------------
  axi_monitor u_axi_monitor (
    .clk_i    (clk),
    .rst_ni   (rst_n),
    .req_i    (axi_req),
    .rsp_i    (axi_rsp),
    .arsize_i (arsize),
    .arburst_i(arburst),
    .awsize_i (awsize),
    .awburst_i(awburst)
  );

  logic [31:0] axil_handshakes;  // of all channels of the register port since the reset

  axil_monitor u_axil_monitor (
    .clk_i       (clk),
    .rst_ni      (rst_n),
    .req_i       (axil_req),
    .rsp_i       (axil_rsp),
    .handshakes_o(axil_handshakes)
  );

  // What Python reads of the chip's inside: for messages about a program that does not end.
  logic [5:0] engine_busy;
  logic [5:0] engine_stall;
  logic [5:0][31:0] engine_instr;
  logic [31:0] last_dispatched;
  logic barrier_wait;
  logic sync = 1'b0;  // on a rising edge SRAM is copied out and the logs are flushed
  logic residue = 1'b0;  // on a rising edge what all memories hold is written down
  assign tb_pkg::residue = residue;

  logic started;
  logic core_rst_n;
  logic perf_clear;
  logic word_taken;
  logic [5:0] engine_queue;
  logic [5:0] engine_take;
  logic [5:0] engine_done;
  logic [5:0] engine_waits;

  logic cmd_start;
  logic cmd_ring;
  logic cmd_irq;
  logic cmd_soft_reset;

  tb_probe #(
    .ArrayDim (ArrayDim),
    .SramKiB  (SramKiB),
    .EnableCmd(EnableCmd),
    .EnableCop(EnableCop)
  ) u_probe (
    .clk_i            (clk),
    .rst_ni           (rst_n),
    .cycle_i          (cycle),
    .log_i            (knob_log),
    .trace_i          (knob_trace),
    .irq_i            (irq),
    .sync_i           (sync),
    .engine_busy_o    (engine_busy),
    .engine_stall_o   (engine_stall),
    .engine_instr_o   (engine_instr),
    .last_dispatched_o(last_dispatched),
    .barrier_wait_o   (barrier_wait),
    .started_o        (started),
    .core_rst_no      (core_rst_n),
    .perf_clear_o     (perf_clear),
    .word_taken_o     (word_taken),
    .engine_queue_o   (engine_queue),
    .engine_take_o    (engine_take),
    .engine_done_o    (engine_done),
    .engine_waits_o   (engine_waits),
    .cmd_start_o      (cmd_start),
    .cmd_ring_o       (cmd_ring),
    .cmd_irq_o        (cmd_irq),
    .cmd_soft_reset_o (cmd_soft_reset)
  );

  // What the chip's performance counters are held against
  logic [63:0] perf_cycles;
  logic [31:0] perf_instrs;
  logic [31:0] perf_read_beats;
  logic [31:0] perf_write_beats;
  logic [31:0] perf_stream_beats;
  logic [5:0][31:0] perf_busy;
  logic [5:0][31:0] perf_stall;

  perf_monitor u_perf_monitor (
    .clk_i         (clk),
    .rst_ni        (rst_n),
    .start_i       (started),
    .soft_reset_i  (cmd_soft_reset),
    .core_rst_ni   (core_rst_n),
    .clear_i       (perf_clear),
    .req_i         (axi_req),
    .rsp_i         (axi_rsp),
    .word_i        (word_taken),
    .queue_i       (engine_queue),
    .take_i        (engine_take),
    .done_i        (engine_done),
    .waits_i       (engine_waits),
    .cycles_o      (perf_cycles),
    .instrs_o      (perf_instrs),
    .read_beats_o  (perf_read_beats),
    .write_beats_o (perf_write_beats),
    .stream_beats_o(perf_stream_beats),
    .busy_o        (perf_busy),
    .stall_o       (perf_stall)
  );

  // What the command port's own counters are held against
  logic [31:0] cmd_cycles;
  logic [31:0] cmd_ring_cycles;
  logic [31:0] cmd_owed_cycles;
  logic [31:0] cmd_reads;
  logic [31:0] cmd_writes;

  cmd_monitor u_cmd_monitor (
    .clk_i        (clk),
    .rst_ni       (rst_n),
    .start_i      (cmd_start),
    .ring_i       (cmd_ring),
    .irq_i        (cmd_irq),
    .soft_reset_i (cmd_soft_reset),
    .req_i        (axi_req),
    .rsp_i        (axi_rsp),
    .cycles_o     (cmd_cycles),
    .ring_cycles_o(cmd_ring_cycles),
    .owed_cycles_o(cmd_owed_cycles),
    .reads_o      (cmd_reads),
    .writes_o     (cmd_writes)
  );

endmodule
