// SPDX-License-Identifier: Apache-2.0
//
// The slave of the register space: keeps the rules of AXI4-Lite, answers each access once, and lets
// each aligned one reach a register once, as it was asked for.

module formal_axil_slave
  import npu_axi_pkg::*;
  import npu_host_pkg::*;
(
  input logic        clk_i,       // clock
  input logic        rst_ni,      // reset, active low
  input axil_req_t   axil_req_i,
  input window_rsp_t rsp_i
);

  axil_rsp_t rsp, rsp_q;
  axil_req_t req_q;
  window_req_t access;
  logic [3:0] window;
  logic begun_q, live_q;  // reset was high in the cycle before
  logic take_write, take_read, b_taken, r_taken;
  // What was taken and not answered yet; an access of a register that was not acknowledged yet
  logic writes_q, reads_q, open_q, expects_q, expects_write_q, waiting_write_q, waiting_read_q;
  logic [11:0] addr_q;
  logic [31:0] wdata_q;
  logic [ 1:0] turns_q;

  npu_axil_slave u_slave (
    .clk_i,
    .rst_ni,
    .axil_req_i,
    .axil_rsp_o(rsp),
    .window_o  (window),
    .req_o     (access),
    .rsp_i
  );

  assign take_write = axil_req_i.awvalid && rsp.awready;
  assign take_read  = axil_req_i.arvalid && rsp.arready;
  assign b_taken    = rsp.bvalid && axil_req_i.bready;
  assign r_taken    = rsp.rvalid && axil_req_i.rready;

  initial begun_q = 1'b0;
  always_ff @(posedge clk_i) begin
    begun_q <= 1'b1;
    live_q  <= begun_q && rst_ni;
    rsp_q   <= rsp;
    req_q   <= axil_req_i;
    if (!rst_ni) begin
      writes_q  <= 1'b0;
      reads_q   <= 1'b0;
      open_q    <= 1'b0;
      expects_q <= 1'b0;
      turns_q   <= '0;
    end else begin
      writes_q <= (writes_q || take_write) && !b_taken;
      reads_q <= (reads_q || take_read) && !r_taken;
      open_q <= (open_q || access.valid) && !rsp_i.ack;
      expects_q <= 1'b0;
      if (take_write || take_read) begin
        addr_q          <= take_write ? axil_req_i.awaddr : axil_req_i.araddr;
        wdata_q         <= axil_req_i.wdata;
        expects_write_q <= take_write;
        expects_q       <= (take_write ? axil_req_i.awaddr[1:0] : axil_req_i.araddr[1:0]) == '0;
      end
      if (take_read || !axil_req_i.arvalid) turns_q <= '0;
      else turns_q <= turns_q + 2'(take_write && turns_q != 2'd3);
    end
  end

  always_comb begin
    assume (begun_q || !rst_ni);
    // The host keeps the rules of AXI4-Lite; a window acknowledges an access once.
    if (live_q) begin
      assume (!(req_q.awvalid && !rsp_q.awready) ||
              axil_req_i.awvalid && axil_req_i.awaddr == req_q.awaddr);
      assume (!(req_q.wvalid && !rsp_q.wready) ||
              axil_req_i.wvalid && axil_req_i.wdata == req_q.wdata);
      assume (!(req_q.arvalid && !rsp_q.arready) ||
              axil_req_i.arvalid && axil_req_i.araddr == req_q.araddr);
    end
    assume (!rsp_i.ack || open_q || access.valid);
    if (begun_q && rst_ni) begin
      ReadyWithValid_A :
      assert (!(rsp.awready && !(axil_req_i.awvalid && axil_req_i.wvalid)) &&
              !(rsp.arready && !axil_req_i.arvalid));
      OneAtATime_A : assert (!(writes_q && reads_q));
      AnswerToAsked_A : assert ((!rsp.bvalid || writes_q) && (!rsp.rvalid || reads_q));
      AccessOnce_A : assert (access.valid == expects_q);
      AccessAsAsked_A :
      assert (!access.valid || access.write == expects_write_q &&
              {window, access.addr} == addr_q && (!access.write || access.wdata == wdata_q));
      Misaligned_A : assert (!(rsp.bvalid && addr_q[1:0] != '0) || rsp.bresp == 2'b10);
      InTurn_A : assert (turns_q < 2'd2);
      if (live_q) begin
        BStays_A :
        assert (!(rsp_q.bvalid && !req_q.bready) || rsp.bvalid && rsp.bresp == rsp_q.bresp);
        RStays_A :
        assert (!(rsp_q.rvalid && !req_q.rready) ||
                rsp.rvalid && rsp.rdata == rsp_q.rdata && rsp.rresp == rsp_q.rresp);
      end
    end
  end

endmodule
