// SPDX-License-Identifier: Apache-2.0
//
// The read side of the memory port, whatever its clients ask for: it keeps the rules of AXI4, and
// asks for nothing that the guard has not allowed.

module formal_axi_read
  import npu_mem_pkg::*;
  import npu_axi_pkg::*;
#(
  localparam int unsigned Clients = 2,
  localparam int unsigned Most = 3
) (
  input logic          clk_i,                // clock
  input logic          rst_ni,               // reset, active low
  input mem_req_t      req_i     [Clients],
  input mem_settings_t settings_i,
  input logic          drain_i,
  input axi_rd_rsp_t   axi_rsp_i
);

  axi_rd_req_t axi, axi_q;
  axi_rd_rsp_t rsp_q;
  mem_req_t choice, choice_q;
  logic allowed, allowed_q;
  logic begun_q, live_q, fresh, drain_q, draining_q;
  logic [2:0] open_q;  // bursts that the memory has accepted and not finished

  npu_axi_read #(
    .NumClients(Clients),
    .MaxOutstanding(Most),
    .Engines({3'd5, 3'd2})
  ) u_read (
    .clk_i,
    .rst_ni,
    .req_i,
    .rsp_o    (),
    .settings_i,
    .drain_i,
    .idle_o   (),
    .stuck_o  (),
    .error_o  (),
    .on_bus_o (),
    .axi_req_o(axi),
    .axi_rsp_i
  );

  // Whose burst is next, and what the guard says of it
  npu_mem_choice #(
    .Write(1'b0),
    .NumClients(Clients)
  ) u_choice (
    .req_i,
    .regions_i(settings_i.regions),
    .stream_i ('0),
    .choice_o (choice),
    .client_o (),
    .allowed_o(allowed)
  );

  // An address is offered for the first time.
  assign fresh = axi.arvalid && !(live_q && axi_q.arvalid && !rsp_q.arready);

  initial begun_q = 1'b0;
  always_ff @(posedge clk_i) begin
    begun_q    <= 1'b1;
    live_q     <= begun_q && rst_ni;
    axi_q      <= axi;
    rsp_q      <= axi_rsp_i;
    choice_q   <= choice;
    allowed_q  <= allowed;
    drain_q    <= drain_i;
    draining_q <= drain_q;
    if (!rst_ni) open_q <= '0;
    else begin
      open_q <= open_q + 3'(axi.arvalid && axi_rsp_i.arready) -
                3'(axi_rsp_i.rvalid && axi.rready && axi_rsp_i.rlast);
    end
  end

  always_comb begin
    assume (begun_q || !rst_ni);
    for (int c = 0; c < int'(Clients); c++) begin  // BurstInPage_A of the block
      assume (!req_i[c].valid || {1'b0, req_i[c].addr[11:4]} + {1'b0, req_i[c].len} < 9'd256);
      assume (req_i[c].addr[3:0] == '0);
    end
    assume (!axi_rsp_i.rvalid || open_q != '0);  // memory answers what it was asked for
    if (begun_q && rst_ni) begin
      Allowed_A :
      assert (!fresh || allowed_q && choice_q.valid && axi.araddr == choice_q.addr &&
              axi.arlen == choice_q.len);
      InPage_A : assert (!axi.arvalid || {1'b0, axi.araddr[11:4]} + {1'b0, axi.arlen} < 9'd256);
      AtMost_A : assert (open_q <= 3'(Most));
      if (live_q) begin
        Stays_A :
        assert (!(axi_q.arvalid && !rsp_q.arready) ||
                axi.arvalid && axi.arid == axi_q.arid && axi.araddr == axi_q.araddr &&
                axi.arlen == axi_q.arlen);
        Drained_A :
        assert (!(drain_q && draining_q && axi.arvalid) || axi_q.arvalid && !rsp_q.arready);
      end
    end
  end

endmodule
