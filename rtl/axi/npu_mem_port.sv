// SPDX-License-Identifier: Apache-2.0
//
// The memory port: one AXI4 master for all clients, with everything that guards it. Read and write
// side work on their own; what goes wrong on either is reported as one fault that names the client's
// engine, its instruction and the address.

module npu_mem_port
  import npu_pkg::*;
#(
  parameter int unsigned NumRd = 3,
  parameter int unsigned NumWr = 1,
  parameter logic [NumRd-1:0][2:0] RdEngines = '0,  // engine of each client
  parameter logic [NumWr-1:0][2:0] WrEngines = '0
) (
  input logic clk_i,
  input logic rst_ni,

  // Clients
  input  mem_req_t   rd_req_i  [NumRd],
  output logic       rd_ready_o[NumRd],
  output logic       r_valid_o [NumRd],
  output word_t      r_data_o,
  input  mem_req_t   wr_req_i  [NumWr],
  output logic       wr_ready_o[NumWr],
  input  mem_wdata_t w_i       [NumWr],
  output logic       w_ready_o [NumWr],
  output logic       b_valid_o [NumWr],

  // Protection
  input region_t          regions_i      [NumRegions],
  input mem_addr_t        stream_base_i,                // parameter stream in use: no writes
  input logic      [31:0] stream_length_i,
  input logic      [23:0] timeout_i,                    // cycles of one wait; 0 = for ever

  // End of a program
  input  logic   drain_i,
  output logic   idle_o,
  output logic   stuck_o,
  output fault_t fault_o,

  // Bus
  output logic             m_axi_arvalid_o,
  input  logic             m_axi_arready_i,
  output logic      [ 3:0] m_axi_arid_o,
  output mem_addr_t        m_axi_araddr_o,
  output logic      [ 7:0] m_axi_arlen_o,
  input  logic             m_axi_rvalid_i,
  output logic             m_axi_rready_o,
  input  logic      [ 3:0] m_axi_rid_i,
  input  word_t            m_axi_rdata_i,
  input  logic      [ 1:0] m_axi_rresp_i,
  input  logic             m_axi_rlast_i,
  output logic             m_axi_awvalid_o,
  input  logic             m_axi_awready_i,
  output logic      [ 3:0] m_axi_awid_o,
  output mem_addr_t        m_axi_awaddr_o,
  output logic      [ 7:0] m_axi_awlen_o,
  output logic             m_axi_wvalid_o,
  input  logic             m_axi_wready_i,
  output word_t            m_axi_wdata_o,
  output logic      [15:0] m_axi_wstrb_o,
  output logic             m_axi_wlast_o,
  input  logic             m_axi_bvalid_i,
  output logic             m_axi_bready_o,
  input  logic      [ 3:0] m_axi_bid_i,
  input  logic      [ 1:0] m_axi_bresp_i
);

  logic rd_idle, wr_idle, rd_stuck, wr_stuck;
  fault_t rd_fault, wr_fault;

  npu_axi_read #(
    .NumClients(NumRd),
    .Engines   (RdEngines)
  ) u_read (
    .clk_i,
    .rst_ni,
    .req_i      (rd_req_i),
    .req_ready_o(rd_ready_o),
    .r_valid_o,
    .r_data_o,
    .regions_i,
    .timeout_i,
    .drain_i,
    .idle_o     (rd_idle),
    .stuck_o    (rd_stuck),
    .fault_o    (rd_fault),
    .m_arvalid_o(m_axi_arvalid_o),
    .m_arready_i(m_axi_arready_i),
    .m_arid_o   (m_axi_arid_o),
    .m_araddr_o (m_axi_araddr_o),
    .m_arlen_o  (m_axi_arlen_o),
    .m_rvalid_i (m_axi_rvalid_i),
    .m_rready_o (m_axi_rready_o),
    .m_rid_i    (m_axi_rid_i),
    .m_rdata_i  (m_axi_rdata_i),
    .m_rresp_i  (m_axi_rresp_i),
    .m_rlast_i  (m_axi_rlast_i)
  );

  npu_axi_write #(
    .NumClients(NumWr),
    .Engines   (WrEngines)
  ) u_write (
    .clk_i,
    .rst_ni,
    .req_i      (wr_req_i),
    .req_ready_o(wr_ready_o),
    .w_i,
    .w_ready_o,
    .b_valid_o,
    .regions_i,
    .stream_base_i,
    .stream_length_i,
    .timeout_i,
    .drain_i,
    .idle_o     (wr_idle),
    .stuck_o    (wr_stuck),
    .fault_o    (wr_fault),
    .m_awvalid_o(m_axi_awvalid_o),
    .m_awready_i(m_axi_awready_i),
    .m_awid_o   (m_axi_awid_o),
    .m_awaddr_o (m_axi_awaddr_o),
    .m_awlen_o  (m_axi_awlen_o),
    .m_wvalid_o (m_axi_wvalid_o),
    .m_wready_i (m_axi_wready_i),
    .m_wdata_o  (m_axi_wdata_o),
    .m_wstrb_o  (m_axi_wstrb_o),
    .m_wlast_o  (m_axi_wlast_o),
    .m_bvalid_i (m_axi_bvalid_i),
    .m_bready_o (m_axi_bready_o),
    .m_bid_i    (m_axi_bid_i),
    .m_bresp_i  (m_axi_bresp_i)
  );

  assign idle_o  = rd_idle && wr_idle;
  assign stuck_o = rd_stuck || wr_stuck;
  assign fault_o = rd_fault.valid ? rd_fault : wr_fault;

endmodule
