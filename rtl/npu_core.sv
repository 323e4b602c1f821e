// SPDX-License-Identifier: Apache-2.0
//
// The core: sequencer, engines, parameter streamer, SRAM and the memory port. It knows nothing of
// the host's registers; it is given a program, a stream and base addresses, and reports how it
// ended. Everything but the memory port is reset whenever a program ends, however it ends.

module npu_core
  import npu_pkg::*;
  import npu_isa_pkg::*;
#(
  parameter int unsigned ArrayDim = 16,
  parameter int unsigned SramKiB  = 256,
  parameter int unsigned AccRows  = 128,
  parameter int unsigned FifoKiB  = 32,
  parameter int unsigned NormMax  = 8192
) (
  input logic clk_i,
  input logic rst_ni,

  // Control
  input  logic              start_i,
  input  logic              soft_reset_i,
  input  mem_addr_t         ucode_base_i,
  input  logic       [31:0] ucode_length_i,
  input  mem_addr_t         stream_base_i,
  input  logic       [31:0] stream_length_i,
  input  mem_addr_t         base_i         [8],
  input  logic       [31:0] pos_i,
  output logic              started_o,
  output logic              busy_o,
  output logic              done_o,
  output logic              finish_o,
  output error_e            error_o,
  output engine_e           error_engine_o,
  output instr_idx_t        error_instr_o,
  output mem_addr_t         error_addr_o,

  // Events to count
  output logic [          11:0] macs_o,
  output logic                  instr_o,
  output logic                  stream_beat_o,
  output logic [NumEngines-1:0] engine_busy_o,
  output logic [NumEngines-1:0] engine_stall_o,

  // Memory port
  output logic             m_axi_arvalid_o,
  input  logic             m_axi_arready_i,
  output logic      [ 3:0] m_axi_arid_o,
  output mem_addr_t        m_axi_araddr_o,
  output logic      [ 7:0] m_axi_arlen_o,
  input  logic             m_axi_rvalid_i,
  output logic             m_axi_rready_o,
  input  logic      [ 3:0] m_axi_rid_i,
  input  word_t            m_axi_rdata_i,
  input  logic      [ 1:0] m_axi_rresp_i,
  input  logic             m_axi_rlast_i,
  output logic             m_axi_awvalid_o,
  input  logic             m_axi_awready_i,
  output logic      [ 3:0] m_axi_awid_o,
  output mem_addr_t        m_axi_awaddr_o,
  output logic      [ 7:0] m_axi_awlen_o,
  output logic             m_axi_wvalid_o,
  input  logic             m_axi_wready_i,
  output word_t            m_axi_wdata_o,
  output logic      [15:0] m_axi_wstrb_o,
  output logic             m_axi_wlast_o,
  input  logic             m_axi_bvalid_i,
  output logic             m_axi_bready_o,
  input  logic      [ 3:0] m_axi_bid_i,
  input  logic      [ 1:0] m_axi_bresp_i
);

  localparam int unsigned SramWords = SramKiB * 1024 / WordBytes;

  // AXI IDs: the number of the client
  localparam logic [3:0] IdLoad = 4'd0;
  localparam logic [3:0] IdStore = 4'd1;
  localparam logic [3:0] IdUcode = 4'd2;
  localparam logic [3:0] IdStream = 4'd3;

  // Read clients in the order of their priority
  localparam int unsigned RdLoad = 0;
  localparam int unsigned RdUcode = 1;
  localparam int unsigned RdStream = 2;

  logic core_rst_n, start, drain, bus_idle, rd_idle, wr_idle;

  // ---------------------------------------------------------------------------------------------
  // Memory port
  // ---------------------------------------------------------------------------------------------
  logic ar_valid[3], ar_ready[3], r_valid[3];
  mem_addr_t       ar_addr[3];
  logic      [7:0] ar_len [3];
  word_t           r_data;
  logic rd_error, wr_error;
  logic [3:0] rd_error_id;
  mem_addr_t rd_error_addr, wr_error_addr;

  npu_axi_read #(
    .NumClients(3),
    .Ids       ({IdStream, IdUcode, IdLoad})
  ) u_axi_read (
    .clk_i,
    .rst_ni,
    .ar_valid_i  (ar_valid),
    .ar_ready_o  (ar_ready),
    .ar_addr_i   (ar_addr),
    .ar_len_i    (ar_len),
    .r_valid_o   (r_valid),
    .r_data_o    (r_data),
    .drain_i     (drain),
    .idle_o      (rd_idle),
    .error_o     (rd_error),
    .error_id_o  (rd_error_id),
    .error_addr_o(rd_error_addr),
    .m_arvalid_o (m_axi_arvalid_o),
    .m_arready_i (m_axi_arready_i),
    .m_arid_o    (m_axi_arid_o),
    .m_araddr_o  (m_axi_araddr_o),
    .m_arlen_o   (m_axi_arlen_o),
    .m_rvalid_i  (m_axi_rvalid_i),
    .m_rready_o  (m_axi_rready_o),
    .m_rid_i     (m_axi_rid_i),
    .m_rdata_i   (m_axi_rdata_i),
    .m_rresp_i   (m_axi_rresp_i),
    .m_rlast_i   (m_axi_rlast_i)
  );

  logic aw_valid[1], aw_ready[1], w_valid[1], w_ready[1], b_valid[1];
  mem_addr_t        aw_addr[1];
  logic      [ 7:0] aw_len [1];
  word_t            w_data [1];
  logic      [15:0] w_strb [1];

  npu_axi_write #(
    .NumClients(1),
    .Ids       (IdStore)
  ) u_axi_write (
    .clk_i,
    .rst_ni,
    .aw_valid_i  (aw_valid),
    .aw_ready_o  (aw_ready),
    .aw_addr_i   (aw_addr),
    .aw_len_i    (aw_len),
    .w_valid_i   (w_valid),
    .w_ready_o   (w_ready),
    .w_data_i    (w_data),
    .w_strb_i    (w_strb),
    .b_valid_o   (b_valid),
    .drain_i     (drain),
    .idle_o      (wr_idle),
    .error_o     (wr_error),
    .error_addr_o(wr_error_addr),
    .m_awvalid_o (m_axi_awvalid_o),
    .m_awready_i (m_axi_awready_i),
    .m_awid_o    (m_axi_awid_o),
    .m_awaddr_o  (m_axi_awaddr_o),
    .m_awlen_o   (m_axi_awlen_o),
    .m_wvalid_o  (m_axi_wvalid_o),
    .m_wready_i  (m_axi_wready_i),
    .m_wdata_o   (m_axi_wdata_o),
    .m_wstrb_o   (m_axi_wstrb_o),
    .m_wlast_o   (m_axi_wlast_o),
    .m_bvalid_i  (m_axi_bvalid_i),
    .m_bready_o  (m_axi_bready_o),
    .m_bid_i     (m_axi_bid_i),
    .m_bresp_i   (m_axi_bresp_i)
  );

  assign bus_idle      = rd_idle && wr_idle;
  assign stream_beat_o = m_axi_rvalid_i && m_axi_rid_i == IdStream;

  // ---------------------------------------------------------------------------------------------
  // Program control
  // ---------------------------------------------------------------------------------------------
  logic   seq_end;
  error_e seq_error;
  instr_idx_t seq_error_instr, bus_error_instr, engine_instr[NumEngines];
  mem_addr_t seq_error_addr;
  engine_e   bus_error_engine;

  always_comb begin
    bus_error_engine = EngSt;
    bus_error_instr  = engine_instr[EngSt];
    if (rd_error) begin
      unique case (rd_error_id)
        IdLoad: begin
          bus_error_engine = EngLd;
          bus_error_instr  = engine_instr[EngLd];
        end
        IdUcode: begin
          bus_error_engine = EngSeq;
          bus_error_instr  = (rd_error_addr - ucode_base_i) >> 4;
        end
        default: begin
          bus_error_engine = EngStream;
          bus_error_instr  = '0;
        end
      endcase
    end
  end

  npu_run_ctrl u_run_ctrl (
    .clk_i,
    .rst_ni,
    .start_i,
    .soft_reset_i,
    .end_i             (seq_end),
    .end_error_i       (seq_error),
    .end_instr_i       (seq_error_instr),
    .end_addr_i        (seq_error_addr),
    .bus_error_i       (rd_error || wr_error),
    .bus_error_code_i  (rd_error ? ErrReadError : ErrWriteError),
    .bus_error_engine_i(bus_error_engine),
    .bus_error_instr_i (bus_error_instr),
    .bus_error_addr_i  (rd_error ? rd_error_addr : wr_error_addr),
    .start_o           (start),
    .drain_o           (drain),
    .bus_idle_i        (bus_idle),
    .core_rst_no       (core_rst_n),
    .busy_o,
    .done_o,
    .finish_o,
    .error_o,
    .error_engine_o,
    .error_instr_o,
    .error_addr_o
  );
  assign started_o = start;

  // ---------------------------------------------------------------------------------------------
  // Sequencer and streamer
  // ---------------------------------------------------------------------------------------------
  logic [NumEngines-1:0] cmd_valid, cmd_ready, engine_done, unit_busy, unit_stall, scoreboard_busy;
  dma_cmd_t load_cmd, store_cmd;
  gemm_cmd_t gemm_cmd;
  smx_cmd_t  smx_cmd;
  nrm_cmd_t  nrm_cmd;
  vec_cmd_t  vec_cmd;
  logic ticket_valid, ticket_ready, ticket_rewind;
  engine_e ticket_engine;
  logic [31:0] ticket_offset;

  npu_seq #(
    .ArrayDim (ArrayDim),
    .AccRows  (AccRows),
    .NormMax  (NormMax),
    .SramWords(SramWords)
  ) u_seq (
    .clk_i,
    .rst_ni         (core_rst_n),
    .start_i        (start),
    .ucode_base_i,
    .ucode_length_i,
    .stream_length_i,
    .base_i,
    .pos_i,
    .ar_valid_o     (ar_valid[RdUcode]),
    .ar_ready_i     (ar_ready[RdUcode]),
    .ar_addr_o      (ar_addr[RdUcode]),
    .ar_len_o       (ar_len[RdUcode]),
    .r_valid_i      (r_valid[RdUcode]),
    .r_data_i       (r_data),
    .ticket_valid_o (ticket_valid),
    .ticket_ready_i (ticket_ready),
    .ticket_rewind_o(ticket_rewind),
    .ticket_engine_o(ticket_engine),
    .ticket_offset_o(ticket_offset),
    .cmd_valid_o    (cmd_valid),
    .cmd_ready_i    (cmd_ready),
    .load_cmd_o     (load_cmd),
    .store_cmd_o    (store_cmd),
    .gemm_cmd_o     (gemm_cmd),
    .smx_cmd_o      (smx_cmd),
    .nrm_cmd_o      (nrm_cmd),
    .vec_cmd_o      (vec_cmd),
    .done_i         (engine_done),
    .end_o          (seq_end),
    .error_o        (seq_error),
    .error_instr_o  (seq_error_instr),
    .error_addr_o   (seq_error_addr),
    .fire_o         (instr_o),
    .busy_o         (scoreboard_busy)
  );

  assign engine_busy_o  = scoreboard_busy;
  assign engine_stall_o = unit_stall & unit_busy;

  logic [NumEngines-1:0] beat_valid, beat_ready, beat_last;
  beat_t beat_data;

  npu_streamer #(
    .FifoWords(FifoKiB * 1024 / WordBytes)
  ) u_streamer (
    .clk_i,
    .rst_ni         (core_rst_n),
    .start_i        (start),
    .base_i         (stream_base_i),
    .length_i       (stream_length_i),
    .ticket_valid_i (ticket_valid),
    .ticket_ready_o (ticket_ready),
    .ticket_rewind_i(ticket_rewind),
    .ticket_engine_i(ticket_engine),
    .ticket_offset_i(ticket_offset),
    .beat_valid_o   (beat_valid),
    .beat_data_o    (beat_data),
    .beat_ready_i   (beat_ready),
    .beat_last_i    (beat_last),
    .ar_valid_o     (ar_valid[RdStream]),
    .ar_ready_i     (ar_ready[RdStream]),
    .ar_addr_o      (ar_addr[RdStream]),
    .ar_len_o       (ar_len[RdStream]),
    .r_valid_i      (r_valid[RdStream]),
    .r_data_i       (r_data)
  );

  npu_engines #(
    .ArrayDim (ArrayDim),
    .SramWords(SramWords),
    .AccRows  (AccRows),
    .NormMax  (NormMax)
  ) u_engines (
    .clk_i,
    .rst_ni      (core_rst_n),
    .cmd_valid_i (cmd_valid),
    .cmd_ready_o (cmd_ready),
    .load_cmd_i  (load_cmd),
    .store_cmd_i (store_cmd),
    .gemm_cmd_i  (gemm_cmd),
    .smx_cmd_i   (smx_cmd),
    .nrm_cmd_i   (nrm_cmd),
    .vec_cmd_i   (vec_cmd),
    .done_o      (engine_done),
    .busy_o      (unit_busy),
    .stall_o     (unit_stall),
    .instr_o     (engine_instr),
    .macs_o,
    .beat_valid_i(beat_valid),
    .beat_data_i (beat_data),
    .beat_ready_o(beat_ready),
    .beat_last_o (beat_last),
    .ar_valid_o  (ar_valid[RdLoad]),
    .ar_ready_i  (ar_ready[RdLoad]),
    .ar_addr_o   (ar_addr[RdLoad]),
    .ar_len_o    (ar_len[RdLoad]),
    .r_valid_i   (r_valid[RdLoad]),
    .r_data_i    (r_data),
    .aw_valid_o  (aw_valid[0]),
    .aw_ready_i  (aw_ready[0]),
    .aw_addr_o   (aw_addr[0]),
    .aw_len_o    (aw_len[0]),
    .w_valid_o   (w_valid[0]),
    .w_ready_i   (w_ready[0]),
    .w_data_o    (w_data[0]),
    .w_strb_o    (w_strb[0]),
    .b_valid_i   (b_valid[0])
  );

endmodule
