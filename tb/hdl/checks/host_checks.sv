// SPDX-License-Identifier: Apache-2.0
//
// Checks the answers to the host.

bind npu_axil_slave stream_checker #(
  .DataT(logic [$bits(axil_rsp_o.bresp)-1:0])
) u_check_b (
  .clk_i,
  .rst_ni,
  .valid_i(axil_rsp_o.bvalid),
  .ready_i(axil_req_i.bready),
  .data_i (axil_rsp_o.bresp)
);

bind npu_axil_slave stream_checker #(
  .DataT(logic [$bits({axil_rsp_o.rdata, axil_rsp_o.rresp})-1:0])
) u_check_r (
  .clk_i,
  .rst_ni,
  .valid_i(axil_rsp_o.rvalid),
  .ready_i(axil_req_i.rready),
  .data_i ({axil_rsp_o.rdata, axil_rsp_o.rresp})
);
