// SPDX-License-Identifier: Apache-2.0
//
// Behavioural AXI4 memory: 128-bit data, 32-bit addresses, INCR bursts of full beats. Its bytes
// are a file that Python maps too (memory_dpi.cpp), so loading costs nothing and Python sees each
// write at once. Knobs change at run time. An address outside the file answers DECERR.

module axi_memory (
  input logic                         clk_i,
  input logic                         rst_ni,
  input logic                  [63:0] cycle_i,
  input tb_pkg::memory_knobs_t        read_knobs_i,
  input tb_pkg::memory_knobs_t        write_knobs_i,

  input  logic                         arvalid_i,
  output logic                         arready_o,
  input  logic [tb_pkg::AxiIdBits-1:0] arid_i,
  input  logic [                 31:0] araddr_i,
  input  logic [                  7:0] arlen_i,
  output logic                         rvalid_o,
  input  logic                         rready_i,
  output logic [tb_pkg::AxiIdBits-1:0] rid_o,
  output logic [                127:0] rdata_o,
  output logic [                  1:0] rresp_o,
  output logic                         rlast_o,

  input  logic                         awvalid_i,
  output logic                         awready_o,
  input  logic [tb_pkg::AxiIdBits-1:0] awid_i,
  input  logic [                 31:0] awaddr_i,
  input  logic                         wvalid_i,
  output logic                         wready_o,
  input  logic [                127:0] wdata_i,
  input  logic [                 15:0] wstrb_i,
  input  logic                         wlast_i,
  output logic                         bvalid_o,
  input  logic                         bready_i,
  output logic [tb_pkg::AxiIdBits-1:0] bid_o,
  output logic [                  1:0] bresp_o
);

  axi_memory_read u_read (
    .clk_i    (clk_i),
    .rst_ni   (rst_ni),
    .cycle_i  (cycle_i),
    .knobs_i  (read_knobs_i),
    .arvalid_i(arvalid_i),
    .arready_o(arready_o),
    .arid_i   (arid_i),
    .araddr_i (araddr_i),
    .arlen_i  (arlen_i),
    .rvalid_o (rvalid_o),
    .rready_i (rready_i),
    .rid_o    (rid_o),
    .rdata_o  (rdata_o),
    .rresp_o  (rresp_o),
    .rlast_o  (rlast_o)
  );

  axi_memory_write u_write (
    .clk_i    (clk_i),
    .rst_ni   (rst_ni),
    .cycle_i  (cycle_i),
    .knobs_i  (write_knobs_i),
    .awvalid_i(awvalid_i),
    .awready_o(awready_o),
    .awid_i   (awid_i),
    .awaddr_i (awaddr_i),
    .wvalid_i (wvalid_i),
    .wready_o (wready_o),
    .wdata_i  (wdata_i),
    .wstrb_i  (wstrb_i),
    .wlast_i  (wlast_i),
    .bvalid_o (bvalid_o),
    .bready_i (bready_i),
    .bid_o    (bid_o),
    .bresp_o  (bresp_o)
  );

endmodule
