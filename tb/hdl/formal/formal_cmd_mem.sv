// SPDX-License-Identifier: Apache-2.0
//
// The master of the command port, whatever ring and streams ask for: single beats that stay until
// they are taken, and nothing that the guard has not allowed.

module formal_cmd_mem
  import npu_mem_pkg::*;
  import npu_stream_pkg::*;
  import npu_axi_pkg::*;
  import npu_cmd_pkg::*;
(
  input logic          clk_i,         // clock
  input logic          rst_ni,        // reset, active low
  input read_req_t     read_i   [2],
  input write_req_t    write_i,
  input regions_t      regions_i,
  input stream_range_t stream_i,
  input logic          drain_i,
  input axi_rsp_t      axi_rsp_i
);

  localparam int unsigned Most = 3;

  axi_req_t axi, axi_q;
  axi_rsp_t rsp_q;
  logic begun_q, live_q, read_fresh, write_fresh;
  logic read_allowed, write_allowed, read_allowed_q, write_allowed_q;
  logic [2:0] reads_q, writes_q;  // that the memory owes an answer

  npu_cmd_mem #(
    .MaxOutstanding(Most)
  ) u_mem (
    .clk_i,
    .rst_ni,
    .read_i,
    .read_o   (),
    .write_i,
    .write_o  (),
    .regions_i,
    .stream_i,
    .drain_i,
    .idle_o   (),
    .silent_o (),
    .axi_req_o(axi),
    .axi_rsp_i
  );

  // What the guard says of the addresses at the port, offered or not
  npu_mem_guard #(
    .Write(1'b0)
  ) u_read_guard (
    .addr_i   (axi.rd.araddr),
    .len_i    (axi.rd.arlen),
    .regions_i,
    .stream_i ('0),
    .allowed_o(read_allowed)
  );

  npu_mem_guard #(
    .Write(1'b1)
  ) u_write_guard (
    .addr_i   (axi.wr.awaddr),
    .len_i    (axi.wr.awlen),
    .regions_i,
    .stream_i,
    .allowed_o(write_allowed)
  );

  // Offered for the first time
  assign read_fresh  = axi.rd.arvalid && !(axi_q.rd.arvalid && !rsp_q.rd.arready);
  assign write_fresh = axi.wr.awvalid && !(axi_q.wr.awvalid && !rsp_q.wr.awready);

  initial begun_q = 1'b0;
  always_ff @(posedge clk_i) begin
    begun_q         <= 1'b1;
    live_q          <= begun_q && rst_ni;
    axi_q           <= axi;
    rsp_q           <= axi_rsp_i;
    read_allowed_q  <= read_allowed;
    write_allowed_q <= write_allowed;
    if (!rst_ni) begin
      reads_q  <= '0;
      writes_q <= '0;
    end else begin
      reads_q <= reads_q + 3'(axi.rd.arvalid && axi_rsp_i.rd.arready) -
                 3'(axi_rsp_i.rd.rvalid && axi_rsp_i.rd.rlast);
      writes_q <= writes_q + 3'(axi.wr.awvalid && axi_rsp_i.wr.awready) - 3'(axi_rsp_i.wr.bvalid);
    end
  end

  always_comb begin
    assume (begun_q || !rst_ni);
    assume (!axi_rsp_i.rd.rvalid || reads_q != '0);  // memory answers what it was asked for
    assume (!axi_rsp_i.wr.bvalid || writes_q != '0);
    if (begun_q && rst_ni) begin
      ReadsAtMost_A : assert (reads_q <= 3'(Most));
      WritesAtMost_A : assert (writes_q <= 3'(Most));
      if (live_q) begin
        ReadAllowed_A :
        assert (!read_fresh || read_allowed_q && axi.rd.araddr == axi_q.rd.araddr &&
                axi.rd.arlen == axi_q.rd.arlen);
        WriteAllowed_A :
        assert (!write_fresh || write_allowed_q && axi.wr.awaddr == axi_q.wr.awaddr &&
                axi.wr.awlen == axi_q.wr.awlen);
        ReadStays_A :
        assert (!(axi_q.rd.arvalid && !rsp_q.rd.arready) ||
                axi.rd.arvalid && axi.rd.araddr == axi_q.rd.araddr &&
                axi.rd.arid == axi_q.rd.arid);
        WriteStays_A :
        assert (!(axi_q.wr.awvalid && !rsp_q.wr.awready) ||
                axi.wr.awvalid && axi.wr.awaddr == axi_q.wr.awaddr);
        WordStays_A :
        assert (!(axi_q.wr.wvalid && !rsp_q.wr.wready) ||
                axi.wr.wvalid && axi.wr.wdata == axi_q.wr.wdata && axi.wr.wstrb == axi_q.wr.wstrb);
      end
    end
  end

endmodule
