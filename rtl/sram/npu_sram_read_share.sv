// SPDX-License-Identifier: Apache-2.0
//
// Lets engines that seldom work at the same time share a read port of the SRAM. Those that meet
// take turns: the one that goes first moves on with every word.

module npu_sram_read_share
  import npu_sram_pkg::*;
#(
  parameter int unsigned Clients = 3  // at least 2
) (
  input  logic         clk_i,              // clock
  input  logic         rst_ni,             // reset, active low
  input  sram_rd_req_t rd_req_i[Clients],  // may be withdrawn or changed before its ready
  output sram_rd_rsp_t rd_rsp_o[Clients],  // the word comes one cycle after ready
  output sram_rd_req_t rd_req_o,           // to the SRAM
  input  sram_rd_rsp_t rd_rsp_i            // of the SRAM
);

  if (Clients < 2) begin : gen_bad_clients
    $fatal(1, "npu_sram_read_share: Clients = %0d, must be at least 2", Clients);
  end

  logic [Clients-1:0] asks, grant, behind_q, owner_q;

  npu_sram_arbiter #(
    .Ports(Clients)
  ) u_arbiter (
    .asks_i  (asks),
    .behind_i(behind_q),
    .grant_o (grant)
  );

  always_comb begin
    rd_req_o = '0;
    for (int unsigned i = 0; i < Clients; i++) begin
      asks[i] = rd_req_i[i].valid;
      if (grant[i]) rd_req_o |= rd_req_i[i];
    end
  end

  for (genvar i = 0; i < int'(Clients); i++) begin : gen_client
    assign rd_rsp_o[i] = '{
            ready: rd_rsp_i.ready && grant[i],
            valid: rd_rsp_i.valid && owner_q[i],
            data: rd_rsp_i.data
        };
  end

  always_ff @(posedge clk_i) begin
    if (!rst_ni) begin
      behind_q <= '0;
      owner_q  <= '0;
    end else begin
      owner_q <= grant;
      if (rd_rsp_i.ready) behind_q <= behind_q[Clients-2] ? '0 : {behind_q[Clients-2:0], 1'b1};
    end
  end

endmodule
