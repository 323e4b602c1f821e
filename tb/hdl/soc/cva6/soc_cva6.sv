// SPDX-License-Identifier: Apache-2.0
//
// CVA6 (a package of its own, cv32a60x) as the machine's core, with its bus. All that is known of the
// core is what its ports say. Programs turn its cache of data off (npu_cva6.h): the chip writes memory
// too.

module soc_cva6
  import soc_pkg::*;
(
  input logic clk_i,
  input logic rst_ni,

  input  logic [ 6:0] gap_percent_i,
  input  logic [31:0] seed_i,
  input  logic        irq_i,          // machine external interrupt
  output logic        sleeping_o,     // in wfi: not known
  output logic [31:0] pc_o,           // that was fetched last

  // Devices and registers of the chip: as from soc_data_bus
  output logic    device_valid_o,
  output access_t device_access_o,
  input  answer_t device_answer_i,
  output logic    chip_valid_o,
  output access_t chip_access_o,
  input  logic    chip_done_i,
  input  answer_t chip_answer_i,

  // CV-X-IF 1.0, X_ISSUE_REGISTER_SPLIT = 0, X_NUM_RS = 2
  soc_x_if.host x
);

  localparam logic [63:0] ReadTwice = 64'h1000_0000;  // what is below may be read again

  localparam ariane_pkg::ariane_cfg_t Config = '{
      RASDepth: 2,
      BTBEntries: 32,
      BHTEntries: 128,
      NrNonIdempotentRules: 1,
      NonIdempotentAddrBase: 1024'(ReadTwice),
      NonIdempotentLength: 1024'(64'h1_0000_0000 - ReadTwice),
      NrExecuteRegionRules: 1,
      ExecuteRegionAddrBase: '0,
      ExecuteRegionLength: 1024'(ReadTwice),
      NrCachedRegionRules: 1,
      CachedRegionAddrBase: '0,
      CachedRegionLength: 1024'(ReadTwice),
      AxiCompliant: 1'b1,
      SwapEndianess: 1'b0,
      DmBaseAddress: '0,
      NrPMPEntries: 8
  };

  cvxif_pkg::cvxif_req_t xif_req;
  cvxif_pkg::cvxif_resp_t xif_resp;
  ariane_axi::req_t axi_req;
  ariane_axi::resp_t axi_resp;
  logic data_stall;

  cva6 #(
    .ArianeCfg(Config)
  ) u_core (
    .clk_i,
    .rst_ni,
    .boot_addr_i ('0),
    .hart_id_i   ('0),
    .irq_i       ({1'b0, irq_i}),
    .ipi_i       (1'b0),
    .time_irq_i  (1'b0),
    .debug_req_i (1'b0),
    .cvxif_req_o (xif_req),
    .cvxif_resp_i(xif_resp),
    .axi_req_o   (axi_req),
    .axi_resp_i  (axi_resp)
  );

  assign sleeping_o = 1'b0;

  soc_cva6_bus u_bus (
    .clk_i,
    .rst_ni,
    .gap_percent_i,
    .seed_i,
    .axi_req_i   (axi_req),
    .axi_resp_o  (axi_resp),
    .data_stall_i(data_stall),
    .fetched_o   (pc_o),
    .device_valid_o,
    .device_access_o,
    .device_answer_i,
    .chip_valid_o,
    .chip_access_o,
    .chip_done_i,
    .chip_answer_i
  );

  soc_cva6_xif u_xif (
    .clk_i,
    .rst_ni,
    .req_i       (xif_req),
    .resp_o      (xif_resp),
    .data_stall_o(data_stall),
    .x
  );

endmodule
