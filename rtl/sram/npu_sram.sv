// SPDX-License-Identifier: Apache-2.0
//
// The on-chip SRAM: 16 banks of 16-byte words behind a read and a write crossbar. Every client has
// its own port; clients that meet on a bank take turns, because the port that goes first rotates
// with every cycle of requests. Read data follows the accepted request by one cycle.

module npu_sram
  import npu_pkg::*;
  import npu_sram_pkg::*;
#(
  parameter int unsigned Words = 16384,      // words of 16 bytes: a power of two from 256 to 65536
  parameter int unsigned NumRd = NumSramRd,  // read ports, at least 2
  parameter int unsigned NumWr = NumSramWr   // write ports, at least 2
) (
  input  logic         clk_i,              // clock
  input  logic         rst_ni,             // reset, active low
  input  sram_rd_req_t rd_req_i  [NumRd],  // may be withdrawn or changed before its ready
  // Granted after at most NumRd - 1 cycles of waiting; the word comes one cycle later
  output sram_rd_rsp_t rd_rsp_o  [NumRd],
  input  sram_wr_req_t wr_req_i  [NumWr],  // may be withdrawn or changed before its ready
  // Taken: reads granted later see it; at most NumWr - 1 cycles of waiting
  output logic         wr_ready_o[NumWr]
);

  localparam int unsigned Rows = Words / NumSramBanks;
  localparam int unsigned RowW = $clog2(Rows);
  localparam int unsigned RdW = $clog2(NumRd);
  localparam int unsigned WrW = $clog2(NumWr);

  if (Words % NumSramBanks != 0 || (Words & (Words - 1)) != 0 || Words > 65536) begin : gen_bad_size
    $fatal(1, "npu_sram: Words = %0d, must be a power of two from 256 to 65536", Words);
  end
  if (NumRd < 2 || NumWr < 2) begin : gen_bad_ports
    $fatal(1, "npu_sram: NumRd = %0d, NumWr = %0d, must be at least 2", NumRd, NumWr);
  end

  // Which client goes first this cycle
  logic [RdW-1:0] rd_first_q;
  logic [WrW-1:0] wr_first_q;

  logic [NumRd-1:0] rd_valid, rd_ready;
  logic [NumWr-1:0] wr_valid;
  logic [NumSramBanks-1:0] rd_en, wr_en;
  logic [RowW-1:0] rd_row[NumSramBanks];
  logic [RowW-1:0] wr_row[NumSramBanks];
  word_t wr_data[NumSramBanks];
  word_t rd_data[NumSramBanks];

  // The port that is i-th in turn
  function automatic logic [RdW-1:0] rd_port(logic [RdW-1:0] first, logic [RdW-1:0] i);
    logic [RdW:0] port;
    port = {1'b0, first} + {1'b0, i};
    if (port >= (RdW + 1)'(NumRd)) port -= (RdW + 1)'(NumRd);
    return port[RdW-1:0];
  endfunction

  function automatic logic [WrW-1:0] wr_port(logic [WrW-1:0] first, logic [WrW-1:0] i);
    logic [WrW:0] port;
    port = {1'b0, first} + {1'b0, i};
    if (port >= (WrW + 1)'(NumWr)) port -= (WrW + 1)'(NumWr);
    return port[WrW-1:0];
  endfunction

  always_comb begin : read_crossbar
    rd_en = '0;
    for (int unsigned b = 0; b < NumSramBanks; b++) rd_row[b] = '0;
    for (int unsigned i = 0; i < NumRd; i++) begin
      rd_ready[i] = 1'b0;
      rd_valid[i] = rd_req_i[i].valid;
    end
    for (int unsigned i = 0; i < NumRd; i++) begin
      automatic logic [RdW-1:0] port = rd_port(rd_first_q, RdW'(i));
      automatic logic [3:0] bank = sram_bank(rd_req_i[port].addr);
      if (rd_req_i[port].valid && !rd_en[bank]) begin
        rd_ready[port] = 1'b1;
        rd_en[bank]    = 1'b1;
        rd_row[bank]   = rd_req_i[port].addr[RowW+3:4];
      end
    end
  end

  always_comb begin : write_crossbar
    wr_en = '0;
    for (int unsigned b = 0; b < NumSramBanks; b++) begin
      wr_row[b]  = '0;
      wr_data[b] = '0;
    end
    for (int unsigned i = 0; i < NumWr; i++) begin
      wr_ready_o[i] = 1'b0;
      wr_valid[i]   = wr_req_i[i].valid;
    end
    for (int unsigned i = 0; i < NumWr; i++) begin
      automatic logic [WrW-1:0] port = wr_port(wr_first_q, WrW'(i));
      automatic logic [3:0] bank = sram_bank(wr_req_i[port].addr);
      if (wr_req_i[port].valid && !wr_en[bank]) begin
        wr_ready_o[port] = 1'b1;
        wr_en[bank]      = 1'b1;
        wr_row[bank]     = wr_req_i[port].addr[RowW+3:4];
        wr_data[bank]    = wr_req_i[port].data;
      end
    end
  end

  for (genvar b = 0; b < int'(NumSramBanks); b++) begin : gen_bank
    npu_sram_bank #(
      .Rows(Rows)
    ) u_bank (
      .clk_i,
      .rd_en_i  (rd_en[b]),
      .rd_row_i (rd_row[b]),
      .rd_data_o(rd_data[b]),
      .wr_en_i  (wr_en[b]),
      .wr_row_i (wr_row[b]),
      .wr_data_i(wr_data[b])
    );
  end

  logic       rsp_valid_q[NumRd];
  logic [3:0] rsp_bank_q [NumRd];

  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) begin
      rd_first_q <= '0;
      wr_first_q <= '0;
      for (int unsigned i = 0; i < NumRd; i++) begin
        rsp_valid_q[i] <= 1'b0;
        rsp_bank_q[i]  <= '0;
      end
    end else begin
      if (|rd_valid) rd_first_q <= (rd_first_q == RdW'(NumRd - 1)) ? '0 : rd_first_q + 1'b1;
      if (|wr_valid) wr_first_q <= (wr_first_q == WrW'(NumWr - 1)) ? '0 : wr_first_q + 1'b1;
      for (int unsigned i = 0; i < NumRd; i++) begin
        rsp_valid_q[i] <= rd_ready[i];
        rsp_bank_q[i]  <= sram_bank(rd_req_i[i].addr);
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
  for (genvar i = 0; i < int'(NumWr); i++) begin : gen_wr_check
    WriteInside_A :
    assert property (@(posedge clk_i) disable iff (!rst_ni)
                     wr_req_i[i].valid |-> 32'(wr_req_i[i].addr) < Words)
    else $error("npu_sram: write port %0d outside the SRAM", i);
  end
`endif

endmodule
