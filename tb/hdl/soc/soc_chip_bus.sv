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

  output npu_axi_pkg::axil_req_t req_o,
  input  npu_axi_pkg::axil_rsp_t rsp_i
);

  // Channels on which the access has been taken
  logic aw_taken_q, w_taken_q, ar_taken_q;

  assign req_o.awvalid = valid_i && access_i.we && !aw_taken_q;
  assign req_o.wvalid = valid_i && access_i.we && !w_taken_q;
  assign req_o.arvalid = valid_i && !access_i.we && !ar_taken_q;
  assign req_o.awaddr = access_i.address[11:0];
  assign req_o.araddr = access_i.address[11:0];
  assign req_o.wdata = access_i.wdata;
  assign req_o.wstrb = access_i.be;
  assign req_o.bready = 1'b1;
  assign req_o.rready = 1'b1;
  assign done_o = rsp_i.bvalid || rsp_i.rvalid;
  assign answer_o = '{rdata: rsp_i.rdata, err: rsp_i.bvalid ? rsp_i.bresp[1] : rsp_i.rresp[1]};

  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) begin
      {aw_taken_q, w_taken_q, ar_taken_q} <= '0;
    end else begin
      aw_taken_q <= !done_o && (aw_taken_q || (req_o.awvalid && rsp_i.awready));
      w_taken_q  <= !done_o && (w_taken_q || (req_o.wvalid && rsp_i.wready));
      ar_taken_q <= !done_o && (ar_taken_q || (req_o.arvalid && rsp_i.arready));
    end
  end

endmodule
