// SPDX-License-Identifier: Apache-2.0
//
// Joins two AXI4 masters into one without adding a cycle. The command port goes first, because it
// needs little; an address that is on the bus stays there until it is taken. Bit 3 of an ID, which
// both masters leave 0, tells whose answer comes back. Write data follow the order in which their
// addresses were offered. No more than MaxOutstanding bursts of a direction are under way.

module npu_axi_mux
  import npu_axi_pkg::*;
#(
  parameter int unsigned MaxOutstanding = 16  // bursts under way in a direction, at least 1
) (
  input logic clk_i,  // clock
  input logic rst_ni, // reset, active low

  input  axi_req_t core_req_i,  // keeps the rules of AXI; bit 3 of its IDs is 0
  output axi_rsp_t core_rsp_o,  // AR and AW ready only with valid, W ready not before its address
  input  axi_req_t cmd_req_i,   // as core_req_i; goes first
  output axi_rsp_t cmd_rsp_o,   // as core_rsp_o

  output axi_req_t bus_req_o,  // in the same cycle; keeps the rules of AXI; ID bit 3: of cmd_req_i
  input  axi_rsp_t bus_rsp_i   // keeps the rules of AXI; ready may depend on valid
);

  localparam int unsigned CountW = $clog2(MaxOutstanding + 1);
  // Either master has at most two bursts whose data it has not sent.
  localparam int unsigned OrderDepth = 4;

  axi_req_t req[2];
  axi_rsp_t rsp[2];

  assign req        = '{core_req_i, cmd_req_i};
  assign core_rsp_o = rsp[0];
  assign cmd_rsp_o  = rsp[1];

  // ---------------------------------------------------------------------------------------------
  // Read and write addresses: who goes, until it is taken
  // ---------------------------------------------------------------------------------------------
  logic ar_valid, ar_held_q, ar_cmd_q, ar_cmd, ar_take, r_done;
  logic aw_valid, aw_held_q, aw_cmd_q, aw_cmd, aw_take, b_done;
  logic [CountW-1:0] reads_q, writes_q;

  assign ar_cmd   = ar_held_q ? ar_cmd_q : cmd_req_i.rd.arvalid;
  assign aw_cmd   = aw_held_q ? aw_cmd_q : cmd_req_i.wr.awvalid;
  assign ar_valid = req[ar_cmd].rd.arvalid && reads_q != CountW'(MaxOutstanding);
  assign aw_valid = req[aw_cmd].wr.awvalid && writes_q != CountW'(MaxOutstanding);
  assign ar_take  = ar_valid && bus_rsp_i.rd.arready;
  assign aw_take  = aw_valid && bus_rsp_i.wr.awready;
  assign r_done   = bus_rsp_i.rd.rvalid && bus_req_o.rd.rready && bus_rsp_i.rd.rlast;
  assign b_done   = bus_rsp_i.wr.bvalid && bus_req_o.wr.bready;

  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) begin
      ar_held_q <= 1'b0;
      ar_cmd_q  <= 1'b0;
      aw_held_q <= 1'b0;
      aw_cmd_q  <= 1'b0;
      reads_q   <= '0;
      writes_q  <= '0;
    end else begin
      ar_held_q <= ar_valid && !ar_take;
      ar_cmd_q  <= ar_cmd;
      aw_held_q <= aw_valid && !aw_take;
      aw_cmd_q  <= aw_cmd;
      reads_q   <= reads_q + CountW'(ar_take) - CountW'(r_done);
      writes_q  <= writes_q + CountW'(aw_take) - CountW'(b_done);
    end
  end

  // ---------------------------------------------------------------------------------------------
  // Write data: those of a burst may go from the cycle after its address was first offered
  // ---------------------------------------------------------------------------------------------
  logic w_open, w_cmd, order_room;

  npu_fifo #(
    .DataT(logic),
    .Depth(OrderDepth)
  ) u_order (
    .clk_i,
    .rst_ni,
    .valid_i(aw_valid && !aw_held_q),
    .ready_o(order_room),
    .data_i (aw_cmd),
    .valid_o(w_open),
    .ready_i(bus_req_o.wr.wvalid && bus_rsp_i.wr.wready && bus_req_o.wr.wlast),
    .data_o (w_cmd)
  );

  always_comb begin
    bus_req_o            = req[w_cmd];
    bus_req_o.wr.wvalid  = w_open && req[w_cmd].wr.wvalid;
    bus_req_o.rd.arvalid = ar_valid;
    bus_req_o.rd.arid    = {ar_cmd, req[ar_cmd].rd.arid[2:0]};
    bus_req_o.rd.araddr  = req[ar_cmd].rd.araddr;
    bus_req_o.rd.arlen   = req[ar_cmd].rd.arlen;
    bus_req_o.wr.awvalid = aw_valid;
    bus_req_o.wr.awid    = {aw_cmd, req[aw_cmd].wr.awid[2:0]};
    bus_req_o.wr.awaddr  = req[aw_cmd].wr.awaddr;
    bus_req_o.wr.awlen   = req[aw_cmd].wr.awlen;
    bus_req_o.rd.rready  = req[bus_rsp_i.rd.rid[3]].rd.rready;
    bus_req_o.wr.bready  = req[bus_rsp_i.wr.bid[3]].wr.bready;
  end

  // ---------------------------------------------------------------------------------------------
  // Answers
  // ---------------------------------------------------------------------------------------------
  always_comb begin
    for (int unsigned m = 0; m < 2; m++) begin
      rsp[m]            = bus_rsp_i;
      rsp[m].rd.arready = ar_take && ar_cmd == 1'(m);
      rsp[m].rd.rvalid  = bus_rsp_i.rd.rvalid && bus_rsp_i.rd.rid[3] == 1'(m);
      rsp[m].rd.rid     = {1'b0, bus_rsp_i.rd.rid[2:0]};
      rsp[m].wr.awready = aw_take && aw_cmd == 1'(m);
      rsp[m].wr.wready  = w_open && bus_rsp_i.wr.wready && w_cmd == 1'(m);
      rsp[m].wr.bvalid  = bus_rsp_i.wr.bvalid && bus_rsp_i.wr.bid[3] == 1'(m);
      rsp[m].wr.bid     = {1'b0, bus_rsp_i.wr.bid[2:0]};
    end
  end

`ifndef SYNTHESIS
  OrderRoom_A :
  assert property (@(posedge clk_i) disable iff (!rst_ni) aw_valid && !aw_held_q |-> order_room)
  else $error("npu_axi_mux: more write bursts without data than two for each master");
  for (genvar m = 0; m < 2; m++) begin : gen_check
    IdBitFree_A :
    assert property (@(posedge clk_i) disable iff (!rst_ni)
                     (req[m].rd.arvalid |-> !req[m].rd.arid[3]) and
                     (req[m].wr.awvalid |-> !req[m].wr.awid[3]))
    else $error("npu_axi_mux: an ID of master %0d has bit 3 set", m);
  end
`endif

endmodule
