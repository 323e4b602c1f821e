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
  logic x_issue_valid, x_issue_ready, x_issue_accept, x_issue_writeback;
  logic [31:0] x_issue_instr;
  logic [3:0] x_issue_id, x_register_id, x_commit_id, x_result_id;
  logic x_register_valid;
  logic [CopNumRs-1:0][31:0] x_register_rs;
  logic [CopNumRs-1:0] x_register_rs_valid;
  logic x_commit_valid, x_commit_kill;
  logic x_result_valid, x_result_ready, x_result_we;
  logic [ 4:0] x_result_rd;
  logic [31:0] x_result_data;

  if (Cva6) begin : gen_cva6
    soc_cva6 u_core (
      .clk_i                (clk),
      .rst_ni               (rst_n),
      .gap_percent_i        (knob_core_gap),
      .seed_i               (knob_seed),
      .irq_i                (irq),
      .sleeping_o           (sleeping),
      .pc_o                 (pc),
      .device_valid_o       (device_valid),
      .device_access_o      (device_access),
      .device_answer_i      (device_answer),
      .chip_valid_o         (chip_valid),
      .chip_access_o        (chip_access),
      .chip_done_i          (chip_done),
      .chip_answer_i        (chip_answer),
      .x_issue_valid_o      (x_issue_valid),
      .x_issue_ready_i      (x_issue_ready),
      .x_issue_instr_o      (x_issue_instr),
      .x_issue_id_o         (x_issue_id),
      .x_issue_accept_i     (x_issue_accept),
      .x_issue_writeback_i  (x_issue_writeback),
      .x_register_valid_o   (x_register_valid),
      .x_register_id_o      (x_register_id),
      .x_register_rs_o      (x_register_rs),
      .x_register_rs_valid_o(x_register_rs_valid),
      .x_commit_valid_o     (x_commit_valid),
      .x_commit_id_o        (x_commit_id),
      .x_commit_kill_o      (x_commit_kill),
      .x_result_valid_i     (x_result_valid),
      .x_result_ready_o     (x_result_ready),
      .x_result_id_i        (x_result_id),
      .x_result_rd_i        (x_result_rd),
      .x_result_we_i        (x_result_we),
      .x_result_data_i      (x_result_data)
    );
  end else begin : gen_cv32e40x
    soc_cv32e40x u_core (
      .clk_i                (clk),
      .rst_ni               (rst_n),
      .gap_percent_i        (knob_core_gap),
      .seed_i               (knob_seed),
      .irq_i                (irq),
      .sleeping_o           (sleeping),
      .pc_o                 (pc),
      .device_valid_o       (device_valid),
      .device_access_o      (device_access),
      .device_answer_i      (device_answer),
      .chip_valid_o         (chip_valid),
      .chip_access_o        (chip_access),
      .chip_done_i          (chip_done),
      .chip_answer_i        (chip_answer),
      .x_issue_valid_o      (x_issue_valid),
      .x_issue_ready_i      (x_issue_ready),
      .x_issue_instr_o      (x_issue_instr),
      .x_issue_id_o         (x_issue_id),
      .x_issue_accept_i     (x_issue_accept),
      .x_issue_writeback_i  (x_issue_writeback),
      .x_register_valid_o   (x_register_valid),
      .x_register_id_o      (x_register_id),
      .x_register_rs_o      (x_register_rs),
      .x_register_rs_valid_o(x_register_rs_valid),
      .x_commit_valid_o     (x_commit_valid),
      .x_commit_id_o        (x_commit_id),
      .x_commit_kill_o      (x_commit_kill),
      .x_result_valid_i     (x_result_valid),
      .x_result_ready_o     (x_result_ready),
      .x_result_id_i        (x_result_id),
      .x_result_rd_i        (x_result_rd),
      .x_result_we_i        (x_result_we),
      .x_result_data_i      (x_result_data)
    );
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
  logic axil_awvalid, axil_awready, axil_wvalid, axil_wready, axil_bvalid, axil_bready;
  logic axil_arvalid, axil_arready, axil_rvalid, axil_rready;
  logic [11:0] axil_awaddr, axil_araddr;
  logic [31:0] axil_wdata, axil_rdata;
  logic [3:0] axil_wstrb;
  logic [1:0] axil_bresp, axil_rresp;

  soc_chip_bus u_chip_bus (
    .clk_i    (clk),
    .rst_ni   (rst_n),
    .valid_i  (chip_valid),
    .access_i (chip_access),
    .done_o   (chip_done),
    .answer_o (chip_answer),
    .awvalid_o(axil_awvalid),
    .awready_i(axil_awready),
    .awaddr_o (axil_awaddr),
    .wvalid_o (axil_wvalid),
    .wready_i (axil_wready),
    .wdata_o  (axil_wdata),
    .wstrb_o  (axil_wstrb),
    .bvalid_i (axil_bvalid),
    .bready_o (axil_bready),
    .bresp_i  (axil_bresp),
    .arvalid_o(axil_arvalid),
    .arready_i(axil_arready),
    .araddr_o (axil_araddr),
    .rvalid_i (axil_rvalid),
    .rready_o (axil_rready),
    .rdata_i  (axil_rdata),
    .rresp_i  (axil_rresp)
  );

  always_ff @(posedge clk or negedge rst_n) begin
    if (!rst_n) start_cycle <= '0;
    else if (chip_valid && chip_access.we && chip_access.address[11:0] == SeqCtrl &&
             chip_access.wdata[0] && axil_awvalid && axil_awready)
      start_cycle <= cycle;
  end

  // -----------------------------------------------------------------------------------------------
  // The chip and its memory
  // -----------------------------------------------------------------------------------------------
  logic arvalid, arready, rvalid, rready, rlast, awvalid, awready, wvalid, wready, wlast;
  logic bvalid, bready;
  logic [3:0] arid, rid, awid, bid;
  logic [31:0] araddr, awaddr;
  logic [7:0] arlen, awlen;
  logic [2:0] arsize, awsize;
  logic [1:0] arburst, awburst, rresp, bresp;
  logic [127:0] rdata, wdata;
  logic [15:0] wstrb;

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
    .x_issue_valid_i        (x_issue_valid),
    .x_issue_ready_o        (x_issue_ready),
    .x_issue_instr_i        (x_issue_instr),
    .x_issue_hartid_i       (1'b0),
    .x_issue_id_i           (x_issue_id),
    .x_issue_accept_o       (x_issue_accept),
    .x_issue_writeback_o    (x_issue_writeback),
    .x_issue_register_read_o(),
    .x_issue_float_o        (),
    .x_register_valid_i     (x_register_valid),
    .x_register_ready_o     (),
    .x_register_hartid_i    (1'b0),
    .x_register_id_i        (x_register_id),
    .x_register_rs_i        (x_register_rs),
    .x_register_rs_valid_i  (x_register_rs_valid),
    .x_commit_valid_i       (x_commit_valid),
    .x_commit_hartid_i      (1'b0),
    .x_commit_id_i          (x_commit_id),
    .x_commit_kill_i        (x_commit_kill),
    .x_result_valid_o       (x_result_valid),
    .x_result_ready_i       (x_result_ready),
    .x_result_hartid_o      (),
    .x_result_id_o          (x_result_id),
    .x_result_rd_o          (x_result_rd),
    .x_result_we_o          (x_result_we),
    .x_result_data_o        (x_result_data),
    .s_axil_awvalid_i       (axil_awvalid),
    .s_axil_awready_o       (axil_awready),
    .s_axil_awaddr_i        (axil_awaddr),
    .s_axil_wvalid_i        (axil_wvalid),
    .s_axil_wready_o        (axil_wready),
    .s_axil_wdata_i         (axil_wdata),
    .s_axil_wstrb_i         (axil_wstrb),
    .s_axil_bvalid_o        (axil_bvalid),
    .s_axil_bready_i        (axil_bready),
    .s_axil_bresp_o         (axil_bresp),
    .s_axil_arvalid_i       (axil_arvalid),
    .s_axil_arready_o       (axil_arready),
    .s_axil_araddr_i        (axil_araddr),
    .s_axil_rvalid_o        (axil_rvalid),
    .s_axil_rready_i        (axil_rready),
    .s_axil_rdata_o         (axil_rdata),
    .s_axil_rresp_o         (axil_rresp),
    .m_axi_arvalid_o        (arvalid),
    .m_axi_arready_i        (arready),
    .m_axi_arid_o           (arid),
    .m_axi_araddr_o         (araddr),
    .m_axi_arlen_o          (arlen),
    .m_axi_arsize_o         (arsize),
    .m_axi_arburst_o        (arburst),
    .m_axi_rvalid_i         (rvalid),
    .m_axi_rready_o         (rready),
    .m_axi_rid_i            (rid),
    .m_axi_rdata_i          (rdata),
    .m_axi_rresp_i          (rresp),
    .m_axi_rlast_i          (rlast),
    .m_axi_awvalid_o        (awvalid),
    .m_axi_awready_i        (awready),
    .m_axi_awid_o           (awid),
    .m_axi_awaddr_o         (awaddr),
    .m_axi_awlen_o          (awlen),
    .m_axi_awsize_o         (awsize),
    .m_axi_awburst_o        (awburst),
    .m_axi_wvalid_o         (wvalid),
    .m_axi_wready_i         (wready),
    .m_axi_wdata_o          (wdata),
    .m_axi_wstrb_o          (wstrb),
    .m_axi_wlast_o          (wlast),
    .m_axi_bvalid_i         (bvalid),
    .m_axi_bready_o         (bready),
    .m_axi_bid_i            (bid),
    .m_axi_bresp_i          (bresp)
  );

  axi_memory u_memory (
    .clk_i        (clk),
    .rst_ni       (rst_n),
    .cycle_i      (cycle),
    .read_knobs_i (memory_knobs),
    .write_knobs_i(memory_knobs),
    .arvalid_i    (arvalid),
    .arready_o    (arready),
    .arid_i       (arid),
    .araddr_i     (araddr),
    .arlen_i      (arlen),
    .rvalid_o     (rvalid),
    .rready_i     (rready),
    .rid_o        (rid),
    .rdata_o      (rdata),
    .rresp_o      (rresp),
    .rlast_o      (rlast),
    .awvalid_i    (awvalid),
    .awready_o    (awready),
    .awid_i       (awid),
    .awaddr_i     (awaddr),
    .wvalid_i     (wvalid),
    .wready_o     (wready),
    .wdata_i      (wdata),
    .wstrb_i      (wstrb),
    .wlast_i      (wlast),
    .bvalid_o     (bvalid),
    .bready_i     (bready),
    .bid_o        (bid),
    .bresp_o      (bresp)
  );

  axi_monitor u_axi_monitor (
    .clk_i    (clk),
    .rst_ni   (rst_n),
    .arvalid_i(arvalid),
    .arready_i(arready),
    .arid_i   (arid),
    .araddr_i (araddr),
    .arlen_i  (arlen),
    .arsize_i (arsize),
    .arburst_i(arburst),
    .rvalid_i (rvalid),
    .rready_i (rready),
    .rid_i    (rid),
    .rdata_i  (rdata),
    .rresp_i  (rresp),
    .rlast_i  (rlast),
    .awvalid_i(awvalid),
    .awready_i(awready),
    .awid_i   (awid),
    .awaddr_i (awaddr),
    .awlen_i  (awlen),
    .awsize_i (awsize),
    .awburst_i(awburst),
    .wvalid_i (wvalid),
    .wready_i (wready),
    .wdata_i  (wdata),
    .wstrb_i  (wstrb),
    .wlast_i  (wlast),
    .bvalid_i (bvalid),
    .bready_i (bready),
    .bid_i    (bid),
    .bresp_i  (bresp)
  );

  axil_monitor u_axil_monitor (
    .clk_i       (clk),
    .rst_ni      (rst_n),
    .awvalid_i   (axil_awvalid),
    .awready_i   (axil_awready),
    .awaddr_i    (axil_awaddr),
    .wvalid_i    (axil_wvalid),
    .wready_i    (axil_wready),
    .wdata_i     (axil_wdata),
    .wstrb_i     (axil_wstrb),
    .bvalid_i    (axil_bvalid),
    .bready_i    (axil_bready),
    .bresp_i     (axil_bresp),
    .arvalid_i   (axil_arvalid),
    .arready_i   (axil_arready),
    .araddr_i    (axil_araddr),
    .rvalid_i    (axil_rvalid),
    .rready_i    (axil_rready),
    .rdata_i     (axil_rdata),
    .rresp_i     (axil_rresp),
    .handshakes_o()
  );

endmodule
