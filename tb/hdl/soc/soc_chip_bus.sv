// SPDX-License-Identifier: Apache-2.0
//
// From an access of the core to AXI4-Lite: one write or read at a time, offered until it is taken.

module soc_chip_bus
  import soc_pkg::*;
(
  input logic clk_i,
  input logic rst_ni,

  input  logic    valid_i,   // stays until done
  input  access_t access_i,
  output logic    done_o,    // one cycle
  output answer_t answer_o,

  output logic        awvalid_o,
  input  logic        awready_i,
  output logic [11:0] awaddr_o,
  output logic        wvalid_o,
  input  logic        wready_i,
  output logic [31:0] wdata_o,
  output logic [ 3:0] wstrb_o,
  input  logic        bvalid_i,
  output logic        bready_o,
  input  logic [ 1:0] bresp_i,
  output logic        arvalid_o,
  input  logic        arready_i,
  output logic [11:0] araddr_o,
  input  logic        rvalid_i,
  output logic        rready_o,
  input  logic [31:0] rdata_i,
  input  logic [ 1:0] rresp_i
);

  // Channels on which the access has been taken
  logic aw_taken_q, w_taken_q, ar_taken_q;

  assign awvalid_o = valid_i && access_i.we && !aw_taken_q;
  assign wvalid_o = valid_i && access_i.we && !w_taken_q;
  assign arvalid_o = valid_i && !access_i.we && !ar_taken_q;
  assign awaddr_o = access_i.address[11:0];
  assign araddr_o = access_i.address[11:0];
  assign wdata_o = access_i.wdata;
  assign wstrb_o = access_i.be;
  assign bready_o = 1'b1;
  assign rready_o = 1'b1;
  assign done_o = bvalid_i || rvalid_i;
  assign answer_o = '{rdata: rdata_i, err: bvalid_i ? bresp_i[1] : rresp_i[1]};

  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) begin
      {aw_taken_q, w_taken_q, ar_taken_q} <= '0;
    end else begin
      aw_taken_q <= !done_o && (aw_taken_q || (awvalid_o && awready_i));
      w_taken_q  <= !done_o && (w_taken_q || (wvalid_o && wready_i));
      ar_taken_q <= !done_o && (ar_taken_q || (arvalid_o && arready_i));
    end
  end

endmodule
