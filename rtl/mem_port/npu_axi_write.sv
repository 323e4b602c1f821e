// SPDX-License-Identifier: Apache-2.0
//
// Write side of the memory port: lets the clients share one AXI4 write channel, a whole burst at a
// time, lower numbers first. A client offers an address with its length and then exactly that many
// words; the AXI ID is the number of its engine. A burst is started before it is known whether it may
// go: in the cycle after, one that may not is reported and gone. While `drain_i` is high no burst is
// started and a burst under way is completed with empty strobes, because its client may be gone;
// `idle_o` tells when the bus owes nothing any more.

module npu_axi_write
  import npu_pkg::*;
  import npu_mem_pkg::*;
  import npu_stream_pkg::*;
  import npu_isa_pkg::*;
#(
  parameter int unsigned NumClients = 1,  // 1 to 8
  parameter int unsigned MaxOutstanding = 16,  // bursts begun and not answered, at least 1
  parameter logic [NumClients-1:0][2:0] Engines = '0  // engine of each client, all different
) (
  input logic clk_i,  // clock
  input logic rst_ni, // reset, active low

  input  mem_req_t    req_i[NumClients],  // a burst inside a 4 KiB page; may be withdrawn
  input  mem_wdata_t  w_i  [NumClients],  // words of the bursts, in order; may be withdrawn
  output mem_wr_rsp_t rsp_o[NumClients],  // ready only with valid, word_ready without

  // Protection
  input mem_settings_t settings_i,  // levels: regions for new requests, limit of waits in cycles
  input stream_range_t stream_i,    // a level: no writes to these bytes; none if the length is 0

  input  logic   drain_i,  // a level: starts no burst, ends the one under way, drops answers
  output logic   idle_o,   // a level: no burst is begun and not answered
  output logic   stuck_o,  // a level: a wait is longer than settings_i.timeout; falls with it
  output error_t error_o,  // a cycle or as long as its cause lasts; counts while drain_i is low

  output npu_axi_pkg::axi_wr_req_t axi_req_o,  // stays until taken, stable; B always taken
  input  npu_axi_pkg::axi_wr_rsp_t axi_rsp_i   // ready may depend on valid
);

  localparam int unsigned CountW = $clog2(MaxOutstanding + 1);
  localparam int unsigned ClientW = npu_axi_pkg::client_bits(NumClients);

  // The burst under way: its address is offered until taken, its words follow independently.
  logic aw_valid_q, burst_q, new_q, denied_q;
  logic [ClientW-1:0] client_q;
  mem_place_t aw_place_q, next_q;  // of the burst, of its next word
  logic [7:0] len_q, left_q;
  // One register in front of the write data channel keeps W stable.
  logic w_valid_q, w_last_q;
  logic [ClientW-1:0] w_client_q;
  mem_place_t w_place_q;
  word_t w_data_q;
  logic [15:0] w_strb_q;
  logic [CountW-1:0] outstanding_q, unanswered_q;  // bursts started, bursts whose words are sent

  logic start, started, allowed, w_take, w_room, w_done, b_take;
  logic [ClientW-1:0] chosen;
  mem_req_t choice;
  logic [CountW-1:0] known;

  npu_mem_choice #(
    .Write     (1'b1),
    .NumClients(NumClients)
  ) u_choice (
    .req_i,
    .regions_i(settings_i.regions),
    .stream_i,
    .choice_o (choice),
    .client_o (chosen),
    .allowed_o(allowed)
  );

  assign w_room = !w_valid_q || axi_rsp_i.wready;
  assign w_take = burst_q && !denied_q && w_room && (w_i[client_q].valid || drain_i);
  assign w_done = axi_req_o.wvalid && axi_rsp_i.wready && axi_req_o.wlast;
  assign b_take = axi_rsp_i.bvalid && axi_req_o.bready;
  assign start  = choice.valid && !denied_q && !drain_i && (!burst_q || (w_take && left_q == '0)) &&
                  (!aw_valid_q || axi_rsp_i.awready) && known != CountW'(MaxOutstanding);
  // A new burst counts as started in the cycle after its start.
  assign started = new_q && !denied_q;
  assign known = outstanding_q + CountW'(new_q);

  always_ff @(posedge clk_i) begin
    if (!rst_ni) begin
      aw_valid_q    <= 1'b0;
      burst_q       <= 1'b0;
      new_q         <= 1'b0;
      denied_q      <= 1'b0;
      client_q      <= '0;
      aw_place_q    <= '0;
      next_q        <= '0;
      len_q         <= '0;
      left_q        <= '0;
      w_valid_q     <= 1'b0;
      w_last_q      <= 1'b0;
      w_client_q    <= '0;
      w_place_q     <= '0;
      w_data_q      <= '0;
      w_strb_q      <= '0;
      outstanding_q <= '0;
      unanswered_q  <= '0;
    end else begin
      new_q    <= start;
      denied_q <= start && !allowed;
      if (axi_rsp_i.awready || denied_q) aw_valid_q <= 1'b0;
      if (denied_q) burst_q <= 1'b0;
      if (axi_rsp_i.wready) w_valid_q <= 1'b0;
      if (w_take) begin
        w_valid_q   <= 1'b1;
        w_client_q  <= client_q;
        w_place_q   <= next_q;
        w_data_q    <= w_i[client_q].data;
        w_strb_q    <= drain_i ? '0 : w_i[client_q].strb;
        w_last_q    <= left_q == '0;
        next_q.addr <= next_q.addr + 32'(WordBytes);
        left_q      <= left_q - 1'b1;
        if (left_q == '0) burst_q <= 1'b0;
      end
      if (start) begin
        aw_valid_q <= 1'b1;
        burst_q    <= 1'b1;
        client_q   <= chosen;
        aw_place_q <= '{addr: choice.addr, instr: choice.instr};
        next_q     <= '{addr: choice.addr, instr: choice.instr};
        len_q      <= choice.len;
        left_q     <= choice.len;
      end
      if (started && !b_take) outstanding_q <= outstanding_q + 1'b1;
      if (!started && b_take) outstanding_q <= outstanding_q - 1'b1;
      if (w_done && !b_take) unanswered_q <= unanswered_q + 1'b1;
      if (!w_done && b_take) unanswered_q <= unanswered_q - 1'b1;
    end
  end

  assign idle_o            = known == '0;
  assign axi_req_o.awvalid = aw_valid_q && !denied_q;
  assign axi_req_o.awid    = {1'b0, Engines[client_q]};
  assign axi_req_o.awaddr  = aw_place_q.addr;
  assign axi_req_o.awlen   = len_q;
  assign axi_req_o.wvalid  = w_valid_q;
  assign axi_req_o.wdata   = w_data_q;
  assign axi_req_o.wstrb   = w_strb_q;
  assign axi_req_o.wlast   = w_last_q;
  assign axi_req_o.bready  = 1'b1;

  // The burst that a client's next response belongs to
  mem_place_t oldest[NumClients];
  logic [NumClients-1:0] expecting, mine;

  for (genvar c = 0; c < int'(NumClients); c++) begin : gen_client
    assign rsp_o[c].ready = start && chosen == ClientW'(c);
    assign rsp_o[c].word_ready = burst_q && !denied_q && w_room && !drain_i &&
                                 client_q == ClientW'(c);
    assign mine[c] = axi_rsp_i.bvalid && axi_rsp_i.bid == {1'b0, Engines[c]};
    assign rsp_o[c].done = mine[c] && !drain_i;

    npu_fifo #(
      .DataT(mem_place_t),
      .Depth(MaxOutstanding)
    ) u_bursts (
      .clk_i,
      .rst_ni,
      .valid_i(started && client_q == ClientW'(c)),
      .ready_o(),
      .data_i (aw_place_q),
      .valid_o(expecting[c]),
      .ready_i(mine[c]),
      .data_o (oldest[c])
    );
  end

  // ---------------------------------------------------------------------------------------------
  // Time-outs and errors
  // ---------------------------------------------------------------------------------------------
  logic aw_expired, w_expired, b_expired;

  npu_mem_timer u_aw_timer (
    .clk_i,
    .rst_ni,
    .waiting_i(axi_req_o.awvalid && !axi_rsp_i.awready),
    .limit_i  (settings_i.timeout),
    .expired_o(aw_expired)
  );

  npu_mem_timer u_w_timer (
    .clk_i,
    .rst_ni,
    .waiting_i(axi_req_o.wvalid && !axi_rsp_i.wready),
    .limit_i  (settings_i.timeout),
    .expired_o(w_expired)
  );

  npu_mem_timer u_b_timer (
    .clk_i,
    .rst_ni,
    .waiting_i(unanswered_q != '0 && !axi_rsp_i.bvalid),
    .limit_i  (settings_i.timeout),
    .expired_o(b_expired)
  );

  assign stuck_o = aw_expired || w_expired || b_expired;

  // Whose response it is that is bad or missing
  logic [ClientW-1:0] owner;
  assign owner = ClientW'(npu_axi_pkg::first_of(8'(axi_rsp_i.bvalid ? mine : expecting)));

  always_comb begin
    error_o = '{
        valid: 1'b1,
        code: ErrTimeout,
        engine: engine_e'(Engines[owner]),
        instr: oldest[owner].instr,
        addr: oldest[owner].addr
    };
    if (axi_rsp_i.bvalid && axi_rsp_i.bresp[1]) begin
      error_o.code = ErrWriteError;
    end else if (denied_q || aw_expired) begin
      if (denied_q) error_o.code = ErrRegion;
      error_o.engine = engine_e'(Engines[client_q]);
      error_o.instr  = aw_place_q.instr;
      error_o.addr   = aw_place_q.addr;
    end else if (w_expired) begin
      error_o.engine = engine_e'(Engines[w_client_q]);
      error_o.instr  = w_place_q.instr;
      error_o.addr   = w_place_q.addr;
    end else if (!b_expired) begin
      error_o = '0;
    end
  end

`ifndef SYNTHESIS
  for (genvar c = 0; c < int'(NumClients); c++) begin : gen_check
    BurstInPage_A :
    assert property (@(posedge clk_i) disable iff (!rst_ni) req_i[c].valid |->
                     {1'b0, req_i[c].addr[11:4]} + {1'b0, req_i[c].len} < 9'd256)
    else $error("npu_axi_write: client %0d crosses a 4 KiB boundary", c);
  end
`endif

endmodule
