// SPDX-License-Identifier: Apache-2.0
//
// Read side of the memory port: lets the clients share one AXI4 read channel. A client asks for
// bursts that stay inside a 4 KiB page and for which it has room, so data is never refused. Lower
// numbers go first; the AXI ID is the number of the client's engine. A word with an error response
// reaches nobody. While `drain_i` is high nothing new is issued and what comes back is dropped;
// `idle_o` tells when the bus owes nothing any more.

module npu_axi_read
  import npu_pkg::*;
  import npu_isa_pkg::*;
#(
  parameter int unsigned NumClients = 3,
  parameter int unsigned MaxOutstanding = 16,
  parameter logic [NumClients-1:0][2:0] Engines = '0
) (
  input logic clk_i,
  input logic rst_ni,

  input  mem_req_t req_i      [NumClients],
  output logic     req_ready_o[NumClients],
  output logic     r_valid_o  [NumClients],
  output word_t    r_data_o,

  // Protection
  input region_t        regions_i[NumRegions],
  input logic    [23:0] timeout_i,

  input  logic   drain_i,
  output logic   idle_o,
  output logic   stuck_o,  // a wait has lasted too long
  output fault_t fault_o,  // meaningful while `drain_i` is low
  output logic   on_bus_o, // the memory has accepted a burst that it has not finished

  output logic            m_arvalid_o,
  input  logic            m_arready_i,
  output logic      [3:0] m_arid_o,
  output mem_addr_t       m_araddr_o,
  output logic      [7:0] m_arlen_o,
  input  logic            m_rvalid_i,
  output logic            m_rready_o,
  input  logic      [3:0] m_rid_i,
  input  word_t           m_rdata_i,
  input  logic      [1:0] m_rresp_i,
  input  logic            m_rlast_i
);

  localparam int unsigned CountW = $clog2(MaxOutstanding + 1);
  localparam int unsigned ClientW = (NumClients > 1) ? $clog2(NumClients) : 1;

  logic ar_valid_q;
  logic [ClientW-1:0] ar_client_q;
  logic [7:0] ar_len_q;
  mem_place_t ar_place_q;
  logic [CountW-1:0] outstanding_q;

  // One address register in front of the bus keeps AR stable whatever a client does.
  logic can_accept, chosen_valid, allowed;
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
    .Write(1'b0)
  ) u_guard (
    .addr_i         (req_i[chosen].addr),
    .len_i          (req_i[chosen].len),
    .regions_i,
    .stream_base_i  ('0),
    .stream_length_i('0),
    .allowed_o      (allowed)
  );

  assign can_accept = (!ar_valid_q || m_arready_i) && outstanding_q != CountW'(MaxOutstanding) &&
                      !drain_i && allowed;

  logic accept, complete;
  assign accept   = can_accept && chosen_valid;
  assign complete = m_rvalid_i && m_rready_o && m_rlast_i;

  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) begin
      ar_valid_q    <= 1'b0;
      ar_client_q   <= '0;
      ar_len_q      <= '0;
      ar_place_q    <= '0;
      outstanding_q <= '0;
    end else begin
      if (accept) begin
        ar_valid_q  <= 1'b1;
        ar_client_q <= chosen;
        ar_len_q    <= req_i[chosen].len;
        ar_place_q  <= '{addr: req_i[chosen].addr, instr: req_i[chosen].instr};
      end else if (m_arready_i) begin
        ar_valid_q <= 1'b0;
      end
      if (accept && !complete) outstanding_q <= outstanding_q + 1'b1;
      if (complete && !accept) outstanding_q <= outstanding_q - 1'b1;
    end
  end

  assign idle_o      = outstanding_q == '0;
  assign m_arvalid_o = ar_valid_q;
  assign m_arid_o    = {1'b0, Engines[ar_client_q]};
  assign m_araddr_o  = ar_place_q.addr;
  assign m_arlen_o   = ar_len_q;
  assign m_rready_o  = 1'b1;
  assign r_data_o    = m_rdata_i;

  // The place in memory that a client receives next: burst starts are queued per client.
  mem_place_t next[NumClients];
  logic [NumClients-1:0] expecting, mine;

  for (genvar c = 0; c < int'(NumClients); c++) begin : gen_client
    mem_place_t asked, burst;
    logic [CountW-1:0] count;
    logic [7:0] beat_q;

    assign req_ready_o[c] = accept && chosen == ClientW'(c);
    assign mine[c]        = m_rvalid_i && m_rid_i == {1'b0, Engines[c]};
    assign r_valid_o[c]   = mine[c] && !m_rresp_i[1] && !drain_i;
    assign asked          = '{addr: req_i[c].addr, instr: req_i[c].instr};
    // A burst in the address register is not yet the memory's.
    assign expecting[c]   = count > CountW'(ar_valid_q && ar_client_q == ClientW'(c));
    assign next[c]        = '{addr: burst.addr + {20'b0, beat_q, 4'b0}, instr: burst.instr};

    npu_fifo #(
      .DataT(mem_place_t),
      .Depth(MaxOutstanding)
    ) u_bursts (
      .clk_i,
      .rst_ni,
      .valid_i(req_ready_o[c]),
      .ready_o(),
      .data_i (asked),
      .valid_o(),
      .ready_i(mine[c] && m_rlast_i),
      .data_o (burst),
      .count_o(count)
    );

    always_ff @(posedge clk_i or negedge rst_ni) begin
      if (!rst_ni) beat_q <= '0;
      else if (mine[c]) beat_q <= m_rlast_i ? '0 : beat_q + 1'b1;
    end
  end

  // ---------------------------------------------------------------------------------------------
  // Time-outs and faults
  // ---------------------------------------------------------------------------------------------
  logic ar_expired, r_expired;
  assign on_bus_o = outstanding_q > CountW'(ar_valid_q);

  npu_mem_timer u_ar_timer (
    .clk_i,
    .rst_ni,
    .waiting_i(m_arvalid_o && !m_arready_i),
    .limit_i  (timeout_i),
    .expired_o(ar_expired)
  );

  npu_mem_timer u_r_timer (
    .clk_i,
    .rst_ni,
    .waiting_i(on_bus_o && !m_rvalid_i),
    .limit_i  (timeout_i),
    .expired_o(r_expired)
  );

  assign stuck_o = ar_expired || r_expired;

  // Whose data it is that is bad or missing
  logic [ClientW-1:0] owner;
  always_comb begin
    owner = '0;
    for (int unsigned c = NumClients; c > 0; c--) begin
      if (m_rvalid_i ? mine[c-1] : expecting[c-1]) owner = ClientW'(c - 1);
    end
  end

  always_comb begin
    fault_o = '{
        valid: 1'b1,
        code: ErrReadError,
        engine: engine_e'(Engines[owner]),
        instr: next[owner].instr,
        addr: next[owner].addr
    };
    if (m_rvalid_i && m_rresp_i[1]) begin
      fault_o.code = ErrReadError;
    end else if (chosen_valid && !allowed) begin
      fault_o.code   = ErrRegion;
      fault_o.engine = engine_e'(Engines[chosen]);
      fault_o.instr  = req_i[chosen].instr;
      fault_o.addr   = req_i[chosen].addr;
    end else if (ar_expired) begin
      fault_o.code   = ErrTimeout;
      fault_o.engine = engine_e'(Engines[ar_client_q]);
      fault_o.instr  = ar_place_q.instr;
      fault_o.addr   = ar_place_q.addr;
    end else if (r_expired) begin
      fault_o.code = ErrTimeout;
    end else begin
      fault_o = '0;
    end
  end

`ifndef SYNTHESIS
  for (genvar c = 0; c < int'(NumClients); c++) begin : gen_check
    // A burst stays inside its 4 KiB page.
    assert property (@(posedge clk_i) disable iff (!rst_ni) req_i[c].valid |->
                     {1'b0, req_i[c].addr[11:4]} + {1'b0, req_i[c].len} < 9'd256)
    else $error("npu_axi_read: client %0d crosses a 4 KiB boundary", c);
  end
`endif

endmodule
