// SPDX-License-Identifier: Apache-2.0
//
// The on-chip SRAM: 16 or 4 banks of 16-byte words behind a read and a write crossbar. Every client has
// its own port; clients that meet on a bank take turns, because the port that goes first moves on
// where a request is refused. Read data follows the accepted request by one cycle.

module npu_sram
  import npu_pkg::*;
  import npu_sram_pkg::*;
#(
  parameter int unsigned Words = 16384,  // words of 16 bytes: a power of two from 256 to 65536
  parameter int unsigned NumBanks = 16,  // a power of two from 2 to 16
  parameter int unsigned NumRd = NumSramRd,  // read ports, at least 2
  parameter int unsigned NumWr = NumSramWr  // write ports, at least 3
) (
  input  logic         clk_i,              // clock
  input  logic         rst_ni,             // reset, active low
  input  sram_rd_req_t rd_req_i  [NumRd],  // may be withdrawn or changed before its ready
  // Granted after at most NumRd + 1 cycles of waiting; the word comes one cycle later
  output sram_rd_rsp_t rd_rsp_o  [NumRd],
  input  sram_wr_req_t wr_req_i  [NumWr],  // may be withdrawn or changed before its ready
  // Taken: reads granted later see it, what one of the same cycle finds is left open; at most
  // NumWr - 1 cycles of waiting
  output logic         wr_ready_o[NumWr]
);

  localparam int unsigned Rows = Words / NumBanks;
  localparam int unsigned RowW = $clog2(Rows);
  localparam int unsigned BankW = $clog2(NumBanks);
  localparam int unsigned WrW = $clog2(NumWr);
  localparam int unsigned RdTurns = NumRd + 2;
  localparam int unsigned WrTurns = NumWr;

  if (Words < 256 || (Words & (Words - 1)) != 0 || Words > 65536) begin : gen_bad_size
    $fatal(1, "npu_sram: Words = %0d, must be a power of two from 256 to 65536", Words);
  end
  if (NumRd < 2 || NumWr < 3) begin : gen_bad_ports
    $fatal(1, "npu_sram: NumRd = %0d, at least 2, NumWr = %0d, at least 3", NumRd, NumWr);
  end

  // Ports that go behind all others this cycle: those with a number below that of the first one. In
  // the last two turns of reads the order is that of the numbers again.
  logic [RdTurns-2:0] rd_turn_q;
  logic [WrTurns-2:0] wr_turn_q;

  // By bank: who asks for it, and who gets it
  logic [NumRd-1:0] rd_asks[NumBanks], rd_grant[NumBanks];
  logic [NumWr-1:0] wr_asks[NumBanks], wr_grant[NumBanks];
  logic [WrW-1:0] wr_port[NumBanks];
  logic [RowW-1:0] rd_row[NumBanks];
  logic [RowW-1:0] wr_row[NumBanks];
  word_t wr_data[NumBanks];
  word_t rd_data[NumBanks];
  logic [NumRd-1:0] rd_valid, rd_ready, rd_granted;
  logic [NumWr-1:0] wr_valid, wr_ready, wr_granted;
  logic [NumRd-1:0][BankW-1:0] rd_bank;
  logic [NumWr-1:0][BankW-1:0] wr_bank;

  always_comb begin : requests
    for (int unsigned i = 0; i < NumRd; i++) begin
      rd_valid[i] = rd_req_i[i].valid;
      rd_bank[i]  = BankW'(sram_bank(rd_req_i[i].addr));
    end
    for (int unsigned i = 0; i < NumWr; i++) begin
      wr_valid[i] = wr_req_i[i].valid;
      wr_bank[i]  = BankW'(sram_bank(wr_req_i[i].addr));
    end
    for (int unsigned b = 0; b < NumBanks; b++) begin
      for (int unsigned i = 0; i < NumRd; i++) begin
        rd_asks[b][i] = rd_valid[i] && rd_bank[i] == BankW'(b);
      end
      for (int unsigned i = 0; i < NumWr; i++) begin
        wr_asks[b][i] = wr_valid[i] && wr_bank[i] == BankW'(b);
      end
    end
  end

  npu_sram_ready #(
    .Ports(NumRd),
    .BankW(BankW)
  ) u_rd_ready (
    .valid_i (rd_valid),
    .bank_i  (rd_bank),
    .behind_i(rd_turn_q[NumRd-1:0]),
    .ready_o (rd_ready)
  );

  npu_sram_ready #(
    .Ports(NumWr),
    .BankW(BankW)
  ) u_wr_ready (
    .valid_i (wr_valid),
    .bank_i  (wr_bank),
    .behind_i({1'b0, wr_turn_q}),
    .ready_o (wr_ready)
  );

  always_comb begin : crossbars
    rd_granted = '0;
    wr_granted = '0;
    for (int unsigned b = 0; b < NumBanks; b++) begin
      rd_granted |= rd_grant[b];
      wr_granted |= wr_grant[b];
      {rd_row[b], wr_port[b]} = '0;
      for (int unsigned i = 0; i < NumRd; i++) begin
        if (rd_grant[b][i]) rd_row[b] |= rd_req_i[i].addr[RowW+BankW-1:BankW];
      end
      for (int unsigned i = 0; i < NumWr; i++) if (wr_grant[b][i]) wr_port[b] |= WrW'(i);
      wr_row[b]  = wr_req_i[wr_port[b]].addr[RowW+BankW-1:BankW];
      wr_data[b] = wr_req_i[wr_port[b]].data;
    end
  end

  for (genvar b = 0; b < int'(NumBanks); b++) begin : gen_bank
    npu_sram_arbiter #(
      .Ports(NumRd)
    ) u_rd_arbiter (
      .asks_i  (rd_asks[b]),
      .behind_i(rd_turn_q[NumRd-1:0]),
      .grant_o (rd_grant[b])
    );

    npu_sram_arbiter #(
      .Ports(NumWr)
    ) u_wr_arbiter (
      .asks_i  (wr_asks[b]),
      .behind_i({1'b0, wr_turn_q}),
      .grant_o (wr_grant[b])
    );

    npu_memory #(
      .DataT(word_t),
      .Rows (Rows)
    ) u_bank (
      .clk_i,
      .rd_en_i  (|rd_asks[b]),
      .rd_row_i (rd_row[b]),
      .rd_data_o(rd_data[b]),
      .wr_en_i  (|wr_asks[b]),
      .wr_row_i (wr_row[b]),
      .wr_data_i(wr_data[b])
    );
  end

  logic             rsp_valid_q[NumRd];
  logic [BankW-1:0] rsp_bank_q [NumRd];

  always_ff @(posedge clk_i) begin
    if (!rst_ni) begin
      rd_turn_q <= '0;
      wr_turn_q <= '0;
      for (int unsigned i = 0; i < NumRd; i++) begin
        rsp_valid_q[i] <= 1'b0;
        rsp_bank_q[i]  <= '0;
      end
    end else begin
      if ((rd_valid & ~rd_ready) != '0) begin
        rd_turn_q <= rd_turn_q[RdTurns-2] ? '0 : {rd_turn_q[RdTurns-3:0], 1'b1};
      end
      if ((wr_valid & ~wr_ready) != '0) begin
        wr_turn_q <= wr_turn_q[WrTurns-2] ? '0 : {wr_turn_q[WrTurns-3:0], 1'b1};
      end
      for (int unsigned i = 0; i < NumRd; i++) begin
        rsp_valid_q[i] <= rd_ready[i];
        rsp_bank_q[i]  <= rd_bank[i];
      end
    end
  end

  for (genvar i = 0; i < int'(NumRd); i++) begin : gen_rsp
    assign rd_rsp_o[i].ready = rd_ready[i];
    assign rd_rsp_o[i].valid = rsp_valid_q[i];
    assign rd_rsp_o[i].data  = rd_data[rsp_bank_q[i]];

`ifndef SYNTHESIS
    ReadInside_A :
    assert property (@(posedge clk_i) disable iff (!rst_ni)
                     rd_req_i[i].valid |-> 32'(rd_req_i[i].addr) < Words)
    else $error("npu_sram: read port %0d outside the SRAM", i);
`endif
  end

`ifndef SYNTHESIS
  ReadyIsGrant_A :
  assert property (@(posedge clk_i) disable iff (!rst_ni)
                   rd_ready == rd_granted && wr_ready == wr_granted)
  else $error("npu_sram: a port is told something else than its bank does");
`endif

  for (genvar i = 0; i < int'(NumWr); i++) begin : gen_wr
    assign wr_ready_o[i] = wr_ready[i];

`ifndef SYNTHESIS
    WriteInside_A :
    assert property (@(posedge clk_i) disable iff (!rst_ni)
                     wr_req_i[i].valid |-> 32'(wr_req_i[i].addr) < Words)
    else $error("npu_sram: write port %0d outside the SRAM", i);
`endif
  end

endmodule
