// SPDX-License-Identifier: Apache-2.0
//
// Checks the bus behind the memory port and behind the arbiter of masters. Requests at the memory
// port are checked where its clients make them.

bind npu_mem_port axi_checker u_check (
  .clk_i,
  .rst_ni,
  .axi_req_i(axi_req_o),
  .axi_rsp_i(axi_rsp_i)
);

// It refuses what its masters refuse.
bind npu_axi_mux axi_checker #(
  .TakesAnswers(1'b0)
) u_check (
  .clk_i,
  .rst_ni,
  .axi_req_i(bus_req_o),
  .axi_rsp_i(bus_rsp_i)
);
