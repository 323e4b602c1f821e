// SPDX-License-Identifier: Apache-2.0
//
// Tessera: a transformer NPU. The host programs it over AXI4-Lite and is woken by an interrupt; the
// chip fetches its program, parameters and data over one AXI4 master port and writes results back.

module npu_top
  import npu_pkg::*;
#(
  parameter int unsigned ArrayDim = 16,   // rows and columns of the systolic array
  parameter int unsigned SramKiB  = 256,
  parameter int unsigned AccRows  = 128,  // rows of an accumulator bank
  parameter int unsigned FifoKiB  = 32,   // parameter stream FIFO
  parameter int unsigned NormMax  = 8192  // longest row of a norm
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
    .read_beat_i    (m_axi_rvalid_i && m_axi_rready_o),
    .write_beat_i   (m_axi_wvalid_o && m_axi_wready_i),
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
    .started_o      (started),
    .busy_o         (busy),
    .done_o         (done),
    .finish_o       (finish),
    .failed_o       (failed),
    .error_o        (error),
    .generated_o    (generated),
    .macs_o         (macs),
    .instr_o        (instr),
    .stream_beat_o  (stream_beat),
    .engine_busy_o  (engine_busy),
    .engine_stall_o (engine_stall),
    .m_axi_arvalid_o,
    .m_axi_arready_i,
    .m_axi_arid_o,
    .m_axi_araddr_o,
    .m_axi_arlen_o,
    .m_axi_rvalid_i,
    .m_axi_rready_o,
    .m_axi_rid_i,
    .m_axi_rdata_i,
    .m_axi_rresp_i,
    .m_axi_rlast_i,
    .m_axi_awvalid_o,
    .m_axi_awready_i,
    .m_axi_awid_o,
    .m_axi_awaddr_o,
    .m_axi_awlen_o,
    .m_axi_wvalid_o,
    .m_axi_wready_i,
    .m_axi_wdata_o,
    .m_axi_wstrb_o,
    .m_axi_wlast_o,
    .m_axi_bvalid_i,
    .m_axi_bready_o,
    .m_axi_bid_i,
    .m_axi_bresp_i
  );

  assign m_axi_arsize_o  = SizeWord;
  assign m_axi_arburst_o = BurstIncr;
  assign m_axi_awsize_o  = SizeWord;
  assign m_axi_awburst_o = BurstIncr;

endmodule
