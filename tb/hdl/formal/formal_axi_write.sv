// SPDX-License-Identifier: Apache-2.0
//
// The write side of the memory port, whatever its clients ask for: it keeps the rules of AXI4, each
// burst has as many words as its address says, and nothing is begun that the guard has not allowed.

module formal_axi_write
  import npu_mem_pkg::*;
  import npu_stream_pkg::*;
  import npu_axi_pkg::*;
#(
  localparam int unsigned Clients = 2,
  localparam int unsigned Most = 3
) (
  input logic          clk_i,                // clock
  input logic          rst_ni,               // reset, active low
  input mem_req_t      req_i     [Clients],
  input mem_wdata_t    w_i       [Clients],
  input mem_settings_t settings_i,
  input stream_range_t stream_i,
  input logic          drain_i,
  input axi_wr_rsp_t   axi_rsp_i
);

  axi_wr_req_t axi, axi_q;
  axi_wr_rsp_t rsp_q;
  mem_req_t choice, choice_q;
  logic allowed, allowed_q;
  logic begun_q, live_q, offered, sent, ended, fresh;
  logic [2:0] open_q;  // bursts whose words are sent and that are not answered
  // Words - 1 that bursts have left, the oldest first
  logic [7:0] left_q[2];
  logic [1:0] bursts_q;

  npu_axi_write #(
    .NumClients(Clients),
    .MaxOutstanding(Most),
    .Engines({3'd5, 3'd2})
  ) u_write (
    .clk_i,
    .rst_ni,
    .req_i,
    .w_i,
    .rsp_o    (),
    .settings_i,
    .stream_i,
    .drain_i,
    .idle_o   (),
    .stuck_o  (),
    .error_o  (),
    .axi_req_o(axi),
    .axi_rsp_i
  );

  // Whose burst is next, and what the guard says of it
  npu_mem_choice #(
    .Write(1'b1),
    .NumClients(Clients)
  ) u_choice (
    .req_i,
    .regions_i(settings_i.regions),
    .stream_i,
    .choice_o (choice),
    .client_o (),
    .allowed_o(allowed)
  );

  // An address is offered for the first time.
  assign fresh = axi.awvalid && !(live_q && axi_q.awvalid && !rsp_q.awready);
  assign sent  = axi.wvalid && axi_rsp_i.wready;
  assign ended = sent && axi.wlast;

  initial begun_q = 1'b0;
  always_ff @(posedge clk_i) begin
    begun_q   <= 1'b1;
    live_q    <= begun_q && rst_ni;
    axi_q     <= axi;
    rsp_q     <= axi_rsp_i;
    choice_q  <= choice;
    allowed_q <= allowed;
    if (!rst_ni) begin
      open_q   <= '0;
      bursts_q <= '0;
    end else begin
      open_q   <= open_q + 3'(ended) - 3'(axi_rsp_i.bvalid && axi.bready);
      bursts_q <= bursts_q + 2'(fresh) - 2'(ended);
      if (ended) left_q[0] <= left_q[1];
      else if (sent) left_q[0] <= left_q[0] - 1'b1;
      if (fresh) left_q[(bursts_q-2'(ended))!='0] <= axi.awlen;
    end
  end

  always_comb begin
    assume (begun_q || !rst_ni);
    for (int c = 0; c < int'(Clients); c++) begin  // BurstInPage_A of the block
      assume (!req_i[c].valid || {1'b0, req_i[c].addr[11:4]} + {1'b0, req_i[c].len} < 9'd256);
      assume (req_i[c].addr[3:0] == '0);
    end
    assume (!axi_rsp_i.bvalid || open_q != '0);  // memory answers what it was given
    if (begun_q && rst_ni) begin
      Allowed_A :
      assert (!fresh || allowed_q && choice_q.valid && axi.awaddr == choice_q.addr &&
              axi.awlen == choice_q.len);
      InPage_A : assert (!axi.awvalid || {1'b0, axi.awaddr[11:4]} + {1'b0, axi.awlen} < 9'd256);
      AtMost_A : assert (open_q <= 3'(Most));
      WordsOfBurst_A : assert (!axi.wvalid || bursts_q != '0 && axi.wlast == (left_q[0] == '0));
      if (live_q) begin
        AddressStays_A :
        assert (!(axi_q.awvalid && !rsp_q.awready) ||
                axi.awvalid && axi.awid == axi_q.awid && axi.awaddr == axi_q.awaddr &&
                axi.awlen == axi_q.awlen);
        WordStays_A :
        assert (!(axi_q.wvalid && !rsp_q.wready) ||
                axi.wvalid && axi.wdata == axi_q.wdata && axi.wstrb == axi_q.wstrb &&
                axi.wlast == axi_q.wlast);
      end
    end
  end

endmodule
