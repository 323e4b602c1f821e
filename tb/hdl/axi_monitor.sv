// SPDX-License-Identifier: Apache-2.0
//
// Protocol rules of the chip's AXI4 master port, checked on every cycle of every simulation: held
// payloads, INCR bursts of full beats that stay inside 4 KiB, the places of WLAST and RLAST, the
// order within an identifier, answers to what was asked, and the number of outstanding bursts. A
// breach ends the simulation. docs/integration.md lists the rules.

module axi_monitor #(
  parameter int unsigned MaxReads  = 16,
  parameter int unsigned MaxWrites = 16
) (
  input logic clk_i,
  input logic rst_ni,

  input npu_axi_pkg::axi_req_t req_i,
  input npu_axi_pkg::axi_rsp_t rsp_i,
  // What is not part of them
  input logic [2:0] arsize_i,
  input logic [1:0] arburst_i,
  input logic [2:0] awsize_i,
  input logic [1:0] awburst_i
);
  import tb_pkg::*;

  localparam int unsigned NumIds = 2 ** AxiIdBits;
  localparam logic [1:0] BurstIncr = 2'b01;
  localparam logic [2:0] SizeBeat = 3'd4;

  axi_common_monitor u_common (
    .clk_i,
    .rst_ni,
    .asks_i  ({req_i.rd.arvalid, req_i.wr.awvalid, req_i.wr.wvalid}),
    .rvalid_i(rsp_i.rd.rvalid),
    .rresp_i (rsp_i.rd.rresp),
    .bvalid_i(rsp_i.wr.bvalid),
    .bresp_i (rsp_i.wr.bresp)
  );

  // -----------------------------------------------------------------------------------------------
  // Held until taken
  // -----------------------------------------------------------------------------------------------
  `CHECKER(u_ar, req_i.rd.arvalid, rsp_i.rd.arready, {req_i.rd.arid, req_i.rd.araddr,
                                                      req_i.rd.arlen, arsize_i, arburst_i})
  `CHECKER(u_aw, req_i.wr.awvalid, rsp_i.wr.awready, {req_i.wr.awid, req_i.wr.awaddr,
                                                      req_i.wr.awlen, awsize_i, awburst_i})
  `CHECKER(u_w, req_i.wr.wvalid, rsp_i.wr.wready, {req_i.wr.wdata, req_i.wr.wstrb, req_i.wr.wlast})
  `CHECKER(u_r, rsp_i.rd.rvalid, req_i.rd.rready, {rsp_i.rd.rid, rsp_i.rd.rdata, rsp_i.rd.rresp,
                                                   rsp_i.rd.rlast})
  `CHECKER(u_b, rsp_i.wr.bvalid, req_i.wr.bready, {rsp_i.wr.bid, rsp_i.wr.bresp})

  // -----------------------------------------------------------------------------------------------
  // Shape of a burst
  // -----------------------------------------------------------------------------------------------
  function automatic logic shape_is_legal(logic [31:0] address, logic [7:0] len, logic [2:0] size,
                                          logic [1:0] burst);
    return burst == BurstIncr && size == SizeBeat && address[3:0] == '0 &&
           13'(address[11:0]) + 13'({len, 4'h0}) < 13'd4096;
  endfunction

  ArShape :
  assert property (@(posedge clk_i) disable iff (!rst_ni) req_i.rd.arvalid |-> shape_is_legal(
      req_i.rd.araddr, req_i.rd.arlen, arsize_i, arburst_i
  ))
  else
    $error(
        "AXI read burst 0x%08x len %0d size %0d type %0d",
        req_i.rd.araddr,
        req_i.rd.arlen,
        arsize_i,
        arburst_i
    );

  AwShape :
  assert property (@(posedge clk_i) disable iff (!rst_ni) req_i.wr.awvalid |-> shape_is_legal(
      req_i.wr.awaddr, req_i.wr.awlen, awsize_i, awburst_i
  ))
  else
    $error(
        "AXI write burst 0x%08x len %0d size %0d type %0d",
        req_i.wr.awaddr,
        req_i.wr.awlen,
        awsize_i,
        awburst_i
    );

  // -----------------------------------------------------------------------------------------------
  // Outstanding reads: beats still due per identifier, in order
  // -----------------------------------------------------------------------------------------------
  int unsigned reads_out;
  logic [8:0] read_beats[NumIds][MaxReads];
  int unsigned read_count[NumIds];

  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) begin
      reads_out <= 0;
      for (int unsigned i = 0; i < NumIds; i++) read_count[i] <= 0;
    end else begin
      automatic logic taken = req_i.rd.arvalid && rsp_i.rd.arready;
      automatic logic finished = rsp_i.rd.rvalid && req_i.rd.rready && rsp_i.rd.rlast;
      automatic int unsigned left = read_count[rsp_i.rd.rid];
      if (taken && reads_out == MaxReads && !finished)
        $error("AXI: more than %0d reads outstanding", MaxReads);
      reads_out <= reads_out + 32'(taken) - 32'(finished);
      if (rsp_i.rd.rvalid && req_i.rd.rready) begin
        if (left == 0)
          $error("AXI: read data for identifier %0d, which has no burst", rsp_i.rd.rid);
        if (rsp_i.rd.rlast != (read_beats[rsp_i.rd.rid][0] == 9'd1))
          $error(
              "AXI: RLAST of identifier %0d is %0d with %0d beats due",
              rsp_i.rd.rid,
              rsp_i.rd.rlast,
              read_beats[rsp_i.rd.rid][0]
          );
        read_beats[rsp_i.rd.rid][0] <= read_beats[rsp_i.rd.rid][0] - 9'd1;
      end
      if (finished) begin
        for (int unsigned i = 1; i < MaxReads; i++)
        read_beats[rsp_i.rd.rid][i-1] <= read_beats[rsp_i.rd.rid][i];
        read_count[rsp_i.rd.rid] <= left - 1;
      end
      if (taken) begin
        automatic logic same = finished && rsp_i.rd.rid == req_i.rd.arid;
        automatic int unsigned at = read_count[req_i.rd.arid] - 32'(same);
        if (at < MaxReads) read_beats[req_i.rd.arid][at] <= 9'(req_i.rd.arlen) + 9'd1;
        read_count[req_i.rd.arid] <= at + 1;
      end
    end
  end

  // -----------------------------------------------------------------------------------------------
  // Outstanding writes: W bursts follow the AW order, a response follows both
  // -----------------------------------------------------------------------------------------------
  int unsigned writes_out;  // addresses without a response
  int unsigned data_ahead[NumIds];  // finished W bursts without a response
  int unsigned addressed[NumIds];  // addresses without a response
  int unsigned write_count;  // addresses whose data is not complete
  logic [8:0] write_beats[MaxWrites];
  logic [AxiIdBits-1:0] write_ids[MaxWrites];
  logic [8:0] write_done;  // beats of the current W burst

  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) begin
      writes_out <= 0;
      for (int unsigned i = 0; i < NumIds; i++) begin
        data_ahead[i] <= 0;
        addressed[i]  <= 0;
      end
      write_count <= 0;
      write_done  <= '0;
    end else begin
      automatic logic taken = req_i.wr.awvalid && rsp_i.wr.awready;
      automatic logic beat = req_i.wr.wvalid && rsp_i.wr.wready;
      automatic logic answered = rsp_i.wr.bvalid && req_i.wr.bready;
      if (taken && writes_out == MaxWrites && !answered)
        $error("AXI: more than %0d writes outstanding", MaxWrites);
      if (answered && addressed[rsp_i.wr.bid] == 0)
        $error("AXI: write response for identifier %0d, which has no burst", rsp_i.wr.bid);
      else if (answered && data_ahead[rsp_i.wr.bid] == 0)
        $error("AXI: write response of identifier %0d before the last beat", rsp_i.wr.bid);
      writes_out <= writes_out + 32'(taken) - 32'(answered);
      for (int unsigned i = 0; i < NumIds; i++) begin
        automatic logic mine = answered && 32'(rsp_i.wr.bid) == i;
        automatic logic last = beat && req_i.wr.wlast && 32'(write_ids[0]) == i;
        data_ahead[i] <= data_ahead[i] + 32'(last) - 32'(mine);
        addressed[i]  <= addressed[i] + 32'(taken && 32'(req_i.wr.awid) == i) - 32'(mine);
      end
      if (beat) begin
        if (write_count == 0) $error("AXI: write data without an address");
        if (req_i.wr.wlast != (write_done + 9'd1 == write_beats[0]))
          $error(
              "AXI: WLAST is %0d at beat %0d of %0d", req_i.wr.wlast, write_done, write_beats[0]
          );
        write_done <= req_i.wr.wlast ? '0 : write_done + 9'd1;
      end
      if (beat && req_i.wr.wlast)
        for (int unsigned i = 1; i < MaxWrites; i++) begin
          write_beats[i-1] <= write_beats[i];
          write_ids[i-1]   <= write_ids[i];
        end
      if (taken) begin
        automatic int unsigned at = write_count - 32'(beat && req_i.wr.wlast);
        if (at < MaxWrites) begin
          write_beats[at] <= 9'(req_i.wr.awlen) + 9'd1;
          write_ids[at]   <= req_i.wr.awid;
        end
      end
      write_count <= write_count + 32'(taken) - 32'(beat && req_i.wr.wlast);
    end
  end

endmodule
