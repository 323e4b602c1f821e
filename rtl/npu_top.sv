// SPDX-License-Identifier: Apache-2.0
//
// Tessera: a transformer NPU. The host programs it over AXI4-Lite and is woken by an interrupt; the
// chip fetches its program, parameters and data over one AXI4 master port and writes results back.

module npu_top
  import npu_pkg::*;
#(
  parameter int unsigned ArrayDim = 16,  // rows and columns of the systolic array
  parameter int unsigned SramKiB = 256,
  parameter int unsigned AccRows = 128,  // rows of an accumulator bank
  parameter int unsigned FifoKiB = 32,  // parameter stream FIFO
  parameter int unsigned NormMax = 8192,  // longest row of a norm
  parameter bit EnableCmd = 1'b1,  // the command port
  parameter int unsigned CmdScratchBytes = 64  // its scratchpad: 64, 128 or 256
) (
  input  logic clk_i,
  input  logic rst_ni,
  output logic irq_o,

  // Host: AXI4-Lite slave
  input  logic        s_axil_awvalid_i,
  output logic        s_axil_awready_o,
  input  logic [11:0] s_axil_awaddr_i,
  input  logic        s_axil_wvalid_i,
  output logic        s_axil_wready_o,
  input  logic [31:0] s_axil_wdata_i,
  input  logic [ 3:0] s_axil_wstrb_i,
  output logic        s_axil_bvalid_o,
  input  logic        s_axil_bready_i,
  output logic [ 1:0] s_axil_bresp_o,
  input  logic        s_axil_arvalid_i,
  output logic        s_axil_arready_o,
  input  logic [11:0] s_axil_araddr_i,
  output logic        s_axil_rvalid_o,
  input  logic        s_axil_rready_i,
  output logic [31:0] s_axil_rdata_o,
  output logic [ 1:0] s_axil_rresp_o,

  // Memory: AXI4 master, INCR bursts of 16-byte beats
  output logic         m_axi_arvalid_o,
  input  logic         m_axi_arready_i,
  output logic [  3:0] m_axi_arid_o,
  output logic [ 31:0] m_axi_araddr_o,
  output logic [  7:0] m_axi_arlen_o,
  output logic [  2:0] m_axi_arsize_o,
  output logic [  1:0] m_axi_arburst_o,
  input  logic         m_axi_rvalid_i,
  output logic         m_axi_rready_o,
  input  logic [  3:0] m_axi_rid_i,
  input  logic [127:0] m_axi_rdata_i,
  input  logic [  1:0] m_axi_rresp_i,
  input  logic         m_axi_rlast_i,
  output logic         m_axi_awvalid_o,
  input  logic         m_axi_awready_i,
  output logic [  3:0] m_axi_awid_o,
  output logic [ 31:0] m_axi_awaddr_o,
  output logic [  7:0] m_axi_awlen_o,
  output logic [  2:0] m_axi_awsize_o,
  output logic [  1:0] m_axi_awburst_o,
  output logic         m_axi_wvalid_o,
  input  logic         m_axi_wready_i,
  output logic [127:0] m_axi_wdata_o,
  output logic [ 15:0] m_axi_wstrb_o,
  output logic         m_axi_wlast_o,
  input  logic         m_axi_bvalid_i,
  output logic         m_axi_bready_o,
  input  logic [  3:0] m_axi_bid_i,
  input  logic [  1:0] m_axi_bresp_i
);

  localparam logic [2:0] SizeWord = 3'd4;
  localparam logic [1:0] BurstIncr = 2'b01;

  logic start, abort, soft_reset, started, busy, done, finish, failed;
  mem_addr_t ucode_base, stream_base;
  logic [31:0] ucode_length, stream_length;
  logic [4:0] stream_limit;
  logic [23:0] timeout;
  machine_t start_regs;
  generated_t generated;
  region_t regions[NumRegions];
  fault_t error;
  logic [11:0] macs;
  logic instr, stream_beat;
  logic [NumEngines-1:0] engine_busy, engine_stall;

  // Memory: of the core, of the chip
  npu_axi_pkg::axi_req_t core_req, bus_req;
  npu_axi_pkg::axi_rsp_t core_rsp, bus_rsp;

  // Command port
  logic cmd_req, cmd_write, cmd_ack, cmd_irq;
  logic [7:0] cmd_addr;
  logic [31:0] cmd_wdata, cmd_wmask, cmd_rdata;
  logic launch_valid, launch_ready, launch_end;
  npu_cmd_pkg::launch_t        launch;
  mem_addr_t                   used_base;
  logic                 [31:0] used_length;

  npu_host #(
    .ArrayDim(ArrayDim),
    .SramKiB (SramKiB),
    .AccRows (AccRows),
    .FifoKiB (FifoKiB),
    .NormMax (NormMax)
  ) u_host (
    .clk_i,
    .rst_ni,
    .s_axil_awvalid_i,
    .s_axil_awready_o,
    .s_axil_awaddr_i,
    .s_axil_wvalid_i,
    .s_axil_wready_o,
    .s_axil_wdata_i,
    .s_axil_wstrb_i,
    .s_axil_bvalid_o,
    .s_axil_bready_i,
    .s_axil_bresp_o,
    .s_axil_arvalid_i,
    .s_axil_arready_o,
    .s_axil_araddr_i,
    .s_axil_rvalid_o,
    .s_axil_rready_i,
    .s_axil_rdata_o,
    .s_axil_rresp_o,
    .irq_o,
    .cmd_req_o      (cmd_req),
    .cmd_write_o    (cmd_write),
    .cmd_addr_o     (cmd_addr),
    .cmd_wdata_o    (cmd_wdata),
    .cmd_wmask_o    (cmd_wmask),
    .cmd_ack_i      (cmd_ack),
    .cmd_rdata_i    (cmd_rdata),
    .cmd_irq_i      (cmd_irq),
    .start_o        (start),
    .abort_o        (abort),
    .soft_reset_o   (soft_reset),
    .ucode_base_o   (ucode_base),
    .ucode_length_o (ucode_length),
    .stream_base_o  (stream_base),
    .stream_length_o(stream_length),
    .stream_limit_o (stream_limit),
    .start_regs_o   (start_regs),
    .regions_o      (regions),
    .timeout_o      (timeout),
    .started_i      (started),
    .busy_i         (busy),
    .done_i         (done),
    .finish_i       (finish),
    .failed_i       (failed),
    .error_i        (error),
    .generated_i    (generated),
    .macs_i         (macs),
    .instr_i        (instr),
    .read_beat_i    (core_rsp.rvalid && core_req.rready),
    .write_beat_i   (core_req.wvalid && core_rsp.wready),
    .stream_beat_i  (stream_beat),
    .engine_busy_i  (engine_busy),
    .engine_stall_i (engine_stall)
  );

  npu_core #(
    .ArrayDim(ArrayDim),
    .SramKiB (SramKiB),
    .AccRows (AccRows),
    .FifoKiB (FifoKiB),
    .NormMax (NormMax)
  ) u_core (
    .clk_i,
    .rst_ni,
    .start_i        (start),
    .abort_i        (abort),
    .soft_reset_i   (soft_reset),
    .ucode_base_i   (ucode_base),
    .ucode_length_i (ucode_length),
    .stream_base_i  (stream_base),
    .stream_length_i(stream_length),
    .stream_limit_i (stream_limit),
    .start_regs_i   (start_regs),
    .regions_i      (regions),
    .timeout_i      (timeout),
    .stream_base_o  (used_base),
    .stream_length_o(used_length),
    .started_o      (started),
    .busy_o         (busy),
    .done_o         (done),
    .finish_o       (finish),
    .failed_o       (failed),
    .error_o        (error),
    .generated_o    (generated),
    .launch_valid_i (launch_valid),
    .launch_ready_o (launch_ready),
    .launch_i       (launch),
    .launch_end_o   (launch_end),
    .macs_o         (macs),
    .instr_o        (instr),
    .stream_beat_o  (stream_beat),
    .engine_busy_o  (engine_busy),
    .engine_stall_o (engine_stall),
    .axi_req_o      (core_req),
    .axi_rsp_i      (core_rsp)
  );

  // ---------------------------------------------------------------------------------------------
  // Command port
  // ---------------------------------------------------------------------------------------------
  if (EnableCmd) begin : gen_cmd
    npu_axi_pkg::axi_req_t port_req;
    npu_axi_pkg::axi_rsp_t port_rsp;

    npu_cmd #(
      .ScratchBytes(CmdScratchBytes)
    ) u_cmd (
      .clk_i,
      .rst_ni,
      .req_i          (cmd_req),
      .req_write_i    (cmd_write),
      .req_addr_i     (cmd_addr),
      .req_wdata_i    (cmd_wdata),
      .req_wmask_i    (cmd_wmask),
      .ack_o          (cmd_ack),
      .rdata_o        (cmd_rdata),
      .irq_o          (cmd_irq),
      .soft_reset_i   (soft_reset),
      .regions_i      (regions),
      .stream_base_i  (used_base),
      .stream_length_i(used_length),
      .launch_valid_o (launch_valid),
      .launch_ready_i (launch_ready),
      .launch_o       (launch),
      .launch_end_i   (launch_end),
      .launch_error_i (error),
      .launch_count_i (generated.outcnt),
      .axi_req_o      (port_req),
      .axi_rsp_i      (port_rsp)
    );

    npu_axi_mux u_mux (
      .clk_i,
      .rst_ni,
      .core_req_i(core_req),
      .core_rsp_o(core_rsp),
      .cmd_req_i (port_req),
      .cmd_rsp_o (port_rsp),
      .bus_req_o (bus_req),
      .bus_rsp_i (bus_rsp)
    );
  end else begin : gen_no_cmd
    assign cmd_ack      = 1'b1;
    assign cmd_rdata    = '0;
    assign cmd_irq      = 1'b0;
    assign launch_valid = 1'b0;
    assign launch       = '0;
    assign bus_req      = core_req;
    assign core_rsp     = bus_rsp;
  end

  // ---------------------------------------------------------------------------------------------
  // Memory
  // ---------------------------------------------------------------------------------------------
  assign m_axi_arvalid_o = bus_req.arvalid;
  assign m_axi_arid_o = bus_req.arid;
  assign m_axi_araddr_o = bus_req.araddr;
  assign m_axi_arlen_o = bus_req.arlen;
  assign m_axi_rready_o = bus_req.rready;
  assign m_axi_awvalid_o = bus_req.awvalid;
  assign m_axi_awid_o = bus_req.awid;
  assign m_axi_awaddr_o = bus_req.awaddr;
  assign m_axi_awlen_o = bus_req.awlen;
  assign m_axi_wvalid_o = bus_req.wvalid;
  assign m_axi_wdata_o = bus_req.wdata;
  assign m_axi_wstrb_o = bus_req.wstrb;
  assign m_axi_wlast_o = bus_req.wlast;
  assign m_axi_bready_o = bus_req.bready;
  assign m_axi_arsize_o = SizeWord;
  assign m_axi_arburst_o = BurstIncr;
  assign m_axi_awsize_o = SizeWord;
  assign m_axi_awburst_o = BurstIncr;

  assign bus_rsp.arready = m_axi_arready_i;
  assign bus_rsp.rvalid = m_axi_rvalid_i;
  assign bus_rsp.rid = m_axi_rid_i;
  assign bus_rsp.rdata = m_axi_rdata_i;
  assign bus_rsp.rresp = m_axi_rresp_i;
  assign bus_rsp.rlast = m_axi_rlast_i;
  assign bus_rsp.awready = m_axi_awready_i;
  assign bus_rsp.wready = m_axi_wready_i;
  assign bus_rsp.bvalid = m_axi_bvalid_i;
  assign bus_rsp.bid = m_axi_bid_i;
  assign bus_rsp.bresp = m_axi_bresp_i;

endmodule
