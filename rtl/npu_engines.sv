// SPDX-License-Identifier: Apache-2.0
//
// The engines around their SRAM. Each takes operations over valid/ready, works on SRAM through
// ports of its own, and answers done; none knows of the others. An engine without an operation has
// no clock.

module npu_engines
  import npu_pkg::*;
  import npu_sram_pkg::*;
  import npu_mem_pkg::*;
  import npu_operation_pkg::*;
  import npu_stream_pkg::*;
  import npu_isa_pkg::*;
#(
  // Rows and columns of the systolic array: 4, 8, 16 or 32
  parameter int unsigned ArrayDim = 16,
  // Words of the SRAM: a power of two from 256 to 65536
  parameter int unsigned SramWords = 16384,
  // Rows of an accumulator bank, a power of two of at least 4
  parameter int unsigned AccRows = 128,
  // Longest norm row in columns, a multiple of 16 from 32 to 8192
  parameter int unsigned NormMax = 8192,
  // Formats of weights in the stream other than int8
  parameter bit NarrowFormats = 1'b1
) (
  input logic clk_i,  // clock
  input logic rst_ni, // reset, active low

  // Operations, by engine
  input logic [NumEngines-1:0] op_valid_i,  // an operation; stays until ready, data stable
  output logic [NumEngines-1:0] op_ready_o,  // taken; independent of op_valid_i
  input operations_t operations_i,  // those of op_valid_i hold
  output engine_status_t status_o[NumEngines],  // by engine; done: its oldest operation is finished
  output logic [11:0] macs_o,  // multiplications of GEMM in this cycle, for the counters
  output error_t error_o,  // of the load engine: a level until reset
  output logic token_done_o,  // pulse: a token of ARGMAX is in memory

  // Running argmax of GEMM
  output argmax_t argmax_o,       // counts an operation from the cycle after its done on
  input  logic    argmax_clear_i, // pulse: no value yet; not while GEMM works on one with argmax

  // Shares of the parameter stream, by engine
  // A line; stays until ready, data stable; for one engine at most
  input  logic  [NumEngines-1:0] line_valid_i,
  input  line_t                  line_data_i,   // the line, first byte lowest, with line_valid_i
  output logic  [NumEngines-1:0] line_ready_o,  // taken; a level, independent of line_valid_i
  output logic  [NumEngines-1:0] line_last_o,   // with line_ready_o: the line is the share's last

  // Memory
  output mem_req_t    mem_rd_req_o,  // of the load engine; stays until ready, all stable
  // Ready may depend on mem_rd_req_o.valid; words in order, never refused
  input  mem_rd_rsp_t mem_rd_rsp_i,
  output mem_req_t    mem_wr_req_o,  // of the store engine; stays until ready, all stable
  // Words of its bursts, in order; stays until word_ready, all stable
  output mem_wdata_t  mem_w_o,
  // Ready may depend on mem_wr_req_o.valid; done: one pulse for every burst
  input  mem_wr_rsp_t mem_wr_rsp_i
);

  // SRAM ports
  localparam int unsigned RdDma = 0;  // load and store
  localparam int unsigned RdGemm = 1;  // four ports
  localparam int unsigned RdRows = 5;  // softmax, norm and vector
  localparam int unsigned WrLoad = 0;
  localparam int unsigned WrGemm = 1;
  localparam int unsigned WrRows = 2;  // softmax, norm and vector
  localparam int unsigned WrStore = 3;
  // Their clients
  localparam int unsigned DmaLoad = 0;
  localparam int unsigned DmaStore = 1;
  localparam int unsigned RowsSmx = 0;
  localparam int unsigned RowsNrm = 1;
  localparam int unsigned RowsVec = 2;

  // Engines with a share of the stream
  share_line_t gemm_line, nrm_line, vec_line;
  share_take_t gemm_take, nrm_take, vec_take;

  assign gemm_line = '{valid: line_valid_i[EngGemm], data: line_data_i};
  assign nrm_line  = '{valid: line_valid_i[EngNrm], data: line_data_i};
  assign vec_line  = '{valid: line_valid_i[EngVec], data: line_data_i};

  always_comb begin
    {line_ready_o, line_last_o} = '0;
    {line_ready_o[EngGemm], line_last_o[EngGemm]} = {gemm_take.ready, gemm_take.last};
    {line_ready_o[EngNrm], line_last_o[EngNrm]} = {nrm_take.ready, nrm_take.last};
    {line_ready_o[EngVec], line_last_o[EngVec]} = {vec_take.ready, vec_take.last};
  end

  // ---------------------------------------------------------------------------------------------
  // SRAM
  // ---------------------------------------------------------------------------------------------
  sram_rd_req_t rd_req  [NumSramRd];
  sram_rd_rsp_t rd_rsp  [NumSramRd];
  sram_wr_req_t wr_req  [NumSramWr];
  logic         wr_ready[NumSramWr];

  npu_sram #(
    .Words   (SramWords),
    .NumBanks(sram_banks(ArrayDim))
  ) u_sram (
    .clk_i,
    .rst_ni,
    .rd_req_i  (rd_req),
    .rd_rsp_o  (rd_rsp),
    .wr_req_i  (wr_req),
    .wr_ready_o(wr_ready)
  );

  sram_rd_req_t dma_rd_req[2], rows_rd_req[3];
  sram_rd_rsp_t dma_rd_rsp[2], rows_rd_rsp[3];
  sram_wr_req_t rows_wr_req[3];
  logic rows_wr_ready[3];

  npu_sram_read_share #(
    .Clients(2)
  ) u_dma_read (
    .clk_i,
    .rst_ni,
    .rd_req_i(dma_rd_req),
    .rd_rsp_o(dma_rd_rsp),
    .rd_req_o(rd_req[RdDma]),
    .rd_rsp_i(rd_rsp[RdDma])
  );

  npu_sram_read_share #(
    .Clients(3)
  ) u_rows_read (
    .clk_i,
    .rst_ni,
    .rd_req_i(rows_rd_req),
    .rd_rsp_o(rows_rd_rsp),
    .rd_req_o(rd_req[RdRows]),
    .rd_rsp_i(rd_rsp[RdRows])
  );

  npu_sram_write_share #(
    .Clients(3)
  ) u_rows_write (
    .clk_i,
    .rst_ni,
    .wr_req_i  (rows_wr_req),
    .wr_ready_o(rows_wr_ready),
    .wr_req_o  (wr_req[WrRows]),
    .wr_ready_i(wr_ready[WrRows])
  );

  // ---------------------------------------------------------------------------------------------
  // Clocks
  // ---------------------------------------------------------------------------------------------
  logic [NumEngines-1:0] awake, clk;

  always_comb begin
    for (int unsigned e = 0; e < NumEngines; e++) awake[e] = op_valid_i[e] || status_o[e].busy;
    if (argmax_clear_i) awake[EngGemm] = 1'b1;
  end

  for (genvar e = 0; e < int'(NumEngines); e++) begin : gen_clock
    npu_block_clock u_clock (
      .clk_i,
      .rst_ni,
      .awake_i(awake[e]),
      .clk_o  (clk[e])
    );
  end

  // ---------------------------------------------------------------------------------------------
  // Engines
  // ---------------------------------------------------------------------------------------------
  npu_dma_load #(
    .ArrayDim(ArrayDim)
  ) u_load (
    .clk_i        (clk[EngLd]),
    .rst_ni,
    .op_valid_i   (op_valid_i[EngLd]),
    .op_ready_o   (op_ready_o[EngLd]),
    .op_i         (operations_i.load),
    .status_o     (status_o[EngLd]),
    .error_o,
    .rd_req_o     (mem_rd_req_o),
    .rd_rsp_i     (mem_rd_rsp_i),
    .sram_rd_req_o(dma_rd_req[DmaLoad]),
    .sram_rd_rsp_i(dma_rd_rsp[DmaLoad]),
    .wr_req_o     (wr_req[WrLoad]),
    .wr_ready_i   (wr_ready[WrLoad])
  );

  npu_dma_store #(
    .ArrayDim(ArrayDim)
  ) u_store (
    .clk_i          (clk[EngSt]),
    .rst_ni,
    .op_valid_i     (op_valid_i[EngSt]),
    .op_ready_o     (op_ready_o[EngSt]),
    .op_i           (operations_i.store),
    .status_o       (status_o[EngSt]),
    .token_done_o,
    .rd_req_o       (dma_rd_req[DmaStore]),
    .rd_rsp_i       (dma_rd_rsp[DmaStore]),
    .wr_req_o       (mem_wr_req_o),
    .w_o            (mem_w_o),
    .wr_rsp_i       (mem_wr_rsp_i),
    .sram_wr_req_o  (wr_req[WrStore]),
    .sram_wr_ready_i(wr_ready[WrStore])
  );

  npu_gemm #(
    .ArrayDim(ArrayDim),
    .AccRows(AccRows),
    .NarrowFormats(NarrowFormats)
  ) u_gemm (
    .clk_i     (clk[EngGemm]),
    .rst_ni,
    .op_valid_i(op_valid_i[EngGemm]),
    .op_ready_o(op_ready_o[EngGemm]),
    .op_i      (operations_i.gemm),
    .status_o  (status_o[EngGemm]),
    .share_i   (gemm_line),
    .share_o   (gemm_take),
    .rd_req_o  (rd_req[RdGemm:RdGemm+3]),
    .rd_rsp_i  (rd_rsp[RdGemm:RdGemm+3]),
    .wr_req_o  (wr_req[WrGemm]),
    .wr_ready_i(wr_ready[WrGemm]),
    .argmax_o,
    .argmax_clear_i,
    .macs_o
  );

  npu_softmax #(
    .ArrayDim(ArrayDim)
  ) u_softmax (
    .clk_i     (clk[EngSmx]),
    .rst_ni,
    .op_valid_i(op_valid_i[EngSmx]),
    .op_ready_o(op_ready_o[EngSmx]),
    .op_i      (operations_i.smx),
    .status_o  (status_o[EngSmx]),
    .rd_req_o  (rows_rd_req[RowsSmx]),
    .rd_rsp_i  (rows_rd_rsp[RowsSmx]),
    .wr_req_o  (rows_wr_req[RowsSmx]),
    .wr_ready_i(rows_wr_ready[RowsSmx])
  );

  npu_nrm #(
    .ArrayDim(ArrayDim),
    .NormMax (NormMax)
  ) u_nrm (
    .clk_i     (clk[EngNrm]),
    .rst_ni,
    .op_valid_i(op_valid_i[EngNrm]),
    .op_ready_o(op_ready_o[EngNrm]),
    .op_i      (operations_i.nrm),
    .status_o  (status_o[EngNrm]),
    .rd_req_o  (rows_rd_req[RowsNrm]),
    .rd_rsp_i  (rows_rd_rsp[RowsNrm]),
    .wr_req_o  (rows_wr_req[RowsNrm]),
    .wr_ready_i(rows_wr_ready[RowsNrm]),
    .share_i   (nrm_line),
    .share_o   (nrm_take)
  );

  npu_vec #(
    .ArrayDim(ArrayDim)
  ) u_vec (
    .clk_i     (clk[EngVec]),
    .rst_ni,
    .op_valid_i(op_valid_i[EngVec]),
    .op_ready_o(op_ready_o[EngVec]),
    .op_i      (operations_i.vec),
    .status_o  (status_o[EngVec]),
    .rd_req_o  (rows_rd_req[RowsVec]),
    .rd_rsp_i  (rows_rd_rsp[RowsVec]),
    .wr_req_o  (rows_wr_req[RowsVec]),
    .wr_ready_i(rows_wr_ready[RowsVec]),
    .share_i   (vec_line),
    .share_o   (vec_take)
  );

