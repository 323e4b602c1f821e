// SPDX-License-Identifier: Apache-2.0
//
// Bench of the multiplexer of the AXI masters: three that play lists of bursts, the behavioural memory,
// and the monitor of the bus with the limit that the multiplexer has.

module unit_axi_mux;
  import npu_axi_pkg::*;
  import tb_pkg::*;

  localparam int unsigned MaxOutstanding = 5;

  logic clk, rst_n, start;
  logic [2:0] ended;
  unit_pkg::world_t world;
  unit_pkg::program_t played;
  axi_req_t req[3], bus_req;
  axi_rsp_t rsp[3], bus_rsp;

  unit_control u_control (
    .clk_o    (clk),
    .rst_no   (rst_n),
    .world_o  (world),
    .program_o(played),
    .start_o  (start),
    .end_i    (&ended)
  );

  for (genvar m = 0; m < 3; m++) begin : gen_master
    unit_axi_master #(
      .Slot(2 * m),
      .More(6 + 3 * m),
      .Salt(32'h1234_5678 * (m + 1))
    ) u_master (
      .clk_i    (clk),
      .rst_ni   (rst_n),
      .world_i  (world),
      .start_i  (start),
      .count_i  (played.words),
      .end_o    (ended[m]),
      .axi_req_o(req[m]),
      .axi_rsp_i(rsp[m])
    );
  end

  npu_axi_mux #(
    .MaxOutstanding(MaxOutstanding)
  ) u_mux (
    .clk_i     (clk),
    .rst_ni    (rst_n),
    .core_req_i(req[0]),
    .core_rsp_o(rsp[0]),
    .cmd_req_i (req[1]),
    .cmd_rsp_o (rsp[1]),
    .cop_req_i (req[2]),
    .cop_rsp_o (rsp[2]),
    .bus_req_o (bus_req),
    .bus_rsp_i (bus_rsp)
  );

  // ---------------------------------------------------------------------------------------------
  // No cycle is lost: what any master offers is on the bus, unless enough is under way
  // ---------------------------------------------------------------------------------------------
  int unsigned reads, writes;
  logic reads_offered, writes_offered;

  assign reads_offered  = req[0].rd.arvalid || req[1].rd.arvalid || req[2].rd.arvalid;
  assign writes_offered = req[0].wr.awvalid || req[1].wr.awvalid || req[2].wr.awvalid;

  always_ff @(posedge clk) begin
    if (!rst_n) begin
      reads  <= 0;
      writes <= 0;
    end else begin
      reads <= reads + 32'(bus_req.rd.arvalid && bus_rsp.rd.arready) -
          32'(bus_rsp.rd.rvalid && bus_req.rd.rready && bus_rsp.rd.rlast);
      writes <= writes + 32'(bus_req.wr.awvalid && bus_rsp.wr.awready) -
          32'(bus_rsp.wr.bvalid && bus_req.wr.bready);
    end
  end

  ReadAtOnce_A :
  assert property (@(posedge clk) disable iff (!rst_n) bus_req.rd.arvalid ==
                   (reads_offered && reads < MaxOutstanding))
  else $error("unit_axi_mux: a read address is late or too early");
  WriteAtOnce_A :
  assert property (@(posedge clk) disable iff (!rst_n) bus_req.wr.awvalid ==
                   (writes_offered && writes < MaxOutstanding))
  else $error("unit_axi_mux: a write address is late or too early");

  // ---------------------------------------------------------------------------------------------
  // The command port goes first, then the coprocessor, unless an address is on the bus already
  // ---------------------------------------------------------------------------------------------
  logic read_held_q, write_held_q;

  always_ff @(posedge clk) begin
    read_held_q  <= bus_req.rd.arvalid && !bus_rsp.rd.arready;
    write_held_q <= bus_req.wr.awvalid && !bus_rsp.wr.awready;
  end

  ReadOfCommandPortFirst_A :
  assert property (@(posedge clk) disable iff (!rst_n) req[1].rd.arvalid &&
                   (rsp[0].rd.arready || rsp[2].rd.arready) |-> read_held_q)
  else $error("unit_axi_mux: a read went before one of the command port");
  WriteOfCommandPortFirst_A :
  assert property (@(posedge clk) disable iff (!rst_n) req[1].wr.awvalid &&
                   (rsp[0].wr.awready || rsp[2].wr.awready) |-> write_held_q)
  else $error("unit_axi_mux: a write went before one of the command port");
  ReadOfCoprocessorFirst_A :
  assert property (@(posedge clk) disable iff (!rst_n)
                   req[2].rd.arvalid && rsp[0].rd.arready |-> read_held_q)
  else $error("unit_axi_mux: a read of the core went before one of the coprocessor");
  WriteOfCoprocessorFirst_A :
  assert property (@(posedge clk) disable iff (!rst_n)
                   req[2].wr.awvalid && rsp[0].wr.awready |-> write_held_q)
  else $error("unit_axi_mux: a write of the core went before one of the coprocessor");

  // ---------------------------------------------------------------------------------------------
  // Memory and monitor
  // ---------------------------------------------------------------------------------------------
  unit_axi_memory u_memory (
    .clk_i    (clk),
    .rst_ni   (rst_n),
    .world_i  (world),
    .start_i  (start),
    .speak_i  (1'b1),
    .axi_req_i(bus_req),
    .axi_rsp_o(bus_rsp)
  );

  axi_monitor #(
    .MaxReads (MaxOutstanding),
    .MaxWrites(MaxOutstanding)
  ) u_monitor (
    .clk_i    (clk),
    .rst_ni   (rst_n),
    .req_i    (bus_req),
    .rsp_i    (bus_rsp),
    .arsize_i (3'd4),
    .arburst_i(2'd1),
    .awsize_i (3'd4),
    .awburst_i(2'd1)
  );

endmodule
