// SPDX-License-Identifier: Apache-2.0
//
// Protocol rules of the register port (AXI4-Lite): whoever offers something holds it until it is
// taken, and every answer has a request. A breach ends the simulation. All five channels'
// handshakes are counted, so that a test can tell that nobody used the port.

module axil_monitor (
  input logic clk_i,
  input logic rst_ni,

  input npu_axi_pkg::axil_req_t req_i,
  input npu_axi_pkg::axil_rsp_t rsp_i,

  output logic [31:0] handshakes_o
);

  AwHeld :
  assert property (@(posedge clk_i) disable iff (!rst_ni) req_i.awvalid && !rsp_i.awready |=>
      req_i.awvalid && $stable(
      req_i.awaddr
  ))
  else $error("AXI4-Lite AW changed before AWREADY");

  WHeld :
  assert property (@(posedge clk_i) disable iff (!rst_ni) req_i.wvalid && !rsp_i.wready |=>
      req_i.wvalid && $stable(
      {req_i.wdata, req_i.wstrb}
  ))
  else $error("AXI4-Lite W changed before WREADY");

  BHeld :
  assert property (@(posedge clk_i) disable iff (!rst_ni) rsp_i.bvalid && !req_i.bready |=>
      rsp_i.bvalid && $stable(
      rsp_i.bresp
  ))
  else $error("AXI4-Lite B changed before BREADY");

  ArHeld :
  assert property (@(posedge clk_i) disable iff (!rst_ni) req_i.arvalid && !rsp_i.arready |=>
      req_i.arvalid && $stable(
      req_i.araddr
  ))
  else $error("AXI4-Lite AR changed before ARREADY");

  RHeld :
  assert property (@(posedge clk_i) disable iff (!rst_ni) rsp_i.rvalid && !req_i.rready |=>
      rsp_i.rvalid && $stable(
      {rsp_i.rdata, rsp_i.rresp}
  ))
  else $error("AXI4-Lite R changed before RREADY");

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
