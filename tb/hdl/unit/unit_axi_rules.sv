// SPDX-License-Identifier: Apache-2.0
//
// Bench of the monitors of both AXI ports: Python says both sides of each, cycle by cycle, and sees
// what the monitors say of it.

module unit_axi_rules;
  logic clk = 1'b0;
  logic rst_n = 1'b0;

  always #5 clk = ~clk;

  npu_axi_pkg::axi_req_t req;
  npu_axi_pkg::axi_rsp_t rsp;
  npu_axi_pkg::axil_req_t lite_req;
  npu_axi_pkg::axil_rsp_t lite_rsp;

  // The memory port
  logic arvalid = 1'b0;
  logic arready = 1'b0;
  logic [3:0] arid = '0;
  logic [31:0] araddr = '0;
  logic [7:0] arlen = '0;
  logic [2:0] arsize = '0;
  logic [1:0] arburst = '0;
  logic rvalid = 1'b0;
  logic rready = 1'b0;
  logic [3:0] rid = '0;
  logic [31:0] rdata = '0;
  logic [1:0] rresp = '0;
  logic rlast = 1'b0;
  logic awvalid = 1'b0;
  logic awready = 1'b0;
  logic [3:0] awid = '0;
  logic [31:0] awaddr = '0;
  logic [7:0] awlen = '0;
  logic [2:0] awsize = '0;
  logic [1:0] awburst = '0;
  logic wvalid = 1'b0;
  logic wready = 1'b0;
  logic [31:0] wdata = '0;
  logic [15:0] wstrb = '0;
  logic wlast = 1'b0;
  logic bvalid = 1'b0;
  logic bready = 1'b0;
  logic [3:0] bid = '0;
  logic [1:0] bresp = '0;

  assign req.rd = '{
          arvalid: arvalid,
          arid: arid,
          araddr: npu_pkg::mem_addr_t'(araddr),
          arlen: arlen,
          rready: rready
      };
  assign rsp.rd = '{
          arready: arready,
          rvalid: rvalid,
          rid: rid,
          rdata: npu_pkg::word_t'(rdata),
          rresp: rresp,
          rlast: rlast
      };
  assign req.wr = '{
          awvalid: awvalid,
          awid: awid,
          awaddr: npu_pkg::mem_addr_t'(awaddr),
          awlen: awlen,
          wvalid: wvalid,
          wdata: npu_pkg::word_t'(wdata),
          wstrb: wstrb,
          wlast: wlast,
          bready: bready
      };
  assign rsp.wr = '{awready: awready, wready: wready, bvalid: bvalid, bid: bid, bresp: bresp};

  axi_monitor #(
    .MaxReads (2),
    .MaxWrites(2)
  ) u_monitor (
    .clk_i    (clk),
    .rst_ni   (rst_n),
    .req_i    (req),
    .rsp_i    (rsp),
    .arsize_i (arsize),
    .arburst_i(arburst),
    .awsize_i (awsize),
    .awburst_i(awburst)
  );

  // The register port
  logic lite_awvalid = 1'b0;
  logic lite_awready = 1'b0;
  logic [11:0] lite_awaddr = '0;
  logic lite_wvalid = 1'b0;
  logic lite_wready = 1'b0;
  logic [31:0] lite_wdata = '0;
  logic [3:0] lite_wstrb = '0;
  logic lite_bvalid = 1'b0;
  logic lite_bready = 1'b0;
  logic [1:0] lite_bresp = '0;
  logic lite_arvalid = 1'b0;
  logic lite_arready = 1'b0;
  logic [11:0] lite_araddr = '0;
  logic lite_rvalid = 1'b0;
  logic lite_rready = 1'b0;
  logic [31:0] lite_rdata = '0;
  logic [1:0] lite_rresp = '0;

  assign lite_req = '{
          awvalid: lite_awvalid,
          awaddr: lite_awaddr,
          wvalid: lite_wvalid,
          wdata: lite_wdata,
          wstrb: lite_wstrb,
          bready: lite_bready,
          arvalid: lite_arvalid,
          araddr: lite_araddr,
          rready: lite_rready
      };
  assign lite_rsp = '{
          awready: lite_awready,
          wready: lite_wready,
          bvalid: lite_bvalid,
          bresp: lite_bresp,
          arready: lite_arready,
          rvalid: lite_rvalid,
          rdata: lite_rdata,
          rresp: lite_rresp
      };

  axil_monitor u_lite_monitor (
    .clk_i       (clk),
    .rst_ni      (rst_n),
    .req_i       (lite_req),
    .rsp_i       (lite_rsp),
    .handshakes_o()
  );

endmodule
