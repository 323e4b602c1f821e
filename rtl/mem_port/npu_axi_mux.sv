// SPDX-License-Identifier: Apache-2.0
//
// Joins three AXI4 masters into one without adding a cycle. The command port goes first, because it
// needs little, then the coprocessor, whose host waits, then the core; an address that is on the bus
// stays there until it is taken. The upper bits of an ID, which the masters leave 0, tell whose answer
// comes back: 0xxx core, 10xx command port, 11xx coprocessor. Write data follow the order in which
// their addresses were offered. No more than MaxOutstanding bursts of a direction are under way.

module npu_axi_mux
  import npu_axi_pkg::*;
#(
  parameter int unsigned MaxOutstanding = 16  // bursts under way in a direction, at least 1
) (
  input logic clk_i,  // clock
  input logic rst_ni, // reset, active low

  input  axi_req_t core_req_i,  // keeps the rules of AXI; bit 3 of its IDs is 0
  output axi_rsp_t core_rsp_o,  // AR and AW ready only with valid, W ready not before its address
  input  axi_req_t cmd_req_i,   // as core_req_i, bit 2 is 0 as well; goes first
  output axi_rsp_t cmd_rsp_o,   // as core_rsp_o
  input  axi_req_t cop_req_i,   // as cmd_req_i; goes before the core
  output axi_rsp_t cop_rsp_o,   // as core_rsp_o

  output axi_req_t bus_req_o,  // in the same cycle; keeps the rules of AXI
  input  axi_rsp_t bus_rsp_i   // keeps the rules of AXI; ready may depend on valid
);

  localparam int unsigned CountW = $clog2(MaxOutstanding + 1);
  localparam int unsigned NumMasters = 3;
  // A master has at most two bursts whose data it has not sent.
  localparam int unsigned OrderDepth = 2 * NumMasters;

  typedef enum logic [1:0] {
    Core,
    Cmd,
    Cop
  } master_e;

  function automatic master_e first_of(logic cmd, logic cop);
    return cmd ? Cmd : cop ? Cop : Core;
  endfunction

  // The ID on the bus, and whose it is
  function automatic logic [3:0] bus_id(master_e master, logic [3:0] id);
    return (master == Core) ? {1'b0, id[2:0]} : {1'b1, master == Cop, id[1:0]};
  endfunction

  function automatic master_e owner(logic [3:0] id);
    return !id[3] ? Core : id[2] ? Cop : Cmd;
  endfunction

  function automatic logic [3:0] own_id(logic [3:0] id);
    return id[3] ? {2'b00, id[1:0]} : id;
  endfunction

  axi_req_t req[NumMasters];
  axi_rsp_t rsp[NumMasters];

  assign req        = '{core_req_i, cmd_req_i, cop_req_i};
  assign core_rsp_o = rsp[Core];
  assign cmd_rsp_o  = rsp[Cmd];
  assign cop_rsp_o  = rsp[Cop];

  // ---------------------------------------------------------------------------------------------
  // Read and write addresses: who goes, until it is taken
  // ---------------------------------------------------------------------------------------------
  logic ar_valid, ar_held_q, ar_take, r_done;
  logic aw_valid, aw_held_q, aw_take, b_done;
  master_e ar_from_q, ar_from, aw_from_q, aw_from;
  logic [CountW-1:0] reads_q, writes_q;

  assign ar_from  = ar_held_q ? ar_from_q : first_of(cmd_req_i.rd.arvalid, cop_req_i.rd.arvalid);
  assign aw_from  = aw_held_q ? aw_from_q : first_of(cmd_req_i.wr.awvalid, cop_req_i.wr.awvalid);
  assign ar_valid = req[ar_from].rd.arvalid && reads_q != CountW'(MaxOutstanding);
  assign aw_valid = req[aw_from].wr.awvalid && writes_q != CountW'(MaxOutstanding);
  assign ar_take  = ar_valid && bus_rsp_i.rd.arready;
  assign aw_take  = aw_valid && bus_rsp_i.wr.awready;
  assign r_done   = bus_rsp_i.rd.rvalid && bus_req_o.rd.rready && bus_rsp_i.rd.rlast;
  assign b_done   = bus_rsp_i.wr.bvalid && bus_req_o.wr.bready;

  always_ff @(posedge clk_i) begin
    if (!rst_ni) begin
      ar_held_q <= 1'b0;
      ar_from_q <= Core;
      aw_held_q <= 1'b0;
      aw_from_q <= Core;
      reads_q   <= '0;
      writes_q  <= '0;
    end else begin
      ar_held_q <= ar_valid && !ar_take;
      ar_from_q <= ar_from;
      aw_held_q <= aw_valid && !aw_take;
      aw_from_q <= aw_from;
      reads_q   <= reads_q + CountW'(ar_take) - CountW'(r_done);
      writes_q  <= writes_q + CountW'(aw_take) - CountW'(b_done);
    end
  end

  // ---------------------------------------------------------------------------------------------
  // Write data: those of a burst may go from the cycle after its address was first offered
  // ---------------------------------------------------------------------------------------------
  logic w_open, order_room;
  master_e w_from;

  npu_fifo #(
    .DataT(master_e),
    .Depth(OrderDepth)
  ) u_order (
    .clk_i,
    .rst_ni,
    .valid_i(aw_valid && !aw_held_q),
    .ready_o(order_room),
    .data_i (aw_from),
    .valid_o(w_open),
    .ready_i(bus_req_o.wr.wvalid && bus_rsp_i.wr.wready && bus_req_o.wr.wlast),
    .data_o (w_from)
  );

  always_comb begin
    bus_req_o            = req[w_from];
    bus_req_o.wr.wvalid  = w_open && req[w_from].wr.wvalid;
    bus_req_o.rd.arvalid = ar_valid;
    bus_req_o.rd.arid    = bus_id(ar_from, req[ar_from].rd.arid);
    bus_req_o.rd.araddr  = req[ar_from].rd.araddr;
    bus_req_o.rd.arlen   = req[ar_from].rd.arlen;
    bus_req_o.wr.awvalid = aw_valid;
    bus_req_o.wr.awid    = bus_id(aw_from, req[aw_from].wr.awid);
    bus_req_o.wr.awaddr  = req[aw_from].wr.awaddr;
    bus_req_o.wr.awlen   = req[aw_from].wr.awlen;
    bus_req_o.rd.rready  = req[owner(bus_rsp_i.rd.rid)].rd.rready;
    bus_req_o.wr.bready  = req[owner(bus_rsp_i.wr.bid)].wr.bready;
  end

  // ---------------------------------------------------------------------------------------------
  // Answers
  // ---------------------------------------------------------------------------------------------
  always_comb begin
    for (int unsigned m = 0; m < NumMasters; m++) begin
      rsp[m]            = bus_rsp_i;
      rsp[m].rd.arready = ar_take && ar_from == master_e'(m);
      rsp[m].rd.rvalid  = bus_rsp_i.rd.rvalid && owner(bus_rsp_i.rd.rid) == master_e'(m);
      rsp[m].rd.rid     = own_id(bus_rsp_i.rd.rid);
      rsp[m].wr.awready = aw_take && aw_from == master_e'(m);
      rsp[m].wr.wready  = w_open && bus_rsp_i.wr.wready && w_from == master_e'(m);
      rsp[m].wr.bvalid  = bus_rsp_i.wr.bvalid && owner(bus_rsp_i.wr.bid) == master_e'(m);
      rsp[m].wr.bid     = own_id(bus_rsp_i.wr.bid);
    end
  end

`ifndef SYNTHESIS
  OrderRoom_A :
  assert property (@(posedge clk_i) disable iff (!rst_ni) aw_valid && !aw_held_q |-> order_room)
  else $error("npu_axi_mux: more write bursts without data than two for each master");
  for (genvar m = 0; m < int'(NumMasters); m++) begin : gen_check
    localparam logic [3:0] Free = (m == 0) ? 4'b1000 : 4'b1100;
    IdBitFree_A :
    assert property (@(posedge clk_i) disable iff (!rst_ni)
                     (req[m].rd.arvalid |-> (req[m].rd.arid & Free) == '0) and
                     (req[m].wr.awvalid |-> (req[m].wr.awid & Free) == '0))
    else $error("npu_axi_mux: an ID of master %0d has an upper bit set", m);
  end
`endif

endmodule
