// SPDX-License-Identifier: Apache-2.0
//
// Bench of the coprocessor: its port played by the agent, its window and the settings of the memory
// behind the chip's own register port, its bus at the behavioural memory. Signals that Python sees are
// called as those of tb_top, so that what drives and compares the coprocessor there does so here.

module unit_cop #(
  parameter int unsigned CopNumRs = 3,
  parameter int unsigned CopIdWidth = 4,
  parameter int unsigned CopHartIdWidth = 1,
  parameter bit CopIssueRegisterSplit = 1'b0
);
  import tb_pkg::*;

  // -----------------------------------------------------------------------------------------------
  // Clock, reset and time
  // -----------------------------------------------------------------------------------------------
  logic clk = 1'b0;
  logic rst_n = 1'b0;
  logic irq;
  logic [63:0] cycle = '0;

  string run_dir;

  initial begin
    if (!$value$plusargs("run_dir=%s", run_dir)) $fatal(1, "+run_dir is missing");
    tb_open(run_dir, 256 * 1024);
  end

  always #5 clk = ~clk;

  always_ff @(posedge clk) cycle <= cycle + 64'd1;

  // -----------------------------------------------------------------------------------------------
  // Knobs, set by Python
  // -----------------------------------------------------------------------------------------------
  logic [15:0] knob_read_latency = 16'd40;
  logic [15:0] knob_write_latency = 16'd40;
  logic [15:0] knob_read_spread = '0;
  logic [15:0] knob_write_spread = '0;
  logic [6:0] knob_read_gap = '0;
  logic [6:0] knob_write_gap = '0;
  logic [6:0] knob_ar_stall = '0;
  logic [6:0] knob_aw_stall = '0;
  logic [6:0] knob_w_stall = '0;
  logic [6:0] knob_host_stall = '0;
  logic knob_interleave = 1'b0;
  logic knob_read_silent = 1'b0;
  logic knob_write_silent = 1'b0;
  logic knob_read_error = 1'b0;
  logic knob_write_error = 1'b0;
  logic [31:0] knob_error_first = '0;
  logic [31:0] knob_error_last = '0;
  logic [31:0] knob_silent_first = '0;
  logic [31:0] knob_silent_last = '1;
  logic [31:0] knob_seed = 32'd1;
  logic knob_log = 1'b0;  // nothing to write down here
  logic knob_trace = 1'b0;
  logic [31:0] knob_stream_first = '0;  // bytes that must not be written
  logic [31:0] knob_stream_bytes = '0;

  memory_knobs_t read_knobs;
  memory_knobs_t write_knobs;

  assign read_knobs = '{
          latency: knob_read_latency,
          spread: knob_read_spread,
          gap_percent: knob_read_gap,
          address_stall_percent: knob_ar_stall,
          data_stall_percent: '0,
          interleave: knob_interleave,
          silent: knob_read_silent,
          silent_first: knob_silent_first,
          silent_last: knob_silent_last,
          error_enable: knob_read_error,
          error_first: knob_error_first,
          error_last: knob_error_last,
          seed: knob_seed
      };
  assign write_knobs = '{
          latency: knob_write_latency,
          spread: knob_write_spread,
          gap_percent: knob_write_gap,
          address_stall_percent: knob_aw_stall,
          data_stall_percent: knob_w_stall,
          interleave: 1'b0,
          silent: knob_write_silent,
          silent_first: knob_silent_first,
          silent_last: knob_silent_last,
          error_enable: knob_write_error,
          error_first: knob_error_first,
          error_last: knob_error_last,
          seed: knob_seed
      };

  // -----------------------------------------------------------------------------------------------
  // Register port: Python leaves a list of accesses and has it played
  // -----------------------------------------------------------------------------------------------
  logic access_play = 1'b0;
  logic [15:0] access_count = '0;
  logic access_played;
  logic [15:0] access_index;

  npu_axi_pkg::axil_req_t axil_req;
  npu_axi_pkg::axil_rsp_t axil_rsp;

  register_player u_register_player (
    .clk_i          (clk),
    .rst_ni         (rst_n),
    .stall_percent_i(knob_host_stall),
    .seed_i         (knob_seed),
    .play_i         (access_play),
    .count_i        (access_count),
    .played_o       (access_played),
    .index_o        (access_index),
    .req_o          (axil_req),
    .rsp_i          (axil_rsp)
  );

  // -----------------------------------------------------------------------------------------------
  // Coprocessor port: Python leaves a list of instructions and has it played
  // -----------------------------------------------------------------------------------------------
  logic cop_play = 1'b0;
  logic [15:0] cop_count = '0;
  logic cop_played;
  logic [15:0] cop_index;

  x_host_t x_host;
  x_commit_t x_commit;
  x_chip_t x_chip;
  logic x_issue_ready;  // of x_chip

  assign x_chip.issue_ready = x_issue_ready;

  cop_agent #(
    .IdWidth(CopIdWidth),
    .HartIdWidth(CopHartIdWidth),
    .Split(CopIssueRegisterSplit)
  ) u_cop_agent (
    .clk_i        (clk),
    .rst_ni       (rst_n),
    .cycle_i      (cycle[31:0]),
    .play_i       (cop_play),
    .count_i      (cop_count),
    .played_o     (cop_played),
    .index_o      (cop_index),
    .host_o       (x_host),
    .commit_o     (x_commit),
    .chip_i       (x_chip),
    .issue_ready_i(x_issue_ready)
  );

  // -----------------------------------------------------------------------------------------------
  // The host's registers, and the coprocessor
  // -----------------------------------------------------------------------------------------------
  npu_host_pkg::window_req_t window_req;
  npu_host_pkg::window_rsp_t window_rsp;
  npu_host_pkg::control_t control;
  npu_mem_pkg::mem_settings_t settings;
  npu_stream_pkg::stream_range_t stream;
  logic fault;

  npu_host u_host (
    .clk_i         (clk),
    .rst_ni        (rst_n),
    .axil_req_i    (axil_req),
    .axil_rsp_o    (axil_rsp),
    .irq_o         (irq),
    .cmd_req_o     (),
    .cmd_rsp_i     ('{ack: 1'b1, default: '0}),
    .cmd_irq_i     (1'b0),
    .cop_req_o     (window_req),
    .cop_rsp_i     (window_rsp),
    .cop_irq_i     (fault),
    .control_o     (control),
    .start_state_o (),
    .stream_limit_o(),
    .memory_o      (settings),
    .status_i      ('0),
    .generated_i   ('0),
    .events_i      ('0)
  );

  npu_cop_pkg::x_req_t x_req;
  npu_cop_pkg::x_rsp_t x_rsp;
  npu_cop_pkg::x_result_t x_result;
  npu_axi_pkg::axi_req_t cop_axi_req, axi_req;
  npu_axi_pkg::axi_rsp_t cop_axi_rsp, axi_rsp;

  assign stream = '{base: knob_stream_first, length: knob_stream_bytes};
  assign x_req = '{
          issue: '{
              valid: x_host.issue_valid,
              instr: x_host.issue_instr,
              hartid: x_host.issue_hartid,
              id: x_host.issue_id
          },
          operands: '{
              valid: x_host.register_valid,
              hartid: x_host.register_hartid,
              id: x_host.register_id,
              rs: x_host.register_rs,
              rs_valid: x_host.register_rs_valid
          },
          result_ready: x_host.result_ready
      };
  assign x_issue_ready = x_rsp.issue.ready;
  assign x_chip.issue_accept = x_rsp.issue.accept;
  assign x_chip.issue_writeback = x_rsp.issue.writeback;
  assign x_chip.issue_register_read = x_rsp.issue.register_read;
  assign x_chip.issue_float = x_rsp.issue.is_float;
  assign x_chip.register_ready = x_rsp.operands_ready;
  assign x_chip.result_valid = x_result.valid;
  assign x_chip.result_hartid = x_result.hartid;
  assign x_chip.result_id = x_result.id;
  assign x_chip.result_rd = x_result.rd;
  assign x_chip.result_we = x_result.we;
  assign x_chip.result_data = x_result.data;

  npu_cop #(
    .NumRs(CopNumRs),
    .IdWidth(CopIdWidth),
    .HartIdWidth(CopHartIdWidth),
    .Split(CopIssueRegisterSplit)
  ) u_cop (
    .clk_i       (clk),
    .rst_ni      (rst_n),
    .x_req_i     (x_req),
    .x_commit_i  (x_commit),
    .x_rsp_o     (x_rsp),
    .x_result_o  (x_result),
    .req_i       (window_req),
    .rsp_o       (window_rsp),
    .irq_o       (fault),
    .soft_reset_i(control.soft_reset),
    .settings_i  (settings),
    .stream_i    (stream),
    .axi_req_o   (cop_axi_req),
    .axi_rsp_i   (cop_axi_rsp)
  );

  // Gives the coprocessor its IDs, and the memory no data before their address.
  npu_axi_mux u_mux (
    .clk_i     (clk),
    .rst_ni    (rst_n),
    .core_req_i('0),
    .core_rsp_o(),
    .cmd_req_i ('0),
    .cmd_rsp_o (),
    .cop_req_i (cop_axi_req),
    .cop_rsp_o (cop_axi_rsp),
    .bus_req_o (axi_req),
    .bus_rsp_i (axi_rsp)
  );

  // -----------------------------------------------------------------------------------------------
  // Memory, and what the coprocessor's counters are held against
  // -----------------------------------------------------------------------------------------------
  axi_memory u_memory (
    .clk_i        (clk),
    .rst_ni       (rst_n),
    .cycle_i      (cycle),
    .read_knobs_i (read_knobs),
    .write_knobs_i(write_knobs),
    .axi_req_i    (axi_req),
    .axi_rsp_o    (axi_rsp)
  );

  logic [31:0] cop_instrs;
  logic [31:0] cop_cycles;
  logic [31:0] cop_reads;
  logic [31:0] cop_writes;
  logic [ 7:0] cop_open;
  logic [ 7:0] cop_owed;

  cop_monitor #(
    .IdWidth(CopIdWidth),
    .Split  (CopIssueRegisterSplit)
  ) u_cop_monitor (
    .clk_i   (clk),
    .rst_ni  (rst_n),
    .host_i  (x_host),
    .commit_i(x_commit),
    .chip_i  (x_chip),
    .idle_i  (cop_play == cop_played),
    .silent_i(knob_read_silent || knob_write_silent),
    .req_i   (axi_req),
    .rsp_i   (axi_rsp),
    .instrs_o(cop_instrs),
    .cycles_o(cop_cycles),
    .reads_o (cop_reads),
    .writes_o(cop_writes),
    .open_o  (cop_open),
    .owed_o  (cop_owed)
  );

endmodule
