// SPDX-License-Identifier: Apache-2.0
//
// The rules of valid/ready on the channels that an AXI master of the chip drives.

module axi_checker #(
  parameter bit TakesAnswers = 1'b1  // it never refuses what comes back
) (
  input logic clk_i,  // clock
  input logic rst_ni, // reset, active low

  input npu_axi_pkg::axi_req_t axi_req_i,  // of the master
  input npu_axi_pkg::axi_rsp_t axi_rsp_i   // to the master
);

  `CHECKER(u_ar, axi_req_i.rd.arvalid, axi_rsp_i.rd.arready, {
           axi_req_i.rd.arid, axi_req_i.rd.araddr, axi_req_i.rd.arlen})
  `CHECKER(u_aw, axi_req_i.wr.awvalid, axi_rsp_i.wr.awready, {
           axi_req_i.wr.awid, axi_req_i.wr.awaddr, axi_req_i.wr.awlen})
  `CHECKER(u_w, axi_req_i.wr.wvalid, axi_rsp_i.wr.wready, {axi_req_i.wr.wdata, axi_req_i.wr.wstrb,
                                                           axi_req_i.wr.wlast})

  AnswersTaken_A :
  assert property (@(posedge clk_i) disable iff (!rst_ni)
                   TakesAnswers |-> axi_req_i.rd.rready && axi_req_i.wr.bready)
  else $error("%m: an answer is refused");

endmodule
