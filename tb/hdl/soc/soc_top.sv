// SPDX-License-Identifier: Apache-2.0
//
// A computer around the chip: a RISC-V core (CV32E40X or CVA6, each a package of its own), `npu_top`
// as its coprocessor and as a device with registers, one memory for both, and UART, exit register and
// time. The core boots from address 0. Python sets the knobs, releases the reset and sleeps until
// `finished`; what the program prints is in the run's folder (soc_devices).

module soc_top #(
  parameter int unsigned ArrayDim = 16,
  parameter int unsigned SramKiB = 256,
  parameter bit EnableCmd = 1'b1,
  parameter int unsigned CmdScratchBytes = 64,
  parameter bit EnableCop = 1'b1,
  parameter bit NarrowFormats = 1'b1,
  parameter bit Cva6 = 1'b0  // the core: CVA6 in place of CV32E40X
);
  import tb_pkg::*;
  import soc_pkg::*;

  localparam int unsigned CopNumRs = Cva6 ? 2 : 3;

  // -----------------------------------------------------------------------------------------------
  // Clock, reset and time
  // -----------------------------------------------------------------------------------------------
  logic clk = 1'b0;
  logic rst_n = 1'b0;
  logic irq;
  logic [63:0] cycle;  // since the reset

  always #5 clk = ~clk;

  always_ff @(posedge clk or negedge rst_n) begin
    if (!rst_n) cycle <= '0;
    else cycle <= cycle + 64'd1;
  end

  initial begin
    string run_dir;
    if (!$value$plusargs("run_dir=%s", run_dir)) $fatal(1, "+run_dir=<folder> is missing");
    tb_open(run_dir, SramKiB * 1024);
  end

  // -----------------------------------------------------------------------------------------------
  // Knobs, set by Python
  // -----------------------------------------------------------------------------------------------
  logic [15:0] knob_latency = 16'd40;  // of the memory at the chip's port, in cycles
  logic [6:0] knob_memory_gap = '0;  // percent of the cycles in which it does not answer
  logic [6:0] knob_core_gap = '0;  // the same at both buses of the core
  logic [31:0] knob_seed = 32'd1;
  logic [63:0] knob_limit = '1;  // cycles after which the run is over

  memory_knobs_t memory_knobs;

  always_comb begin
    memory_knobs = '0;
    memory_knobs.latency = knob_latency;
    memory_knobs.gap_percent = knob_memory_gap;
    memory_knobs.address_stall_percent = knob_memory_gap;
    memory_knobs.data_stall_percent = knob_memory_gap;
    memory_knobs.interleave = knob_memory_gap != '0;
    memory_knobs.silent_last = '1;
    memory_knobs.seed = knob_seed;
  end

  // -----------------------------------------------------------------------------------------------
  // What Python looks at when the run is over
  // -----------------------------------------------------------------------------------------------
  logic exited;
  logic [31:0] exit_code;
  logic finished;  // by the program or by the limit
  logic sleeping;  // the core, in wfi
  logic [31:0] pc;  // about where it is
  logic [63:0] start_cycle;  // of the last register write that started a program of the chip

  always_ff @(posedge clk or negedge rst_n) begin
    if (!rst_n) finished <= 1'b0;
    else finished <= exited || cycle >= knob_limit;
  end

  // -----------------------------------------------------------------------------------------------
  // The core
  // -----------------------------------------------------------------------------------------------
  logic device_valid, chip_valid, chip_done;
  access_t device_access, chip_access;
  answer_t device_answer, chip_answer;
  soc_x_if #(.NumRs(CopNumRs)) x ();

  // Both have the same ports
  `define CORE(MODULE) \
    MODULE u_core ( \
      .clk_i          (clk), \
      .rst_ni         (rst_n), \
      .gap_percent_i  (knob_core_gap), \
      .seed_i         (knob_seed), \
      .irq_i          (irq), \
      .sleeping_o     (sleeping), \
      .pc_o           (pc), \
      .device_valid_o (device_valid), \
      .device_access_o(device_access), \
      .device_answer_i(device_answer), \
      .chip_valid_o   (chip_valid), \
      .chip_access_o  (chip_access), \
      .chip_done_i    (chip_done), \
      .chip_answer_i  (chip_answer), \
      .x \
    );

  if (Cva6) begin : gen_cva6
    `CORE(soc_cva6)
  end else begin : gen_cv32e40x
    `CORE(soc_cv32e40x)
  end

  soc_devices u_devices (
    .clk_i      (clk),
    .rst_ni     (rst_n),
    .cycle_i    (cycle),
    .valid_i    (device_valid),
    .access_i   (device_access),
    .answer_o   (device_answer),
    .exited_o   (exited),
    .exit_code_o(exit_code)
  );

  // -----------------------------------------------------------------------------------------------
  // The chip's registers
  // -----------------------------------------------------------------------------------------------
  npu_axi_pkg::axil_req_t axil_req;
  npu_axi_pkg::axil_rsp_t axil_rsp;

  soc_chip_bus u_chip_bus (
    .clk_i   (clk),
    .rst_ni  (rst_n),
    .valid_i (chip_valid),
    .access_i(chip_access),
    .done_o  (chip_done),
    .answer_o(chip_answer),
    .req_o   (axil_req),
    .rsp_i   (axil_rsp)
  );

  always_ff @(posedge clk or negedge rst_n) begin
    if (!rst_n) start_cycle <= '0;
    else if (chip_valid && chip_access.we && chip_access.address[11:0] == SeqCtrl &&
             chip_access.wdata[0] && axil_req.awvalid && axil_rsp.awready)
      start_cycle <= cycle;
  end

  // -----------------------------------------------------------------------------------------------
  // The chip and its memory
  // -----------------------------------------------------------------------------------------------
  npu_axi_pkg::axi_req_t axi_req;
  npu_axi_pkg::axi_rsp_t axi_rsp;
  logic [2:0] arsize, awsize;
  logic [1:0] arburst, awburst;

  npu_top #(
    .ArrayDim       (ArrayDim),
    .SramKiB        (SramKiB),
    .EnableCmd      (EnableCmd),
    .CmdScratchBytes(CmdScratchBytes),
    .EnableCop      (EnableCop),
    .NarrowFormats  (NarrowFormats),
    .CopNumRs       (CopNumRs)
  ) dut (
    .clk_i                  (clk),
    .rst_ni                 (rst_n),
    .irq_o                  (irq),
    .x_issue_valid_i        (x.issue_valid),
    .x_issue_ready_o        (x.issue_ready),
    .x_issue_instr_i        (x.issue_instr),
    .x_issue_hartid_i       (1'b0),
    .x_issue_id_i           (x.issue_id),
    .x_issue_accept_o       (x.issue_accept),
    .x_issue_writeback_o    (x.issue_writeback),
    .x_issue_register_read_o(),
    .x_issue_float_o        (),
    .x_register_valid_i     (x.register_valid),
    .x_register_ready_o     (),
    .x_register_hartid_i    (1'b0),
    .x_register_id_i        (x.register_id),
    .x_register_rs_i        (x.register_rs),
    .x_register_rs_valid_i  (x.register_rs_valid),
    .x_commit_valid_i       (x.commit_valid),
    .x_commit_hartid_i      (1'b0),
    .x_commit_id_i          (x.commit_id),
    .x_commit_kill_i        (x.commit_kill),
    .x_result_valid_o       (x.result_valid),
    .x_result_ready_i       (x.result_ready),
    .x_result_hartid_o      (),
    .x_result_id_o          (x.result_id),
    .x_result_rd_o          (x.result_rd),
    .x_result_we_o          (x.result_we),
    .x_result_data_o        (x.result_data),
    `include "chip_ports.svh"
  );

  axi_memory u_memory (
    .clk_i        (clk),
    .rst_ni       (rst_n),
    .cycle_i      (cycle),
    .read_knobs_i (memory_knobs),
    .write_knobs_i(memory_knobs),
    .axi_req_i    (axi_req),
    .axi_rsp_o    (axi_rsp)
  );

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

  axil_monitor u_axil_monitor (
    .clk_i       (clk),
    .rst_ni      (rst_n),
    .req_i       (axil_req),
    .rsp_i       (axil_rsp),
    .handshakes_o()
  );

endmodule
