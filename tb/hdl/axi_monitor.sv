// SPDX-License-Identifier: Apache-2.0
//
// Protocol rules of the chip's AXI4 master port, checked on every cycle of every simulation: held
// payloads, INCR bursts of full beats that stay inside 4 KiB, the places of WLAST and RLAST, the
// order within an identifier, and the number of outstanding bursts. A breach ends the simulation.

module axi_monitor #(
  parameter int unsigned MaxReads  = 16,
  parameter int unsigned MaxWrites = 16
) (
  input logic clk_i,
  input logic rst_ni,

  input logic                         arvalid_i,
  input logic                         arready_i,
  input logic [tb_pkg::AxiIdBits-1:0] arid_i,
  input logic [                 31:0] araddr_i,
  input logic [                  7:0] arlen_i,
  input logic [                  2:0] arsize_i,
  input logic [                  1:0] arburst_i,
  input logic                         rvalid_i,
  input logic                         rready_i,
  input logic [tb_pkg::AxiIdBits-1:0] rid_i,
  input logic [                127:0] rdata_i,
  input logic [                  1:0] rresp_i,
  input logic                         rlast_i,

  input logic                         awvalid_i,
  input logic                         awready_i,
  input logic [tb_pkg::AxiIdBits-1:0] awid_i,
  input logic [                 31:0] awaddr_i,
  input logic [                  7:0] awlen_i,
  input logic [                  2:0] awsize_i,
  input logic [                  1:0] awburst_i,
  input logic                         wvalid_i,
  input logic                         wready_i,
  input logic [                127:0] wdata_i,
  input logic [                 15:0] wstrb_i,
  input logic                         wlast_i,
  input logic                         bvalid_i,
  input logic                         bready_i,
  input logic [tb_pkg::AxiIdBits-1:0] bid_i,
  input logic [                  1:0] bresp_i
);
  import tb_pkg::*;

  localparam int unsigned NumIds = 2 ** AxiIdBits;
  localparam logic [1:0] BurstIncr = 2'b01;
  localparam logic [2:0] SizeBeat = 3'd4;

  // -----------------------------------------------------------------------------------------------
  // Held until taken
  // -----------------------------------------------------------------------------------------------
  ArHeld :
  assert property (@(posedge clk_i) disable iff (!rst_ni) arvalid_i && !arready_i |=>
      arvalid_i && $stable(
      {arid_i, araddr_i, arlen_i, arsize_i, arburst_i}
  ))
  else $error("AXI AR changed before ARREADY");

  AwHeld :
  assert property (@(posedge clk_i) disable iff (!rst_ni) awvalid_i && !awready_i |=>
      awvalid_i && $stable(
      {awid_i, awaddr_i, awlen_i, awsize_i, awburst_i}
  ))
  else $error("AXI AW changed before AWREADY");

  WHeld :
  assert property (@(posedge clk_i) disable iff (!rst_ni) wvalid_i && !wready_i |=>
      wvalid_i && $stable(
      {wdata_i, wstrb_i, wlast_i}
  ))
  else $error("AXI W changed before WREADY");

  RHeld :
  assert property (@(posedge clk_i) disable iff (!rst_ni) rvalid_i && !rready_i |=>
      rvalid_i && $stable(
      {rid_i, rdata_i, rresp_i, rlast_i}
  ))
  else $error("AXI R changed before RREADY");

  BHeld :
  assert property (@(posedge clk_i) disable iff (!rst_ni) bvalid_i && !bready_i |=>
      bvalid_i && $stable(
      {bid_i, bresp_i}
  ))
  else $error("AXI B changed before BREADY");

  // -----------------------------------------------------------------------------------------------
  // Shape of a burst
  // -----------------------------------------------------------------------------------------------
  function automatic logic shape_is_legal(logic [31:0] address, logic [7:0] len, logic [2:0] size,
                                          logic [1:0] burst);
    return burst == BurstIncr && size == SizeBeat && address[3:0] == '0 &&
           13'(address[11:0]) + 13'({len, 4'h0}) < 13'd4096;
  endfunction

  ArShape :
  assert property (@(posedge clk_i) disable iff (!rst_ni) arvalid_i |-> shape_is_legal(
      araddr_i, arlen_i, arsize_i, arburst_i
  ))
  else
    $error(
        "AXI read burst 0x%08x len %0d size %0d type %0d", araddr_i, arlen_i, arsize_i, arburst_i
    );

  AwShape :
  assert property (@(posedge clk_i) disable iff (!rst_ni) awvalid_i |-> shape_is_legal(
      awaddr_i, awlen_i, awsize_i, awburst_i
  ))
  else
    $error(
        "AXI write burst 0x%08x len %0d size %0d type %0d", awaddr_i, awlen_i, awsize_i, awburst_i
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
      automatic logic taken = arvalid_i && arready_i;
      automatic logic finished = rvalid_i && rready_i && rlast_i;
      automatic int unsigned left = read_count[rid_i];
      if (taken && reads_out == MaxReads && !finished)
        $error("AXI: more than %0d reads outstanding", MaxReads);
      reads_out <= reads_out + 32'(taken) - 32'(finished);
      if (rvalid_i && rready_i) begin
        if (left == 0) $error("AXI: read data for identifier %0d, which has no burst", rid_i);
        if (rlast_i != (read_beats[rid_i][0] == 9'd1))
          $error(
              "AXI: RLAST of identifier %0d is %0d with %0d beats due",
              rid_i,
              rlast_i,
              read_beats[rid_i][0]
          );
        read_beats[rid_i][0] <= read_beats[rid_i][0] - 9'd1;
      end
      if (finished) begin
        for (int unsigned i = 1; i < MaxReads; i++) read_beats[rid_i][i-1] <= read_beats[rid_i][i];
        read_count[rid_i] <= left - 1;
      end
      if (taken) begin
        automatic logic same = finished && rid_i == arid_i;
        automatic int unsigned at = read_count[arid_i] - 32'(same);
        if (at < MaxReads) read_beats[arid_i][at] <= 9'(arlen_i) + 9'd1;
        read_count[arid_i] <= at + 1;
      end
    end
  end

  // -----------------------------------------------------------------------------------------------
  // Outstanding writes: W bursts follow the AW order, a response follows both
  // -----------------------------------------------------------------------------------------------
  int unsigned writes_out;  // addresses without a response
  int unsigned data_ahead;  // finished W bursts without a response
  int unsigned write_count;  // addresses whose data is not complete
  logic [8:0] write_beats[MaxWrites];
  logic [8:0] write_done;  // beats of the current W burst

  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) begin
      writes_out  <= 0;
      data_ahead  <= 0;
      write_count <= 0;
      write_done  <= '0;
    end else begin
      automatic logic taken = awvalid_i && awready_i;
      automatic logic beat = wvalid_i && wready_i;
      automatic logic answered = bvalid_i && bready_i;
      if (taken && writes_out == MaxWrites && !answered)
        $error("AXI: more than %0d writes outstanding", MaxWrites);
      if (answered && data_ahead == 0) $error("AXI: write response before the last beat");
      writes_out <= writes_out + 32'(taken) - 32'(answered);
      data_ahead <= data_ahead + 32'(beat && wlast_i) - 32'(answered);
      if (beat) begin
        if (write_count == 0) $error("AXI: write data without an address");
        if (wlast_i != (write_done + 9'd1 == write_beats[0]))
          $error("AXI: WLAST is %0d at beat %0d of %0d", wlast_i, write_done, write_beats[0]);
        write_done <= wlast_i ? '0 : write_done + 9'd1;
      end
      if (beat && wlast_i)
        for (int unsigned i = 1; i < MaxWrites; i++) write_beats[i-1] <= write_beats[i];
      if (taken) begin
        automatic int unsigned at = write_count - 32'(beat && wlast_i);
        if (at < MaxWrites) write_beats[at] <= 9'(awlen_i) + 9'd1;
      end
      write_count <= write_count + 32'(taken) - 32'(beat && wlast_i);
    end
  end

endmodule
