// SPDX-License-Identifier: Apache-2.0
//
// Three masters on one bus: what a master offers reaches the bus unchanged and stays there until it is
// taken, words follow the order of their addresses, answers come back to the one who asked, and no
// more bursts are under way than there may be.

module formal_axi_mux
  import npu_axi_pkg::*;
#(
  localparam int unsigned Most = 3
) (
  input logic     clk_i,      // clock
  input logic     rst_ni,     // reset, active low
  input axi_req_t req_i [3],
  input axi_rsp_t bus_i
);

  axi_req_t bus, bus_q, req_q[3];
  axi_rsp_t rsp[3], rsp_q[3], bus_rsp_q;
  logic begun_q, live_q;
  logic [2:0] offered, writes, answered, acknowledged, sends;
  logic [2:0] reads_q, writes_q;  // under way
  logic [2:0] held;  // words of a master are on the bus

  npu_axi_mux #(
    .MaxOutstanding(Most)
  ) u_mux (
    .clk_i,
    .rst_ni,
    .core_req_i(req_i[0]),
    .core_rsp_o(rsp[0]),
    .cmd_req_i (req_i[1]),
    .cmd_rsp_o (rsp[1]),
    .cop_req_i (req_i[2]),
    .cop_rsp_o (rsp[2]),
    .bus_req_o (bus),
    .bus_rsp_i (bus_i)
  );

  always_comb begin
    for (int m = 0; m < 3; m++) begin
      offered[m] = req_i[m].rd.arvalid && bus.rd.araddr == req_i[m].rd.araddr &&
                   bus.rd.arlen == req_i[m].rd.arlen;
      writes[m] = req_i[m].wr.awvalid && bus.wr.awaddr == req_i[m].wr.awaddr &&
                  bus.wr.awlen == req_i[m].wr.awlen;
      answered[m] = rsp[m].rd.rvalid;
      acknowledged[m] = rsp[m].wr.bvalid;
      sends[m] = req_i[m].wr.wvalid && rsp[m].wr.wready;
      held[m] = req_i[m].wr.wvalid && bus.wr.wdata == req_i[m].wr.wdata &&
                bus.wr.wstrb == req_i[m].wr.wstrb && bus.wr.wlast == req_i[m].wr.wlast;
    end
  end

  initial begun_q = 1'b0;
  always_ff @(posedge clk_i) begin
    begun_q   <= 1'b1;
    live_q    <= begun_q && rst_ni;
    req_q     <= req_i;
    rsp_q     <= rsp;
    bus_q     <= bus;
    bus_rsp_q <= bus_i;
    if (!rst_ni) begin
      reads_q  <= '0;
      writes_q <= '0;
    end else begin
      reads_q <= reads_q + 3'(bus.rd.arvalid && bus_i.rd.arready) -
                 3'(bus_i.rd.rvalid && bus.rd.rready && bus_i.rd.rlast);
      writes_q <= writes_q + 3'(bus.wr.awvalid && bus_i.wr.awready) -
                  3'(bus_i.wr.bvalid && bus.wr.bready);
    end
  end

  always_comb begin
    assume (begun_q || !rst_ni);
    for (int m = 0; m < 3; m++) begin
      // Masters keep what they offer (Stays_A, AddressStays_A and WordStays_A of the memory port).
      if (live_q) begin
        assume (!(req_q[m].rd.arvalid && !rsp_q[m].rd.arready) ||
                req_i[m].rd.arvalid && req_i[m].rd.araddr == req_q[m].rd.araddr &&
                req_i[m].rd.arlen == req_q[m].rd.arlen && req_i[m].rd.arid == req_q[m].rd.arid);
        assume (!(req_q[m].wr.awvalid && !rsp_q[m].wr.awready) ||
                req_i[m].wr.awvalid && req_i[m].wr.awaddr == req_q[m].wr.awaddr &&
                req_i[m].wr.awlen == req_q[m].wr.awlen && req_i[m].wr.awid == req_q[m].wr.awid);
        assume (!(req_q[m].wr.wvalid && !rsp_q[m].wr.wready) ||
                req_i[m].wr.wvalid && req_i[m].wr.wdata == req_q[m].wr.wdata &&
                req_i[m].wr.wlast == req_q[m].wr.wlast && req_i[m].wr.wstrb == req_q[m].wr.wstrb);
      end
      // IdBitFree_A of the block; answers are always taken.
      assume (!req_i[m].rd.arid[3] && (m == 0 || !req_i[m].rd.arid[2]));
      assume (!req_i[m].wr.awid[3] && (m == 0 || !req_i[m].wr.awid[2]));
      assume (req_i[m].rd.rready && req_i[m].wr.bready);
    end
    assume (!bus_i.rd.rvalid || reads_q != '0);
    assume (!bus_i.wr.bvalid || writes_q != '0);
    if (begun_q && rst_ni) begin
      OfSomebody_A : assert (!bus.rd.arvalid || offered != '0);
      TakenOnce_A :
      assert ({2'b0, rsp[0].rd.arready} + {2'b0, rsp[1].rd.arready} + {2'b0, rsp[2].rd.arready} ==
              {2'b0, bus.rd.arvalid && bus_i.rd.arready});
      WriteOfSomebody_A : assert (!bus.wr.awvalid || writes != '0);
      WriteTakenOnce_A :
      assert ({2'b0, rsp[0].wr.awready} + {2'b0, rsp[1].wr.awready} + {2'b0, rsp[2].wr.awready} ==
              {2'b0, bus.wr.awvalid && bus_i.wr.awready});
      AnswerToOne_A :
      assert ({2'b0, answered[0]} + {2'b0, answered[1]} + {2'b0, answered[2]} ==
              {2'b0, bus_i.rd.rvalid});
      AcknowledgedToOne_A :
      assert ({2'b0, acknowledged[0]} + {2'b0, acknowledged[1]} + {2'b0, acknowledged[2]} ==
              {2'b0, bus_i.wr.bvalid});
      WordOfOne_A :
      assert (!bus.wr.wvalid || held != '0 &&
              {2'b0, sends[0]} + {2'b0, sends[1]} + {2'b0, sends[2]} == {2'b0, bus_i.wr.wready});
      ReadsAtMost_A : assert (reads_q <= 3'(Most));
      WritesAtMost_A : assert (writes_q <= 3'(Most));
      if (live_q) begin
        ReadStays_A :
        assert (!(bus_q.rd.arvalid && !bus_rsp_q.rd.arready) ||
                bus.rd.arvalid && bus.rd.araddr == bus_q.rd.araddr &&
                bus.rd.arlen == bus_q.rd.arlen && bus.rd.arid == bus_q.rd.arid);
        WriteStays_A :
        assert (!(bus_q.wr.awvalid && !bus_rsp_q.wr.awready) ||
                bus.wr.awvalid && bus.wr.awaddr == bus_q.wr.awaddr &&
                bus.wr.awlen == bus_q.wr.awlen && bus.wr.awid == bus_q.wr.awid);
      end
    end
  end

endmodule
