// SPDX-License-Identifier: Apache-2.0
//
// Microcode sequencer: fetches, checks and dispatches the program, and keeps a queue of decoded
// commands in front of every engine.

module npu_seq
  import npu_pkg::*;
  import npu_isa_pkg::*;
  import npu_seq_pkg::*;
#(
  parameter int unsigned ArrayDim  = 16,
  parameter int unsigned AccRows   = 128,
  parameter int unsigned NormMax   = 8192,
  parameter int unsigned SramWords = 16384
) (
  input logic clk_i,
  input logic rst_ni,

  input logic             start_i,
  input logic             stop_i,
  input mem_addr_t        ucode_base_i,
  input logic      [31:0] ucode_length_i,
  input logic      [31:0] stream_length_i,
  input machine_t         start_regs_i,

  output mem_req_t rd_req_o,
  input  logic     rd_ready_i,
  input  logic     r_valid_i,
  input  word_t    r_data_i,

  output machine_t regs_o,  // as they are now

  input  argmax_t argmax_i,
  output logic    argmax_clear_o,

  output logic    ticket_valid_o,
  input  logic    ticket_ready_i,
  output ticket_t ticket_o,

  output logic       [NumEngines-1:0] cmd_valid_o,
  input  logic       [NumEngines-1:0] cmd_ready_i,
  output load_cmd_t                   load_cmd_o,
  output store_cmd_t                  store_cmd_o,
  output gemm_cmd_t                   gemm_cmd_o,
  output smx_cmd_t                    smx_cmd_o,
  output nrm_cmd_t                    nrm_cmd_o,
  output vec_cmd_t                    vec_cmd_o,
  input  logic       [NumEngines-1:0] done_i,

  output logic       end_o,
  output fault_t     fault_o,
  output instr_idx_t last_instr_o,

  output logic                  fire_o,
  output logic [NumEngines-1:0] busy_o
);

  localparam int unsigned QueueDepth = 4;

  logic word_valid, word_ready, followed, past_end, entry_valid, entry_ready;
  logic redirect;
  instr_idx_t redirect_index;
  logic [31:0] length;
  word_t word;
  instr_idx_t index;
  entry_t entry;

  npu_fetch u_fetch (
    .clk_i,
    .rst_ni,
    .start_i,
    .base_i          (ucode_base_i),
    .length_i        (ucode_length_i),
    .length_o        (length),
    .redirect_i      (redirect),
    .redirect_index_i(redirect_index),
    .loops_left_i    (regs_o.loopleft),
    .loop_i          (fire_o && entry.followed),
    .valid_o         (word_valid),
    .ready_i         (word_ready),
    .word_o          (word),
    .index_o         (index),
    .followed_o      (followed),
    .past_end_o      (past_end),
    .rd_req_o,
    .rd_ready_i,
    .r_valid_i,
    .r_data_i
  );

  npu_check #(
    .ArrayDim (ArrayDim),
    .AccRows  (AccRows),
    .NormMax  (NormMax),
    .SramWords(SramWords)
  ) u_check (
    .clk_i,
    .rst_ni,
    .flush_i      (redirect),
    .word_valid_i (word_valid),
    .word_ready_o (word_ready),
    .word_i       (word),
    .index_i      (index),
    .followed_i   (followed),
    .past_end_i   (past_end),
    .length_i     (length),
    .entry_valid_o(entry_valid),
    .entry_ready_i(entry_ready),
    .entry_o      (entry)
  );

  logic [NumEngines-1:0] push, push_ready;
  load_cmd_t  load;
  store_cmd_t store;
  gemm_cmd_t  gemm;
  smx_cmd_t   smx;
  nrm_cmd_t   nrm;
  vec_cmd_t   vec;

  npu_dispatch #(
    .Edge     (tile_edge(ArrayDim)),
    .SramWords(SramWords)
  ) u_dispatch (
    .clk_i,
    .rst_ni,
    .start_i,
    .start_regs_i,
    .stream_length_i,
    .stop_i,
    .entry_valid_i   (entry_valid),
    .entry_ready_o   (entry_ready),
    .entry_i         (entry),
    .redirect_o      (redirect),
    .redirect_index_o(redirect_index),
    .regs_o,
    .argmax_i,
    .argmax_clear_o,
    .ticket_valid_o,
    .ticket_ready_i,
    .ticket_o,
    .cmd_valid_o     (push),
    .cmd_ready_i     (push_ready),
    .load_o          (load),
    .store_o         (store),
    .gemm_o          (gemm),
    .smx_o           (smx),
    .nrm_o           (nrm),
    .vec_o           (vec),
    .done_i,
    .end_o,
    .fault_o,
    .last_instr_o,
    .fire_o,
    .busy_o
  );

  npu_fifo #(
    .DataT(load_cmd_t),
    .Depth(QueueDepth)
  ) u_load_queue (
    .clk_i,
    .rst_ni,
    .valid_i(push[EngLd]),
    .ready_o(push_ready[EngLd]),
    .data_i (load),
    .valid_o(cmd_valid_o[EngLd]),
    .ready_i(cmd_ready_i[EngLd]),
    .data_o (load_cmd_o),
    .count_o()
  );

  npu_fifo #(
    .DataT(store_cmd_t),
    .Depth(QueueDepth)
  ) u_store_queue (
    .clk_i,
    .rst_ni,
    .valid_i(push[EngSt]),
    .ready_o(push_ready[EngSt]),
    .data_i (store),
    .valid_o(cmd_valid_o[EngSt]),
    .ready_i(cmd_ready_i[EngSt]),
    .data_o (store_cmd_o),
    .count_o()
  );

  npu_fifo #(
    .DataT(gemm_cmd_t),
    .Depth(QueueDepth)
  ) u_gemm_queue (
    .clk_i,
    .rst_ni,
    .valid_i(push[EngGemm]),
    .ready_o(push_ready[EngGemm]),
    .data_i (gemm),
    .valid_o(cmd_valid_o[EngGemm]),
    .ready_i(cmd_ready_i[EngGemm]),
    .data_o (gemm_cmd_o),
    .count_o()
  );

  npu_fifo #(
    .DataT(smx_cmd_t),
    .Depth(QueueDepth)
  ) u_smx_queue (
    .clk_i,
    .rst_ni,
    .valid_i(push[EngSmx]),
    .ready_o(push_ready[EngSmx]),
    .data_i (smx),
    .valid_o(cmd_valid_o[EngSmx]),
    .ready_i(cmd_ready_i[EngSmx]),
    .data_o (smx_cmd_o),
    .count_o()
  );

  npu_fifo #(
    .DataT(nrm_cmd_t),
    .Depth(QueueDepth)
  ) u_nrm_queue (
    .clk_i,
    .rst_ni,
    .valid_i(push[EngNrm]),
    .ready_o(push_ready[EngNrm]),
    .data_i (nrm),
    .valid_o(cmd_valid_o[EngNrm]),
    .ready_i(cmd_ready_i[EngNrm]),
    .data_o (nrm_cmd_o),
    .count_o()
  );

  npu_fifo #(
    .DataT(vec_cmd_t),
    .Depth(QueueDepth)
  ) u_vec_queue (
    .clk_i,
    .rst_ni,
    .valid_i(push[EngVec]),
    .ready_o(push_ready[EngVec]),
    .data_i (vec),
    .valid_o(cmd_valid_o[EngVec]),
    .ready_i(cmd_ready_i[EngVec]),
    .data_o (vec_cmd_o),
    .count_o()
  );

endmodule
