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

  `include "bench.svh"

  logic knob_log = 1'b0;  // nothing to write down here
  logic knob_trace = 1'b0;
  logic [31:0] knob_stream_first = '0;  // bytes that must not be written
  logic [31:0] knob_stream_bytes = '0;

  string run_dir;

  initial begin
    if (!$value$plusargs("run_dir=%s", run_dir)) $fatal(1, "+run_dir is missing");
    tb_open(run_dir, 256 * 1024);
  end

  // -----------------------------------------------------------------------------------------------
  // The host's registers, and the coprocessor
  // -----------------------------------------------------------------------------------------------
  npu_host_pkg::window_req_t window_req;
  npu_host_pkg::window_rsp_t window_rsp;
  npu_host_pkg::window_req_t cmd_req;
  npu_host_pkg::window_rsp_t cmd_rsp;
  npu_host_pkg::control_t control;
  npu_mem_pkg::mem_settings_t settings;
  npu_stream_pkg::stream_range_t stream;
  logic fault;

  // There is no command port.
  assign cmd_rsp = '{ack: cmd_req.valid, rdata: '0};

  npu_host u_host (
    .clk_i         (clk),
    .rst_ni        (rst_n),
    .axil_req_i    (axil_req),
    .axil_rsp_o    (axil_rsp),
    .irq_o         (irq),
    .cmd_req_o     (cmd_req),
    .cmd_rsp_i     (cmd_rsp),
    .cmd_irq_i     (1'b0),
    .cop_req_o     (window_req),
    .cop_rsp_i     (window_rsp),
    .cop_irq_i     (fault),
    .control_o     (control),
    .start_state_o (),
    .start_value_o (),
    .stream_limit_o(),
    .memory_o      (settings),
    .status_i      ('0),
    .generated_i   ('0),
    .events_i      ('0)
  );

  npu_cop_pkg::x_req_t x_req;
  npu_cop_pkg::x_rsp_t x_rsp;
  npu_cop_pkg::x_result_t x_result;
  npu_axi_pkg::axi_req_t cop_axi_req;
  npu_axi_pkg::axi_rsp_t cop_axi_rsp;

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
  // Memory
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

endmodule
