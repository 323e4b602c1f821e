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

  // How the memory answers
  output logic [8:0] latency_o,  // cycles from a burst's acceptance to its first word, 0 = unknown
  output logic       word_o,     // a word arrives

  // Bus
  output npu_axi_pkg::axi_req_t axi_req_o,
  input  npu_axi_pkg::axi_rsp_t axi_rsp_i
);

  logic rd_idle, wr_idle, rd_stuck, wr_stuck, rd_on_bus;
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
    .on_bus_o   (rd_on_bus),
    .m_arvalid_o(axi_req_o.arvalid),
    .m_arready_i(axi_rsp_i.arready),
    .m_arid_o   (axi_req_o.arid),
    .m_araddr_o (axi_req_o.araddr),
    .m_arlen_o  (axi_req_o.arlen),
    .m_rvalid_i (axi_rsp_i.rvalid),
    .m_rready_o (axi_req_o.rready),
    .m_rid_i    (axi_rsp_i.rid),
    .m_rdata_i  (axi_rsp_i.rdata),
    .m_rresp_i  (axi_rsp_i.rresp),
    .m_rlast_i  (axi_rsp_i.rlast)
  );

  assign word_o = axi_rsp_i.rvalid && axi_req_o.rready;

  npu_mem_latency u_latency (
    .clk_i,
    .rst_ni,
    .accepted_i(axi_req_o.arvalid && axi_rsp_i.arready),
    .alone_i   (!rd_on_bus),
    .word_i    (word_o),
    .latency_o
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
    .m_awvalid_o(axi_req_o.awvalid),
    .m_awready_i(axi_rsp_i.awready),
    .m_awid_o   (axi_req_o.awid),
    .m_awaddr_o (axi_req_o.awaddr),
    .m_awlen_o  (axi_req_o.awlen),
    .m_wvalid_o (axi_req_o.wvalid),
    .m_wready_i (axi_rsp_i.wready),
    .m_wdata_o  (axi_req_o.wdata),
    .m_wstrb_o  (axi_req_o.wstrb),
    .m_wlast_o  (axi_req_o.wlast),
    .m_bvalid_i (axi_rsp_i.bvalid),
    .m_bready_o (axi_req_o.bready),
    .m_bid_i    (axi_rsp_i.bid),
    .m_bresp_i  (axi_rsp_i.bresp)
  );

  assign idle_o  = rd_idle && wr_idle;
  assign stuck_o = rd_stuck || wr_stuck;
  assign fault_o = rd_fault.valid ? rd_fault : wr_fault;

endmodule
