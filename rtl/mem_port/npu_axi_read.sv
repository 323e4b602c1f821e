// SPDX-License-Identifier: Apache-2.0
//
// Read side of the memory port: lets the clients share one AXI4 read channel. A client asks for
// bursts that stay inside a 4 KiB page and for which it has room, so data is never refused. Lower
// numbers go first; the AXI ID is the number of the client's engine. A word with an error response
// reaches nobody. A burst is accepted before it is known whether it may go: in the cycle after, one
// that may not is reported and gone. While `drain_i` is high nothing new is issued and what comes back
// is dropped; `idle_o` tells when the bus owes nothing any more.

module npu_axi_read
  import npu_pkg::*;
  import npu_mem_pkg::*;
  import npu_isa_pkg::*;
#(
  parameter int unsigned NumClients = 3,  // 1 to 8
  parameter int unsigned MaxOutstanding = 16,  // bursts asked for and not finished, at least 1
  parameter logic [NumClients-1:0][2:0] Engines = '0  // engine of each client, all different
) (
  input logic clk_i,  // clock
  input logic rst_ni, // reset, active low

  input  mem_req_t    req_i[NumClients],  // a burst inside a 4 KiB page; may be withdrawn
  output mem_rd_rsp_t rsp_o[NumClients],  // ready only with valid; words cannot be refused

  // Protection
  input mem_settings_t settings_i,  // levels: regions for new requests, limit of waits in cycles

  input  logic   drain_i,  // a level: takes no request, drops what comes back
  output logic   idle_o,   // a level: no burst is asked for and not finished
  output logic   stuck_o,  // a level: a wait is longer than settings_i.timeout; falls with it
  output error_t error_o,  // a cycle or as long as its cause lasts; counts while drain_i is low
  output logic   on_bus_o, // a level: the memory has accepted a burst that it has not finished

  output npu_axi_pkg::axi_rd_req_t axi_req_o,  // stays until taken, stable; R always taken
  input  npu_axi_pkg::axi_rd_rsp_t axi_rsp_i   // ready may depend on valid
);

  localparam int unsigned CountW = $clog2(MaxOutstanding + 1);
  localparam int unsigned ClientW = npu_axi_pkg::client_bits(NumClients);

  logic ar_valid_q, ar_new_q, ar_denied_q;
  logic [ClientW-1:0] ar_client_q;
  logic [7:0] ar_len_q;
  mem_place_t ar_place_q;
  logic [CountW-1:0] outstanding_q;

  // One address register in front of the bus keeps AR stable whatever a client does.
  logic allowed;
  logic [ClientW-1:0] chosen;
  mem_req_t choice;

  npu_mem_choice #(
    .Write     (1'b0),
    .NumClients(NumClients)
  ) u_choice (
    .req_i,
    .regions_i(settings_i.regions),
    .stream_i ('0),
    .choice_o (choice),
    .client_o (chosen),
    .allowed_o(allowed)
  );

  // A new burst counts as asked for in the cycle in which it is in the register for the first time.
  logic accept, asked, complete;
  logic [CountW-1:0] known;
  assign asked = ar_new_q && !ar_denied_q;
  assign known = outstanding_q + CountW'(ar_new_q);
  assign accept   = choice.valid && !ar_denied_q && !drain_i && known != CountW'(MaxOutstanding) &&
                    (!ar_valid_q || axi_rsp_i.arready);
  assign complete = axi_rsp_i.rvalid && axi_req_o.rready && axi_rsp_i.rlast;

  always_ff @(posedge clk_i) begin
    if (!rst_ni) begin
      ar_valid_q    <= 1'b0;
      ar_new_q      <= 1'b0;
      ar_denied_q   <= 1'b0;
      ar_client_q   <= '0;
      ar_len_q      <= '0;
      ar_place_q    <= '0;
      outstanding_q <= '0;
    end else begin
      ar_new_q    <= accept;
      ar_denied_q <= accept && !allowed;
      if (accept) begin
        ar_valid_q  <= 1'b1;
        ar_client_q <= chosen;
        ar_len_q    <= choice.len;
        ar_place_q  <= '{addr: choice.addr, instr: choice.instr};
      end else if (axi_rsp_i.arready || ar_denied_q) begin
        ar_valid_q <= 1'b0;
      end
      if (asked && !complete) outstanding_q <= outstanding_q + 1'b1;
      if (complete && !asked) outstanding_q <= outstanding_q - 1'b1;
    end
  end

  assign idle_o            = known == '0;
  assign axi_req_o.arvalid = ar_valid_q && !ar_denied_q;
  assign axi_req_o.arid    = {1'b0, Engines[ar_client_q]};
  assign axi_req_o.araddr  = ar_place_q.addr;
  assign axi_req_o.arlen   = ar_len_q;
  assign axi_req_o.rready  = 1'b1;

  // The place in memory that a client receives next: burst starts are queued per client.
  mem_place_t next[NumClients];
  logic [NumClients-1:0] expecting, mine;

  for (genvar c = 0; c < int'(NumClients); c++) begin : gen_client
    mem_place_t burst;
    logic [CountW-1:0] count;
    logic [7:0] beat_q;
    logic waits;

    assign rsp_o[c].ready = accept && chosen == ClientW'(c);
    assign mine[c]        = axi_rsp_i.rvalid && axi_rsp_i.rid == {1'b0, Engines[c]};
    assign rsp_o[c].valid = mine[c] && !axi_rsp_i.rresp[1] && !drain_i;
    assign rsp_o[c].data  = axi_rsp_i.rdata;
    // A burst in the address register is not yet the memory's.
    assign waits          = ar_valid_q && !ar_new_q && ar_client_q == ClientW'(c);
    assign expecting[c]   = count > CountW'(waits);
    assign next[c]        = '{addr: burst.addr + {20'b0, beat_q, 4'b0}, instr: burst.instr};

    npu_flush_fifo #(
      .DataT(mem_place_t),
      .Depth(MaxOutstanding)
    ) u_bursts (
      .clk_i,
      .rst_ni,
      .flush_i(1'b0),
      .valid_i(asked && ar_client_q == ClientW'(c)),
      .ready_o(),
      .data_i (ar_place_q),
      .valid_o(),
      .ready_i(mine[c] && axi_rsp_i.rlast),
      .data_o (burst),
      .count_o(count)
    );

    always_ff @(posedge clk_i) begin
      if (!rst_ni) beat_q <= '0;
      else if (mine[c]) beat_q <= axi_rsp_i.rlast ? '0 : beat_q + 1'b1;
    end
  end

  // ---------------------------------------------------------------------------------------------
  // Time-outs and errors
  // ---------------------------------------------------------------------------------------------
  logic ar_expired, r_expired;
  assign on_bus_o = outstanding_q > CountW'(ar_valid_q && !ar_new_q);

  npu_mem_timer u_ar_timer (
    .clk_i,
    .rst_ni,
    .waiting_i(axi_req_o.arvalid && !axi_rsp_i.arready),
    .limit_i  (settings_i.timeout),
    .expired_o(ar_expired)
  );

  npu_mem_timer u_r_timer (
    .clk_i,
    .rst_ni,
    .waiting_i(on_bus_o && !axi_rsp_i.rvalid),
    .limit_i  (settings_i.timeout),
    .expired_o(r_expired)
  );

  assign stuck_o = ar_expired || r_expired;

  // Whose data it is that is bad or missing
  logic [ClientW-1:0] owner;
  assign owner = ClientW'(npu_axi_pkg::first_of(8'(axi_rsp_i.rvalid ? mine : expecting)));

  always_comb begin
    error_o = '{
        valid: 1'b1,
        code: ErrReadError,
        engine: engine_e'(Engines[owner]),
        instr: next[owner].instr,
        addr: next[owner].addr
    };
    if (axi_rsp_i.rvalid && axi_rsp_i.rresp[1]) begin
      error_o.code = ErrReadError;
    end else if (ar_denied_q || ar_expired) begin
      error_o.code   = ar_denied_q ? ErrRegion : ErrTimeout;
      error_o.engine = engine_e'(Engines[ar_client_q]);
      error_o.instr  = ar_place_q.instr;
      error_o.addr   = ar_place_q.addr;
    end else if (r_expired) begin
      error_o.code = ErrTimeout;
    end else begin
      error_o = '0;
    end
  end

`ifndef SYNTHESIS
  for (genvar c = 0; c < int'(NumClients); c++) begin : gen_check
    // A burst stays inside its 4 KiB page.
    BurstInPage_A :
    assert property (@(posedge clk_i) disable iff (!rst_ni) req_i[c].valid |->
                     {1'b0, req_i[c].addr[11:4]} + {1'b0, req_i[c].len} < 9'd256)
    else $error("npu_axi_read: client %0d crosses a 4 KiB boundary", c);
  end
`endif

endmodule
