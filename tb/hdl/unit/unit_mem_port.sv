// SPDX-License-Identifier: Apache-2.0
//
// Bench of the memory port and its guard: three reading clients and a writing one play requests of
// their own against the behavioural AXI memory. An error is noted, and the port drained as at the end
// of a program. What is read goes to the slots behind those of the requests, the error and the addresses
// that came to the bus behind these.

module unit_mem_port;
  import npu_mem_pkg::*;
  import npu_stream_pkg::*;
  import npu_isa_pkg::*;
  import tb_pkg::*;

  localparam int unsigned NumRd = 3;
  localparam int unsigned Write = NumRd;  // slot of the writing client
  localparam int unsigned WordSlot = 8;  // what it writes; bits 15:0 of a word are its strobe
  // Of unit_axi_memory; bits 23:0 of its second word are the time-out
  localparam int unsigned SettingSlot = 9;
  localparam int unsigned ReadSlot = 4;
  localparam int unsigned FaultSlot = 7;
  localparam int unsigned BusSlot = 8;
  localparam logic [9:0] Silence = 10'd600;  // cycles from an error on

  logic clk, rst_n, start, drain;
  unit_pkg::world_t world;
  unit_pkg::program_t played;
  logic [NumRd:0] ended;
  bus_status_t bus;

  unit_control u_control (
    .clk_o    (clk),
    .rst_no   (rst_n),
    .world_o  (world),
    .program_o(played),
    .start_o  (start),
    .end_i    ((&ended || drain) && bus.idle)
  );

  // ---------------------------------------------------------------------------------------------
  // Clients
  // ---------------------------------------------------------------------------------------------
  mem_req_t req[NumRd+1], rd_req[NumRd], wr_req[1];
  mem_rd_rsp_t rd_rsp[NumRd];
  mem_wr_rsp_t wr_rsp[1];
  logic ready[NumRd+1];
  mem_wdata_t w[1];

  for (genvar c = 0; c <= int'(NumRd); c++) begin : gen_client
    logic [111:0] payload;

    unit_requests #(
      .Slot(c)
    ) u_requests (
      .clk_i    (clk),
      .rst_ni   (rst_n),
      .start_i  (start),
      .count_i  (played.words),
      .end_o    (ended[c]),
      .valid_o  (req[c].valid),
      .ready_i  (ready[c]),
      .payload_o(payload)
    );

    assign {req[c].instr, req[c].len, req[c].addr} = payload[71:0];
    if (c < int'(NumRd)) begin : gen_read
      assign rd_req[c] = req[c];
      assign ready[c]  = rd_rsp[c].ready;
    end else begin : gen_write
      assign wr_req[0] = req[c];
      assign ready[c]  = wr_rsp[0].ready;
    end
  end

  logic [31:0] words_read[NumRd];
  logic [31:0] words_written, random;

  always @(posedge clk) begin
    random <= rst_n ? next_random(random) : world.seed;
    for (int unsigned c = 0; c < NumRd; c++) begin
      if (rst_n && rd_rsp[c].valid) begin
        tb_memory_now(
            unit_pkg::ObservedAt + (ReadSlot + c) * unit_pkg::SlotBytes + 16 * words_read[c],
            rd_rsp[c].data);
      end
      words_read[c] <= rst_n ? words_read[c] + 32'(rd_rsp[c].valid) : '0;
    end
    if (!rst_n) begin
      words_written <= '0;
      w[0] <= '0;
    end else if (!w[0].valid || wr_rsp[0].word_ready) begin
      automatic bit [127:0] word;
      tb_memory_read(unit_pkg::ProgramAt + WordSlot * unit_pkg::SlotBytes + 16 * words_written,
                     word);
      w[0] <= '{valid: !happens(world.stream_gap, random[11:0]), data: word, strb: word[15:0]};
      if (!happens(world.stream_gap, random[11:0])) words_written <= words_written + 32'd1;
    end
  end

  // ---------------------------------------------------------------------------------------------
  // The port, and the end at an error
  // ---------------------------------------------------------------------------------------------
  mem_settings_t settings;
  stream_range_t stream;
  npu_axi_pkg::axi_req_t axi_req;
  npu_axi_pkg::axi_rsp_t axi_rsp;

  // As tb/unit/test_mem_port.py knows them
  always_comb begin
    settings            = '0;
    settings.timeout    = timeout;
    settings.regions[2] = '{read: 1'b1, write: 1'b0, base: 20'h00100, limit: 20'h001ff};
    settings.regions[5] = '{read: 1'b0, write: 1'b1, base: 20'h00200, limit: 20'h002ff};
    stream.base         = 32'h0024_0040;
    stream.length       = 32'h0001_0000;
  end

  npu_mem_port #(
    .NumRd    (NumRd),
    .NumWr    (1),
    .RdEngines('{EngStream, EngLd, EngSeq}),
    .WrEngines('{EngSt})
  ) u_mem_port (
    .clk_i     (clk),
    .rst_ni    (rst_n),
    .rd_req_i  (rd_req),
    .rd_rsp_o  (rd_rsp),
    .wr_req_i  (wr_req),
    .w_i       (w),
    .wr_rsp_o  (wr_rsp),
    .settings_i(settings),
    .stream_i  (stream),
    .drain_i   (drain),
    .bus_o     (bus),
    .latency_o (),
    .word_o    (),
    .axi_req_o (axi_req),
    .axi_rsp_i (axi_rsp)
  );

  logic [31:0] cycle;
  logic [ 9:0] drained;  // cycles since the error

  always @(posedge clk) begin
    cycle <= rst_n ? cycle + 32'd1 : '0;
    if (!rst_n) begin
      drain   <= 1'b0;
      drained <= '0;
    end else if (bus.error.valid && !drain) begin
      drain <= 1'b1;
      tb_memory_now(unit_pkg::ObservedAt + FaultSlot * unit_pkg::SlotBytes, {
                    32'(bus.error.code), 32'(bus.error.engine), bus.error.instr, bus.error.addr});
    end else if (drain && drained != Silence) begin
      drained <= drained + 10'd1;
      tb_memory_now(unit_pkg::ObservedAt + FaultSlot * unit_pkg::SlotBytes + 16, {
                    32'd0, 32'(bus.idle), 32'(bus.stuck), cycle - 32'(drained) - 32'd1});
    end
  end

  // ---------------------------------------------------------------------------------------------
  // Memory
  // ---------------------------------------------------------------------------------------------
  logic [23:0] timeout;

  always @(posedge clk) begin
    if (start) begin
      automatic bit [127:0] word;
      tb_memory_read(unit_pkg::ProgramAt + SettingSlot * unit_pkg::SlotBytes + 16, word);
      timeout <= word[23:0];
    end
  end

  logic [31:0] bursts;  // on the bus; bit 32 of what is noted of one says that it writes

  always @(posedge clk) begin
    automatic int unsigned count = bursts;
    if (rst_n && axi_req.rd.arvalid && axi_rsp.rd.arready) begin
      tb_memory_now(unit_pkg::ObservedAt + BusSlot * unit_pkg::SlotBytes + 16 * count, {
                    95'd0, 1'b0, axi_req.rd.araddr});
      count++;
    end
    if (rst_n && axi_req.wr.awvalid && axi_rsp.wr.awready) begin
      tb_memory_now(unit_pkg::ObservedAt + BusSlot * unit_pkg::SlotBytes + 16 * count, {
                    95'd0, 1'b1, axi_req.wr.awaddr});
      count++;
    end
    bursts <= rst_n ? count : '0;
  end

  unit_axi_memory #(
    .Faulty(1'b1)
  ) u_memory (
    .clk_i    (clk),
    .rst_ni   (rst_n),
    .world_i  (world),
    .start_i  (start),
    .speak_i  (drained == Silence),
    .axi_req_i(axi_req),
    .axi_rsp_o(axi_rsp)
  );

endmodule
