// SPDX-License-Identifier: Apache-2.0
//
// Engines that share a read port of the SRAM: the port sees the request of one that asks, unchanged;
// a word comes back to the one whose request was taken; and one that goes on asking is taken before
// the port has taken as many others as there are clients.

module formal_sram_share
  import npu_sram_pkg::*;
#(
  localparam int unsigned Clients = 3
) (
  input logic               clk_i,              // clock
  input logic               rst_ni,             // reset, active low
  input sram_rd_req_t       rd_req_i[Clients],
  input logic               ready_i,            // of the SRAM
  input logic               valid_i,
  input logic         [1:0] watch_i             // a client, any
);

  sram_rd_rsp_t client_rsp[Clients], rsp;
  sram_rd_req_t req;
  logic begun_q;
  logic [1:0] watch_q;
  logic [Clients-1:0] taken, owes_q, answered;
  logic [2:0] others_q;

  assign rsp = '{ready: ready_i && req.valid, valid: valid_i, data: '0};

  npu_sram_read_share #(
    .Clients(Clients)
  ) u_share (
    .clk_i,
    .rst_ni,
    .rd_req_i,
    .rd_rsp_o(client_rsp),
    .rd_req_o(req),
    .rd_rsp_i(rsp)
  );

  always_comb begin
    for (int i = 0; i < int'(Clients); i++) begin
      taken[i]    = client_rsp[i].ready;
      answered[i] = client_rsp[i].valid;
    end
  end

  initial begun_q = 1'b0;
  always_ff @(posedge clk_i) begin
    begun_q <= 1'b1;
    watch_q <= begun_q ? watch_q : watch_i;
    owes_q  <= rst_ni ? taken : '0;
    if (!rst_ni || !rd_req_i[watch_q].valid || taken[watch_q]) others_q <= '0;
    else others_q <= others_q + 3'(taken != '0);
  end

  always_comb begin
    assume (begun_q || !rst_ni);
    assume (watch_q < 2'(Clients));
    // The SRAM answers a request in the next cycle.
    assume (!begun_q || valid_i == (owes_q != '0));
    if (begun_q) begin
      OneTaken_A : assert ((taken & (taken - 1'b1)) == '0);
      OnlyAsking_A : assert (!taken[watch_q] || rd_req_i[watch_q].valid);
      SomeTaken_A : assert ((taken != '0) == rsp.ready);
      Unchanged_A : assert (!taken[watch_q] || req == rd_req_i[watch_q]);
      Answer_A : assert (answered == owes_q);
      Fair_A : assert (others_q < 3'(Clients));
    end
  end

endmodule
