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
  input  logic              abort_i,
  input  logic              soft_reset_i,
  input  mem_addr_t         ucode_base_i,
  input  logic       [31:0] ucode_length_i,
  input  mem_addr_t         stream_base_i,
  input  logic       [31:0] stream_length_i,
  input  logic       [ 4:0] stream_limit_i,
  input  machine_t          start_regs_i,
  input  region_t           regions_i      [NumRegions],
  input  logic       [23:0] timeout_i,
  output logic              started_o,
  output logic              busy_o,
  output logic              done_o,
  output logic              finish_o,
  output logic              failed_o,
  output fault_t            error_o,
  output generated_t        generated_o,

  // The parameter stream in use, for its protection; of length 0 while there is none
  output mem_addr_t        stream_base_o,
  output logic      [31:0] stream_length_o,

  // Programs of the command port
  input  logic                 launch_valid_i,
  output logic                 launch_ready_o,
  input  npu_cmd_pkg::launch_t launch_i,
  output logic                 launch_end_o,

  // Events to count
  output logic [          11:0] macs_o,
  output logic                  instr_o,
  output logic                  stream_beat_o,
  output logic [NumEngines-1:0] engine_busy_o,
  output logic [NumEngines-1:0] engine_stall_o,

  // Memory port
  output npu_axi_pkg::axi_req_t axi_req_o,
  input  npu_axi_pkg::axi_rsp_t axi_rsp_i
);

  localparam int unsigned SramWords = SramKiB * 1024 / WordBytes;

  // Read clients in the order of their priority
  localparam int unsigned NumRd = 3;
  localparam int unsigned RdUcode = 0;
  localparam int unsigned RdLoad = 1;
  localparam int unsigned RdStream = 2;

  logic core_rst_n, start, drain, bus_idle, bus_stuck;

  // ---------------------------------------------------------------------------------------------
  // Memory port
  // ---------------------------------------------------------------------------------------------
  mem_req_t rd_req[NumRd], wr_req[1];
  logic rd_ready[NumRd], r_valid[NumRd], wr_ready[1], w_ready[1], b_valid[1];
  word_t            r_data;
  mem_wdata_t       w           [1];
  fault_t           port_fault;
  logic       [8:0] mem_latency;
  logic             mem_word;

  npu_mem_port #(
    .NumRd    (NumRd),
    .NumWr    (1),
    .RdEngines('{EngStream, EngLd, EngSeq}),
    .WrEngines('{EngSt})
  ) u_mem_port (
    .clk_i,
    .rst_ni,
    .rd_req_i       (rd_req),
    .rd_ready_o     (rd_ready),
    .r_valid_o      (r_valid),
    .r_data_o       (r_data),
    .wr_req_i       (wr_req),
    .wr_ready_o     (wr_ready),
    .w_i            (w),
    .w_ready_o      (w_ready),
    .b_valid_o      (b_valid),
    .regions_i,
    .stream_base_i  (stream_base_o),
    .stream_length_i(stream_length_o),
    .timeout_i,
    .drain_i        (drain),
    .idle_o         (bus_idle),
    .stuck_o        (bus_stuck),
    .fault_o        (port_fault),
    .latency_o      (mem_latency),
    .word_o         (mem_word),
    .axi_req_o,
    .axi_rsp_i
  );

  assign stream_beat_o = axi_rsp_i.rvalid && axi_rsp_i.rid == {1'b0, EngStream};

  // ---------------------------------------------------------------------------------------------
  // Program control
  // ---------------------------------------------------------------------------------------------
  logic seq_end;
  fault_t seq_fault, engine_fault;
  instr_idx_t        last_instr;
  mem_addr_t         ucode_base;
  logic       [31:0] ucode_length;
  machine_t          start_regs;

  npu_program u_program (
    .clk_i,
    .rst_ni,
    .start_i,
    .abort_i,
    .soft_reset_i,
    .ucode_base_i,
    .ucode_length_i,
    .start_regs_i,
    .launch_valid_i,
    .launch_ready_o,
    .launch_i,
    .launch_end_o,
    .start_o       (start),
    .ucode_base_o  (ucode_base),
    .ucode_length_o(ucode_length),
    .start_regs_o  (start_regs),
    .end_i         (seq_end),
    .end_fault_i   (seq_fault),
    .port_fault_i  (port_fault),
    .engine_fault_i(engine_fault),
    .last_instr_i  (last_instr),
    .drain_o       (drain),
    .bus_idle_i    (bus_idle),
    .bus_stuck_i   (bus_stuck),
    .core_rst_no   (core_rst_n),
    .busy_o,
    .done_o,
    .finish_o,
    .failed_o,
    .error_o
  );
  assign started_o = start;

  // ---------------------------------------------------------------------------------------------
  // Sequencer and streamer
  // ---------------------------------------------------------------------------------------------
  logic [NumEngines-1:0] cmd_valid, cmd_ready, engine_done, unit_busy, unit_stall, scoreboard_busy;
  load_cmd_t load_cmd;
  store_cmd_t store_cmd;
  gemm_cmd_t gemm_cmd;
  smx_cmd_t smx_cmd;
  nrm_cmd_t nrm_cmd;
  vec_cmd_t vec_cmd;
  argmax_t argmax;
  logic argmax_clear;
  machine_t regs;
  logic ticket_valid, ticket_ready;
  ticket_t ticket;

  npu_seq #(
    .ArrayDim (ArrayDim),
    .AccRows  (AccRows),
    .NormMax  (NormMax),
    .SramWords(SramWords)
  ) u_seq (
    .clk_i,
    .rst_ni        (core_rst_n),
    .start_i       (start),
    .stop_i        (drain || abort_i),
    .ucode_base_i  (ucode_base),
    .ucode_length_i(ucode_length),
    .stream_length_i,
    .start_regs_i  (start_regs),
    .rd_req_o      (rd_req[RdUcode]),
    .rd_ready_i    (rd_ready[RdUcode]),
    .r_valid_i     (r_valid[RdUcode]),
    .r_data_i      (r_data),
    .regs_o        (regs),
    .argmax_i      (argmax),
    .argmax_clear_o(argmax_clear),
    .ticket_valid_o(ticket_valid),
    .ticket_ready_i(ticket_ready),
    .ticket_o      (ticket),
    .cmd_valid_o   (cmd_valid),
    .cmd_ready_i   (cmd_ready),
    .load_cmd_o    (load_cmd),
    .store_cmd_o   (store_cmd),
    .gemm_cmd_o    (gemm_cmd),
    .smx_cmd_o     (smx_cmd),
    .nrm_cmd_o     (nrm_cmd),
    .vec_cmd_o     (vec_cmd),
    .done_i        (engine_done),
    .end_o         (seq_end),
    .fault_o       (seq_fault),
    .last_instr_o  (last_instr),
    .fire_o        (instr_o),
    .busy_o        (scoreboard_busy)
  );

  logic token_done;

  npu_generated u_generated (
    .clk_i,
    .rst_ni,
    .start_i       (start),
    .run_i         (busy_o && !drain),
    .regs_i        (regs),
    .token_sent_i  (argmax_clear),
    .token_stored_i(token_done),
    .generated_o
  );

  assign engine_busy_o  = scoreboard_busy;
  assign engine_stall_o = unit_stall & unit_busy;

  logic [NumEngines-1:0] beat_valid, beat_ready, beat_last;
  beat_t beat_data;

  logic [4:0] stream_limit;
  logic stream_wants, stream_held;

  npu_stream_limit u_stream_limit (
    .clk_i,
    .rst_ni   (core_rst_n),
    .setting_i(stream_limit_i),
    .latency_i(mem_latency),
    .wants_i  (stream_wants),
    .held_i   (stream_held),
    .mine_i   (r_valid[RdStream]),
    .word_i   (mem_word),
    .load_i   (scoreboard_busy[EngLd]),
    .limit_o  (stream_limit)
  );

  npu_streamer #(
    .FifoWords(FifoKiB * 1024 / WordBytes)
  ) u_streamer (
    .clk_i,
    .rst_ni        (core_rst_n),
    .start_i       (start),
    .base_i        (stream_base_i),
    .length_i      (stream_length_i),
    .limit_i       (stream_limit),
    .wants_o       (stream_wants),
    .held_o        (stream_held),
    .base_o        (stream_base_o),
    .length_o      (stream_length_o),
    .ticket_valid_i(ticket_valid),
    .ticket_ready_o(ticket_ready),
    .ticket_i      (ticket),
    .loop_i        (regs.loopleft != '0),
    .beat_valid_o  (beat_valid),
    .beat_data_o   (beat_data),
    .beat_ready_i  (beat_ready),
    .beat_last_i   (beat_last),
    .rd_req_o      (rd_req[RdStream]),
    .rd_ready_i    (rd_ready[RdStream]),
    .r_valid_i     (r_valid[RdStream]),
    .r_data_i      (r_data)
  );

  npu_engines #(
    .ArrayDim (ArrayDim),
    .SramWords(SramWords),
    .AccRows  (AccRows),
    .NormMax  (NormMax)
  ) u_engines (
    .clk_i,
    .rst_ni        (core_rst_n),
    .cmd_valid_i   (cmd_valid),
    .cmd_ready_o   (cmd_ready),
    .load_cmd_i    (load_cmd),
    .store_cmd_i   (store_cmd),
    .gemm_cmd_i    (gemm_cmd),
    .smx_cmd_i     (smx_cmd),
    .nrm_cmd_i     (nrm_cmd),
    .vec_cmd_i     (vec_cmd),
    .done_o        (engine_done),
    .busy_o        (unit_busy),
    .stall_o       (unit_stall),
    .instr_o       (),
    .macs_o,
    .fault_o       (engine_fault),
    .token_done_o  (token_done),
    .argmax_o      (argmax),
    .argmax_clear_i(argmax_clear),
    .beat_valid_i  (beat_valid),
    .beat_data_i   (beat_data),
    .beat_ready_o  (beat_ready),
    .beat_last_o   (beat_last),
    .mem_rd_req_o  (rd_req[RdLoad]),
    .mem_rd_ready_i(rd_ready[RdLoad]),
    .mem_r_valid_i (r_valid[RdLoad]),
    .mem_r_data_i  (r_data),
    .mem_wr_req_o  (wr_req[0]),
    .mem_wr_ready_i(wr_ready[0]),
    .mem_w_o       (w[0]),
    .mem_w_ready_i (w_ready[0]),
    .mem_b_valid_i (b_valid[0])
  );

endmodule