`ifndef SYNTHESIS
  // What a read finds that meets the write of its word is left open. An empty sum reads words of A
  // of which nothing counts, so a program need not wait for them.
  logic meet, empty_sum;
  assign empty_sum = u_gemm.u_sums.u_feeder.u_operand_a.op_i.k == '0;

  always_comb begin
    meet = 1'b0;
    for (int unsigned r = 0; r < NumSramRd; r++) begin
      for (int unsigned w = 0; w < NumSramWr; w++) begin
        meet |= rd_req[r].valid && rd_rsp[r].ready && wr_req[w].valid && wr_ready[w] &&
                rd_req[r].addr == wr_req[w].addr && !(r == RdGemm && empty_sum);
      end
    end
  end

  ReadBesideWrite_A :
  assert property (@(posedge clk_i) disable iff (!rst_ni) !meet)
  else $error("npu_engines: a word of SRAM is read as it is written");

  // Who asks for something, or is told something
  logic [NumEngines-1:0] speaks;

  always_comb begin
    speaks = line_ready_o;
    for (int unsigned e = 0; e < NumEngines; e++) speaks[e] |= status_o[e].done;
    for (int unsigned p = RdGemm; p < RdGemm + 4; p++) begin
      speaks[EngGemm] |= rd_req[p].valid || rd_rsp[p].valid;
    end
    speaks[EngGemm] |= wr_req[WrGemm].valid || macs_o != '0;
    speaks[EngSmx] |= rows_rd_req[RowsSmx].valid || rows_rd_rsp[RowsSmx].valid ||
                      rows_wr_req[RowsSmx].valid;
    speaks[EngNrm] |= rows_rd_req[RowsNrm].valid || rows_rd_rsp[RowsNrm].valid ||
                      rows_wr_req[RowsNrm].valid;
    speaks[EngVec] |= rows_rd_req[RowsVec].valid || rows_rd_rsp[RowsVec].valid ||
                      rows_wr_req[RowsVec].valid;
    speaks[EngLd] |= dma_rd_req[DmaLoad].valid || dma_rd_rsp[DmaLoad].valid ||
                     wr_req[WrLoad].valid || mem_rd_req_o.valid || mem_rd_rsp_i.valid;
    speaks[EngSt] |= dma_rd_req[DmaStore].valid || dma_rd_rsp[DmaStore].valid ||
                     wr_req[WrStore].valid || mem_wr_req_o.valid || mem_w_o.valid ||
                     mem_wr_rsp_i.done;
  end

  SilentAsleep_A :
  assert property (@(posedge clk_i) disable iff (!rst_ni) (speaks & ~awake) == '0)
  else $error("npu_engines: engines %b say or hear something without a clock", speaks & ~awake);
`endif

endmodule
