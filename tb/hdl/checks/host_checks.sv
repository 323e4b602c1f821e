// SPDX-License-Identifier: Apache-2.0
//
// Checks the answers to the host.

`STREAM(npu_axil_slave, u_check_b, axil_rsp_o.bvalid, axil_req_i.bready, axil_rsp_o.bresp)
`STREAM(npu_axil_slave, u_check_r, axil_rsp_o.rvalid, axil_req_i.rready, {axil_rsp_o.rdata,
                                                                          axil_rsp_o.rresp})
