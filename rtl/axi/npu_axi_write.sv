// SPDX-License-Identifier: Apache-2.0
//
// Write side of the memory port: lets the clients share one AXI4 write channel, a whole burst at a
// time, lower numbers first. A client offers an address with its length and then exactly that many
// words; the AXI ID is the number of its engine. While `drain_i` is high no burst is started and a
// burst under way is completed with empty strobes, because its client may be gone; `idle_o` tells
// when the bus owes nothing any more.

module npu_axi_write
  import npu_pkg::*;
  import npu_isa_pkg::*;
#(
  parameter int unsigned NumClients = 1,
  parameter int unsigned MaxOutstanding = 16,
  parameter logic [NumClients-1:0][2:0] Engines = '0
) (
  input logic clk_i,
  input logic rst_ni,

  input  mem_req_t   req_i      [NumClients],
  output logic       req_ready_o[NumClients],
  input  mem_wdata_t w_i        [NumClients],
  output logic       w_ready_o  [NumClients],
  output logic       b_valid_o  [NumClients],

  // Protection
  input region_t          regions_i      [NumRegions],
  input mem_addr_t        stream_base_i,
  input logic      [31:0] stream_length_i,
  input logic      [23:0] timeout_i,

  input  logic   drain_i,
  output logic   idle_o,
  output logic   stuck_o,  // a wait has lasted too long
  output fault_t fault_o,  // meaningful while `drain_i` is low

  output logic             m_awvalid_o,
  input  logic             m_awready_i,
  output logic      [ 3:0] m_awid_o,
  output mem_addr_t        m_awaddr_o,
  output logic      [ 7:0] m_awlen_o,
  output logic             m_wvalid_o,
  input  logic             m_wready_i,
  output word_t            m_wdata_o,
  output logic      [15:0] m_wstrb_o,
  output logic             m_wlast_o,
  input  logic             m_bvalid_i,
  output logic             m_bready_o,
  input  logic      [ 3:0] m_bid_i,
  input  logic      [ 1:0] m_bresp_i
);

  localparam int unsigned CountW = $clog2(MaxOutstanding + 1);
  localparam int unsigned ClientW = (NumClients > 1) ? $clog2(NumClients) : 1;

  // The burst under way: its address is offered until taken, its words follow independently.
  logic aw_valid_q, burst_q;
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

  logic start, chosen_valid, allowed, w_take, w_room, w_done, b_take;
  logic [ClientW-1:0] chosen;

  always_comb begin
    chosen       = '0;
    chosen_valid = 1'b0;
    for (int unsigned c = NumClients; c > 0; c--) begin
      if (req_i[c-1].valid) begin
        chosen       = ClientW'(c - 1);
        chosen_valid = 1'b1;
      end
    end
  end

  npu_mem_guard #(
    .Write(1'b1)
  ) u_guard (
    .addr_i   (req_i[chosen].addr),
    .len_i    (req_i[chosen].len),
    .regions_i,
    .stream_base_i,
    .stream_length_i,
    .allowed_o(allowed)
  );

  assign w_room = !w_valid_q || m_wready_i;
  assign w_take = burst_q && w_room && (w_i[client_q].valid || drain_i);
  assign w_done = m_wvalid_o && m_wready_i && m_wlast_o;
  assign b_take = m_bvalid_i && m_bready_o;
  assign start  = chosen_valid && allowed && !drain_i && (!burst_q || (w_take && left_q == '0)) &&
                  (!aw_valid_q || m_awready_i) && outstanding_q != CountW'(MaxOutstanding);

  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) begin
      aw_valid_q    <= 1'b0;
      burst_q       <= 1'b0;
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
      if (m_awready_i) aw_valid_q <= 1'b0;
      if (m_wready_i) w_valid_q <= 1'b0;
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
        aw_place_q <= '{addr: req_i[chosen].addr, instr: req_i[chosen].instr};
        next_q     <= '{addr: req_i[chosen].addr, instr: req_i[chosen].instr};
        len_q      <= req_i[chosen].len;
        left_q     <= req_i[chosen].len;
      end
      if (start && !b_take) outstanding_q <= outstanding_q + 1'b1;
      if (!start && b_take) outstanding_q <= outstanding_q - 1'b1;
      if (w_done && !b_take) unanswered_q <= unanswered_q + 1'b1;
      if (!w_done && b_take) unanswered_q <= unanswered_q - 1'b1;
    end
  end

  assign idle_o      = outstanding_q == '0;
  assign m_awvalid_o = aw_valid_q;
  assign m_awid_o    = {1'b0, Engines[client_q]};
  assign m_awaddr_o  = aw_place_q.addr;
  assign m_awlen_o   = len_q;
  assign m_wvalid_o  = w_valid_q;
  assign m_wdata_o   = w_data_q;
  assign m_wstrb_o   = w_strb_q;
  assign m_wlast_o   = w_last_q;
  assign m_bready_o  = 1'b1;

  // The burst that a client's next response belongs to
  mem_place_t oldest[NumClients];
  logic [NumClients-1:0] expecting, mine;

  for (genvar c = 0; c < int'(NumClients); c++) begin : gen_client
    mem_place_t asked;

    assign asked          = '{addr: req_i[c].addr, instr: req_i[c].instr};
    assign req_ready_o[c] = start && chosen == ClientW'(c);
    assign w_ready_o[c]   = burst_q && w_room && !drain_i && client_q == ClientW'(c);
    assign mine[c]        = m_bvalid_i && m_bid_i == {1'b0, Engines[c]};
    assign b_valid_o[c]   = mine[c] && !drain_i;

    npu_fifo #(
      .DataT(mem_place_t),
      .Depth(MaxOutstanding)
    ) u_bursts (
      .clk_i,
      .rst_ni,
      .valid_i(req_ready_o[c]),
      .ready_o(),
      .data_i (asked),
      .valid_o(expecting[c]),
      .ready_i(mine[c]),
      .data_o (oldest[c]),
      .count_o()
    );
  end

  // ---------------------------------------------------------------------------------------------
  // Time-outs and faults
  // ---------------------------------------------------------------------------------------------
  logic aw_expired, w_expired, b_expired;

  npu_mem_timer u_aw_timer (
    .clk_i,
    .rst_ni,
    .waiting_i(m_awvalid_o && !m_awready_i),
    .limit_i  (timeout_i),
    .expired_o(aw_expired)
  );

  npu_mem_timer u_w_timer (
    .clk_i,
    .rst_ni,
    .waiting_i(m_wvalid_o && !m_wready_i),
    .limit_i  (timeout_i),
    .expired_o(w_expired)
  );

  npu_mem_timer u_b_timer (
    .clk_i,
    .rst_ni,
    .waiting_i(unanswered_q != '0 && !m_bvalid_i),
    .limit_i  (timeout_i),
    .expired_o(b_expired)
  );

  assign stuck_o = aw_expired || w_expired || b_expired;

  // Whose response it is that is bad or missing
  logic [ClientW-1:0] owner;
  always_comb begin
    owner = '0;
    for (int unsigned c = NumClients; c > 0; c--) begin
      if (m_bvalid_i ? mine[c-1] : expecting[c-1]) owner = ClientW'(c - 1);
    end
  end

  always_comb begin
    fault_o = '{
        valid: 1'b1,
        code: ErrTimeout,
        engine: engine_e'(Engines[owner]),
        instr: oldest[owner].instr,
        addr: oldest[owner].addr
    };
    if (m_bvalid_i && m_bresp_i[1]) begin
      fault_o.code = ErrWriteError;
    end else if (chosen_valid && !allowed) begin
      fault_o.code   = ErrRegion;
      fault_o.engine = engine_e'(Engines[chosen]);
      fault_o.instr  = req_i[chosen].instr;
      fault_o.addr   = req_i[chosen].addr;
    end else if (aw_expired) begin
      fault_o.engine = engine_e'(Engines[client_q]);
      fault_o.instr  = aw_place_q.instr;
      fault_o.addr   = aw_place_q.addr;
    end else if (w_expired) begin
      fault_o.engine = engine_e'(Engines[w_client_q]);
      fault_o.instr  = w_place_q.instr;
      fault_o.addr   = w_place_q.addr;
    end else if (!b_expired) begin
      fault_o = '0;
    end
  end

`ifndef SYNTHESIS
  for (genvar c = 0; c < int'(NumClients); c++) begin : gen_check
    assert property (@(posedge clk_i) disable iff (!rst_ni) req_i[c].valid |->
                     {1'b0, req_i[c].addr[11:4]} + {1'b0, req_i[c].len} < 9'd256)
    else $error("npu_axi_write: client %0d crosses a 4 KiB boundary", c);
  end
`endif

endmodule
