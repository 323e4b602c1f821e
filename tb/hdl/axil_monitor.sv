// SPDX-License-Identifier: Apache-2.0
//
// Protocol rules of the register port (AXI4-Lite): whoever offers something holds it until it is
// taken, and every answer has a request. A breach ends the simulation. All five channels'
// handshakes are counted, so that a test can tell that nobody used the port.

module axil_monitor (
  input logic clk_i,
  input logic rst_ni,

  input logic        awvalid_i,
  input logic        awready_i,
  input logic [11:0] awaddr_i,
  input logic        wvalid_i,
  input logic        wready_i,
  input logic [31:0] wdata_i,
  input logic [ 3:0] wstrb_i,
  input logic        bvalid_i,
  input logic        bready_i,
  input logic [ 1:0] bresp_i,
  input logic        arvalid_i,
  input logic        arready_i,
  input logic [11:0] araddr_i,
  input logic        rvalid_i,
  input logic        rready_i,
  input logic [31:0] rdata_i,
  input logic [ 1:0] rresp_i,

  output logic [31:0] handshakes_o
);

  AwHeld :
  assert property (@(posedge clk_i) disable iff (!rst_ni) awvalid_i && !awready_i |=>
      awvalid_i && $stable(
      awaddr_i
  ))
  else $error("AXI4-Lite AW changed before AWREADY");

  WHeld :
  assert property (@(posedge clk_i) disable iff (!rst_ni) wvalid_i && !wready_i |=>
      wvalid_i && $stable(
      {wdata_i, wstrb_i}
  ))
  else $error("AXI4-Lite W changed before WREADY");

  BHeld :
  assert property (@(posedge clk_i) disable iff (!rst_ni) bvalid_i && !bready_i |=>
      bvalid_i && $stable(
      bresp_i
  ))
  else $error("AXI4-Lite B changed before BREADY");

  ArHeld :
  assert property (@(posedge clk_i) disable iff (!rst_ni) arvalid_i && !arready_i |=>
      arvalid_i && $stable(
      araddr_i
  ))
  else $error("AXI4-Lite AR changed before ARREADY");

  RHeld :
  assert property (@(posedge clk_i) disable iff (!rst_ni) rvalid_i && !rready_i |=>
      rvalid_i && $stable(
      {rdata_i, rresp_i}
  ))
  else $error("AXI4-Lite R changed before RREADY");

  logic [4:0] handshakes;

  assign handshakes = {
    awvalid_i && awready_i,
    wvalid_i && wready_i,
    bvalid_i && bready_i,
    arvalid_i && arready_i,
    rvalid_i && rready_i
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
      if (rvalid_i && rready_i && reads_out == 0) $error("AXI4-Lite: read data without a request");
      if (bvalid_i && bready_i && (addresses_out == 0 || data_out == 0))
        $error("AXI4-Lite: write response without a request");
      reads_out <= reads_out + 32'(arvalid_i && arready_i) - 32'(rvalid_i && rready_i);
      addresses_out <= addresses_out + 32'(awvalid_i && awready_i) - 32'(bvalid_i && bready_i);
      data_out <= data_out + 32'(wvalid_i && wready_i) - 32'(bvalid_i && bready_i);
    end
  end

endmodule
