// SPDX-License-Identifier: Apache-2.0
//
// Lets engines that seldom work at the same time share a write port of the SRAM. Those that meet
// take turns: the one that goes first moves on with every word.

module npu_sram_write_share
  import npu_sram_pkg::*;
#(
  parameter int unsigned Clients = 3  // at least 2
) (
  input  logic         clk_i,                // clock
  input  logic         rst_ni,               // reset, active low
  input  sram_wr_req_t wr_req_i  [Clients],  // may be withdrawn or changed before its ready
  output logic         wr_ready_o[Clients],  // taken
  output sram_wr_req_t wr_req_o,             // to the SRAM
  input  logic         wr_ready_i            // of the SRAM
);

  if (Clients < 2) begin : gen_bad_clients
    $fatal(1, "npu_sram_write_share: Clients = %0d, must be at least 2", Clients);
  end

  logic [Clients-1:0] asks, grant, behind_q;

  npu_sram_arbiter #(
    .Ports(Clients)
  ) u_arbiter (
    .asks_i  (asks),
    .behind_i(behind_q),
    .grant_o (grant)
  );

  always_comb begin
    wr_req_o = '0;
    for (int unsigned i = 0; i < Clients; i++) begin
      asks[i] = wr_req_i[i].valid;
      wr_ready_o[i] = wr_ready_i && grant[i];
      if (grant[i]) wr_req_o |= wr_req_i[i];
    end
  end

  always_ff @(posedge clk_i) begin
    if (!rst_ni) behind_q <= '0;
    else if (wr_ready_i) behind_q <= behind_q[Clients-2] ? '0 : {behind_q[Clients-2:0], 1'b1};
  end

endmodule
