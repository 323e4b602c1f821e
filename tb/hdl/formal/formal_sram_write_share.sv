// SPDX-License-Identifier: Apache-2.0
//
// Engines that share a write port of the SRAM: the port sees the write of one that asks, unchanged,
// that one alone is told, and one that goes on asking is taken before the port has taken as many
// others as there are clients.

module formal_sram_write_share
  import npu_sram_pkg::*;
#(
  localparam int unsigned Clients = 3
) (
  input logic               clk_i,              // clock
  input logic               rst_ni,             // reset, active low
  input sram_wr_req_t       wr_req_i[Clients],
  input logic               ready_i,            // of the SRAM
  input logic         [1:0] watch_i             // a client, any
);

  logic client_ready[Clients];
  sram_wr_req_t req;
  logic begun_q, ready;
  logic [1:0] watch_q;
  logic [Clients-1:0] taken;
  logic [2:0] others_q;

  assign ready = ready_i && req.valid;

  npu_sram_write_share #(
    .Clients(Clients)
  ) u_share (
    .clk_i,
    .rst_ni,
    .wr_req_i,
    .wr_ready_o(client_ready),
    .wr_req_o  (req),
    .wr_ready_i(ready)
  );

  always_comb begin
    for (int i = 0; i < int'(Clients); i++) taken[i] = client_ready[i];
  end

  initial begun_q = 1'b0;
  always_ff @(posedge clk_i) begin
    begun_q <= 1'b1;
    watch_q <= begun_q ? watch_q : watch_i;
    if (!rst_ni || !wr_req_i[watch_q].valid || taken[watch_q]) others_q <= '0;
    else others_q <= others_q + 3'(taken != '0);
  end

  always_comb begin
    assume (begun_q || !rst_ni);
    assume (watch_q < 2'(Clients));
    if (begun_q) begin
      OneTaken_A : assert ((taken & (taken - 1'b1)) == '0);
      SomeTaken_A : assert ((taken != '0) == ready);
      Unchanged_A : assert (!taken[watch_q] || req == wr_req_i[watch_q]);
      Fair_A : assert (others_q < 3'(Clients));
    end
  end

endmodule
