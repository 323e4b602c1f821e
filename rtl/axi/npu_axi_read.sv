// SPDX-License-Identifier: Apache-2.0
//
// Read side of the memory port: lets the clients share one AXI4 read channel. A client asks for
// bursts that stay inside a 4 KiB page and for which it has room, so data is never refused. Lower
// numbers go first; the AXI ID is the client's IdBase entry. While `drain_i` is high nothing new is
// issued and what comes back is dropped; `idle_o` tells when the bus owes nothing any more.

module npu_axi_read
  import npu_pkg::*;
#(
  parameter int unsigned NumClients = 3,
  parameter int unsigned MaxOutstanding = 16,
  parameter logic [NumClients-1:0][3:0] Ids = '0
) (
  input logic clk_i,
  input logic rst_ni,

  input  logic            ar_valid_i[NumClients],
  output logic            ar_ready_o[NumClients],
  input  mem_addr_t       ar_addr_i [NumClients],
  input  logic      [7:0] ar_len_i  [NumClients],

  output logic  r_valid_o[NumClients],
  output word_t r_data_o,

  input  logic drain_i,
  output logic idle_o,

  // First beat with an error response: one pulse per bad beat
  output logic            error_o,
  output logic      [3:0] error_id_o,
  output mem_addr_t       error_addr_o,

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
  mem_addr_t ar_addr_q;
  logic [7:0] ar_len_q;
  logic [CountW-1:0] outstanding_q;

  // One address register in front of the bus keeps AR stable whatever a client does.
  logic can_accept, chosen_valid;
  logic [ClientW-1:0] chosen;

  assign can_accept = (!ar_valid_q || m_arready_i) && outstanding_q != CountW'(MaxOutstanding) &&
                      !drain_i;

  always_comb begin
    chosen       = '0;
    chosen_valid = 1'b0;
    for (int unsigned c = NumClients; c > 0; c--) begin
      if (ar_valid_i[c-1]) begin
        chosen       = ClientW'(c - 1);
        chosen_valid = 1'b1;
      end
    end
    for (int unsigned c = 0; c < NumClients; c++) begin
      ar_ready_o[c] = can_accept && chosen_valid && chosen == ClientW'(c);
    end
  end

  logic accept, complete;
  assign accept   = can_accept && chosen_valid;
  assign complete = m_rvalid_i && m_rready_o && m_rlast_i;

  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) begin
      ar_valid_q    <= 1'b0;
      ar_client_q   <= '0;
      ar_addr_q     <= '0;
      ar_len_q      <= '0;
      outstanding_q <= '0;
    end else begin
      if (accept) begin
        ar_valid_q  <= 1'b1;
        ar_client_q <= chosen;
        ar_addr_q   <= ar_addr_i[chosen];
        ar_len_q    <= ar_len_i[chosen];
      end else if (m_arready_i) begin
        ar_valid_q <= 1'b0;
      end
      if (accept && !complete) outstanding_q <= outstanding_q + 1'b1;
      if (complete && !accept) outstanding_q <= outstanding_q - 1'b1;
    end
  end

  assign idle_o      = outstanding_q == '0;
  assign m_arvalid_o = ar_valid_q;
  assign m_arid_o    = Ids[ar_client_q];
  assign m_araddr_o  = ar_addr_q;
  assign m_arlen_o   = ar_len_q;
  assign m_rready_o  = 1'b1;
  assign r_data_o    = m_rdata_i;

  // Address of the beat that a client receives next: burst starts are queued per client.
  mem_addr_t beat_addr[NumClients];
  logic [7:0] beat_q[NumClients];

  for (genvar c = 0; c < int'(NumClients); c++) begin : gen_client
    mem_addr_t burst_addr;
    logic mine;
    assign mine         = m_rvalid_i && m_rid_i == Ids[c];
    assign r_valid_o[c] = mine && !drain_i;
    assign beat_addr[c] = burst_addr + {20'b0, beat_q[c], 4'b0};

    npu_fifo #(
      .DataT(mem_addr_t),
      .Depth(MaxOutstanding)
    ) u_bursts (
      .clk_i,
      .rst_ni,
      .valid_i(accept && chosen == ClientW'(c)),
      .ready_o(),
      .data_i (ar_addr_i[c]),
      .valid_o(),
      .ready_i(mine && m_rlast_i),
      .data_o (burst_addr),
      .count_o()
    );

    always_ff @(posedge clk_i or negedge rst_ni) begin
      if (!rst_ni) beat_q[c] <= '0;
      else if (mine) beat_q[c] <= m_rlast_i ? '0 : beat_q[c] + 1'b1;
    end
  end

  always_comb begin
    error_o      = m_rvalid_i && m_rresp_i[1] && !drain_i;
    error_id_o   = m_rid_i;
    error_addr_o = '0;
    for (int unsigned c = 0; c < NumClients; c++) begin
      if (m_rid_i == Ids[c]) error_addr_o = beat_addr[c];
    end
  end

`ifndef SYNTHESIS
  for (genvar c = 0; c < int'(NumClients); c++) begin : gen_check
    // A burst stays inside its 4 KiB page.
    assert property (@(posedge clk_i) disable iff (!rst_ni) ar_valid_i[c] |->
                     {1'b0, ar_addr_i[c][11:4]} + {1'b0, ar_len_i[c]} < 9'd256)
    else $error("npu_axi_read: client %0d crosses a 4 KiB boundary", c);
  end
`endif

endmodule
