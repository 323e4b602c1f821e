// SPDX-License-Identifier: Apache-2.0
//
// Write side of the memory port: lets the clients share one AXI4 write channel, a whole burst at a
// time, lower numbers first. A client offers an address with its length and then exactly that many
// words. While `drain_i` is high no burst is started and a burst under way is completed with empty
// strobes, because its client may be gone; `idle_o` tells when the bus owes nothing any more.

module npu_axi_write
  import npu_pkg::*;
#(
  parameter int unsigned NumClients = 1,
  parameter int unsigned MaxOutstanding = 16,
  parameter logic [NumClients-1:0][3:0] Ids = '0
) (
  input logic clk_i,
  input logic rst_ni,

  input  logic             aw_valid_i[NumClients],
  output logic             aw_ready_o[NumClients],
  input  mem_addr_t        aw_addr_i [NumClients],
  input  logic      [ 7:0] aw_len_i  [NumClients],
  input  logic             w_valid_i [NumClients],
  output logic             w_ready_o [NumClients],
  input  word_t            w_data_i  [NumClients],
  input  logic      [15:0] w_strb_i  [NumClients],
  output logic             b_valid_o [NumClients],

  input  logic drain_i,
  output logic idle_o,

  output logic      error_o,
  output mem_addr_t error_addr_o,

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
  mem_addr_t addr_q;
  logic [7:0] len_q, left_q;
  // One register in front of the write data channel keeps W stable.
  logic w_valid_q, w_last_q;
  word_t w_data_q;
  logic [15:0] w_strb_q;
  logic [CountW-1:0] outstanding_q;

  logic start, chosen_valid, w_take, w_room;
  logic [ClientW-1:0] chosen;

  always_comb begin
    chosen       = '0;
    chosen_valid = 1'b0;
    for (int unsigned c = NumClients; c > 0; c--) begin
      if (aw_valid_i[c-1]) begin
        chosen       = ClientW'(c - 1);
        chosen_valid = 1'b1;
      end
    end
  end

  assign w_room = !w_valid_q || m_wready_i;
  assign w_take = burst_q && w_room && (w_valid_i[client_q] || drain_i);
  assign start  = chosen_valid && !drain_i && (!burst_q || (w_take && left_q == '0)) &&
                  (!aw_valid_q || m_awready_i) && outstanding_q != CountW'(MaxOutstanding);

  for (genvar c = 0; c < int'(NumClients); c++) begin : gen_client
    assign aw_ready_o[c] = start && chosen == ClientW'(c);
    assign w_ready_o[c]  = burst_q && w_room && !drain_i && client_q == ClientW'(c);
    assign b_valid_o[c]  = m_bvalid_i && m_bid_i == Ids[c] && !drain_i;
  end

  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) begin
      aw_valid_q    <= 1'b0;
      burst_q       <= 1'b0;
      client_q      <= '0;
      addr_q        <= '0;
      len_q         <= '0;
      left_q        <= '0;
      w_valid_q     <= 1'b0;
      w_last_q      <= 1'b0;
      w_data_q      <= '0;
      w_strb_q      <= '0;
      outstanding_q <= '0;
    end else begin
      if (m_awready_i) aw_valid_q <= 1'b0;
      if (m_wready_i) w_valid_q <= 1'b0;
      if (w_take) begin
        w_valid_q <= 1'b1;
        w_data_q  <= w_data_i[client_q];
        w_strb_q  <= drain_i ? '0 : w_strb_i[client_q];
        w_last_q  <= left_q == '0;
        left_q    <= left_q - 1'b1;
        if (left_q == '0) burst_q <= 1'b0;
      end
      if (start) begin
        aw_valid_q <= 1'b1;
        burst_q    <= 1'b1;
        client_q   <= chosen;
        addr_q     <= aw_addr_i[chosen];
        len_q      <= aw_len_i[chosen];
        left_q     <= aw_len_i[chosen];
      end
      if (start && !(m_bvalid_i && m_bready_o)) outstanding_q <= outstanding_q + 1'b1;
      if (!start && m_bvalid_i && m_bready_o) outstanding_q <= outstanding_q - 1'b1;
    end
  end

  assign idle_o      = outstanding_q == '0;
  assign m_awvalid_o = aw_valid_q;
  assign m_awid_o    = Ids[client_q];
  assign m_awaddr_o  = addr_q;
  assign m_awlen_o   = len_q;
  assign m_wvalid_o  = w_valid_q;
  assign m_wdata_o   = w_data_q;
  assign m_wstrb_o   = w_strb_q;
  assign m_wlast_o   = w_last_q;
  assign m_bready_o  = 1'b1;

  // Start addresses of the bursts that await their response, for the error report
  mem_addr_t oldest_addr;
  npu_fifo #(
    .DataT(mem_addr_t),
    .Depth(MaxOutstanding)
  ) u_bursts (
    .clk_i,
    .rst_ni,
    .valid_i(start),
    .ready_o(),
    .data_i (aw_addr_i[chosen]),
    .valid_o(),
    .ready_i(m_bvalid_i),
    .data_o (oldest_addr),
    .count_o()
  );

  assign error_o      = m_bvalid_i && m_bresp_i[1] && !drain_i;
  assign error_addr_o = oldest_addr;

`ifndef SYNTHESIS
  for (genvar c = 0; c < int'(NumClients); c++) begin : gen_check
    assert property (@(posedge clk_i) disable iff (!rst_ni) aw_valid_i[c] |->
                     {1'b0, aw_addr_i[c][11:4]} + {1'b0, aw_len_i[c]} < 9'd256)
    else $error("npu_axi_write: client %0d crosses a 4 KiB boundary", c);
  end
`endif

endmodule
