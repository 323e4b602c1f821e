// SPDX-License-Identifier: Apache-2.0
//
// Protocol rules of the register port (AXI4-Lite): whoever offers something holds it until it is
// taken, and every answer has a request. A breach ends the simulation. All five channels'
// handshakes are counted, so that a test can tell that nobody used the port. docs/integration.md
// lists the rules.

module axil_monitor (
  input logic clk_i,
  input logic rst_ni,

  input npu_axi_pkg::axil_req_t req_i,
  input npu_axi_pkg::axil_rsp_t rsp_i,

  output logic [31:0] handshakes_o
);

  `CHECKER(u_aw, req_i.awvalid, rsp_i.awready, req_i.awaddr)
  `CHECKER(u_w, req_i.wvalid, rsp_i.wready, {req_i.wdata, req_i.wstrb})
  `CHECKER(u_b, rsp_i.bvalid, req_i.bready, rsp_i.bresp)
  `CHECKER(u_ar, req_i.arvalid, rsp_i.arready, req_i.araddr)
  `CHECKER(u_r, rsp_i.rvalid, req_i.rready, {rsp_i.rdata, rsp_i.rresp})

  axi_common_monitor #(
    .Bus("AXI4-Lite")
  ) u_common (
    .clk_i,
    .rst_ni,
    .asks_i  ({req_i.arvalid, req_i.awvalid, req_i.wvalid}),
    .rvalid_i(rsp_i.rvalid),
    .rresp_i (rsp_i.rresp),
    .bvalid_i(rsp_i.bvalid),
    .bresp_i (rsp_i.bresp)
  );

  logic [4:0] handshakes;  // aw, w, b, ar, r

  assign handshakes = {
    req_i.awvalid && rsp_i.awready,
    req_i.wvalid && rsp_i.wready,
    rsp_i.bvalid && req_i.bready,
    req_i.arvalid && rsp_i.arready,
    rsp_i.rvalid && req_i.rready
  };

  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) handshakes_o <= '0;
    else handshakes_o <= handshakes_o + 32'($countones(handshakes));
  end

  int unsigned reads_out;
  int unsigned addresses_out;
  int unsigned data_out;

  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) begin
      reads_out <= 0;
      addresses_out <= 0;
      data_out <= 0;
    end else begin
      if (rsp_i.rvalid && req_i.rready && reads_out == 0)
        $error("AXI4-Lite: read data without a request");
      if (rsp_i.bvalid && req_i.bready && (addresses_out == 0 || data_out == 0))
        $error("AXI4-Lite: write response without a request");
      reads_out <= reads_out + 32'(handshakes[1]) - 32'(handshakes[0]);
      addresses_out <= addresses_out + 32'(handshakes[4]) - 32'(handshakes[2]);
      data_out <= data_out + 32'(handshakes[3]) - 32'(handshakes[2]);
    end
  end

endmodule
