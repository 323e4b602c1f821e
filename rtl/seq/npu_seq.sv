// SPDX-License-Identifier: Apache-2.0
//
// Microcode sequencer: fetches, checks and dispatches the program, and keeps a queue of operations
// in front of every engine.

module npu_seq
  import npu_pkg::*;
  import npu_mem_pkg::*;
  import npu_operation_pkg::*;
  import npu_stream_pkg::*;
  import npu_start_pkg::*;
  import npu_isa_pkg::*;
  import npu_seq_pkg::*;
#(
  // Rows and columns of the systolic array: 4, 8, 16 or 32
  parameter int unsigned ArrayDim  = 16,
  // Rows of an accumulator bank, a power of two of at least 4
  parameter int unsigned AccRows   = 128,
  // Longest norm row in columns, a multiple of 16 from 32 to 8192
  parameter int unsigned NormMax   = 8192,
  parameter int unsigned SramWords = 16384  // words of the SRAM: a power of two from 256 to 65536
) (
  input logic clk_i,  // clock
  input logic rst_ni, // reset, active low

  input logic         start_i,       // pulse: a program starts; once after every reset
  input logic         stop_i,        // nothing is dispatched in this cycle
  input start_state_t start_state_i, // the program and its first registers, with start_i

  // Of the fetch, 16 words at most; may be withdrawn or changed before ready
  output mem_req_t rd_req_o,
  input mem_rd_rsp_t rd_rsp_i,  // ready may depend on rd_req_o.valid; words in order, never refused

  output machine_t regs_o,  // machine registers as they are now, a level

  input  argmax_t argmax_i,       // column of the best value, the token of an ARGMAX
  output logic    argmax_clear_o, // pulse: an ARGMAX is dispatched; not while GEMM is busy

  output logic    ticket_valid_o,  // pulse, only with ticket_ready_i, in the cycle of fire_o
  input  logic    ticket_ready_i,  // room for a ticket; must not depend on ticket_valid_o
  output ticket_t ticket_o,        // share, drop, seek or wrap, with ticket_valid_o

  output logic [NumEngines-1:0] op_valid_o,  // by engine; stays until ready, data stable
  input logic [NumEngines-1:0] op_ready_i,  // taken; may depend on op_valid_o
  output load_operation_t load_op_o,  // with op_valid_o[EngLd]
  output store_operation_t store_op_o,  // with op_valid_o[EngSt]
  output gemm_operation_t gemm_op_o,  // with op_valid_o[EngGemm]
  output smx_operation_t smx_op_o,  // with op_valid_o[EngSmx]
  output nrm_operation_t nrm_op_o,  // with op_valid_o[EngNrm]
  output vec_operation_t vec_op_o,  // with op_valid_o[EngVec]
  // Pulse: the oldest instruction of the engine is finished
  input logic [NumEngines-1:0] done_i,

  output logic       end_o,        // END or a refused instruction: a level until reset
  output error_t     error_o,      // the refusal, with end_o; not valid: END
  output instr_idx_t last_instr_o, // index of the instruction dispatched last

  output logic                  fire_o,  // pulse: an instruction is dispatched
  output logic [NumEngines-1:0] busy_o   // engines with unfinished instructions, a level
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
    .base_i          (start_state_i.image.ucode_base),
    .length_i        (start_state_i.image.ucode_len),
    .length_o        (length),
    .redirect_i      (redirect),
    .redirect_index_i(redirect_index),
    .loops_left_i    (regs_o.loop_left),
    .loop_i          (fire_o && entry.followed),
    .valid_o         (word_valid),
    .ready_i         (word_ready),
    .word_o          (word),
    .index_o         (index),
    .followed_o      (followed),
    .past_end_o      (past_end),
    .rd_req_o,
    .rd_rsp_i
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
  load_operation_t  load;
  store_operation_t store;
  gemm_operation_t  gemm;
  smx_operation_t   smx;
  nrm_operation_t   nrm;
  vec_operation_t   vec;

  npu_dispatch #(
    .Edge     (tile_edge(ArrayDim)),
    .SramWords(SramWords)
  ) u_dispatch (
    .clk_i,
    .rst_ni,
    .start_i,
    .start_regs_i    (start_state_i.machine),
    .stream_length_i (start_state_i.image.stream_len),
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
    .op_valid_o      (push),
    .op_ready_i      (push_ready),
    .load_o          (load),
    .store_o         (store),
    .gemm_o          (gemm),
    .smx_o           (smx),
    .nrm_o           (nrm),
    .vec_o           (vec),
    .done_i,
    .end_o,
    .error_o,
    .last_instr_o,
    .fire_o,
    .busy_o
  );

  npu_fifo #(
    .DataT(load_operation_t),
    .Depth(QueueDepth)
  ) u_load_queue (
    .clk_i,
    .rst_ni,
    .valid_i(push[EngLd]),
    .ready_o(push_ready[EngLd]),
    .data_i (load),
    .valid_o(op_valid_o[EngLd]),
    .ready_i(op_ready_i[EngLd]),
    .data_o (load_op_o)
  );

  npu_fifo #(
    .DataT(store_operation_t),
    .Depth(QueueDepth)
  ) u_store_queue (
    .clk_i,
    .rst_ni,
    .valid_i(push[EngSt]),
    .ready_o(push_ready[EngSt]),
    .data_i (store),
    .valid_o(op_valid_o[EngSt]),
    .ready_i(op_ready_i[EngSt]),
    .data_o (store_op_o)
  );

  npu_fifo #(
    .DataT(gemm_operation_t),
    .Depth(QueueDepth)
  ) u_gemm_queue (
    .clk_i,
    .rst_ni,
    .valid_i(push[EngGemm]),
    .ready_o(push_ready[EngGemm]),
    .data_i (gemm),
    .valid_o(op_valid_o[EngGemm]),
    .ready_i(op_ready_i[EngGemm]),
    .data_o (gemm_op_o)
  );

  npu_fifo #(
    .DataT(smx_operation_t),
    .Depth(QueueDepth)
  ) u_smx_queue (
    .clk_i,
    .rst_ni,
    .valid_i(push[EngSmx]),
    .ready_o(push_ready[EngSmx]),
    .data_i (smx),
    .valid_o(op_valid_o[EngSmx]),
    .ready_i(op_ready_i[EngSmx]),
    .data_o (smx_op_o)
  );

  npu_fifo #(
    .DataT(nrm_operation_t),
    .Depth(QueueDepth)
  ) u_nrm_queue (
    .clk_i,
    .rst_ni,
    .valid_i(push[EngNrm]),
    .ready_o(push_ready[EngNrm]),
    .data_i (nrm),
    .valid_o(op_valid_o[EngNrm]),
    .ready_i(op_ready_i[EngNrm]),
    .data_o (nrm_op_o)
  );

  npu_fifo #(
    .DataT(vec_operation_t),
    .Depth(QueueDepth)
  ) u_vec_queue (
    .clk_i,
    .rst_ni,
    .valid_i(push[EngVec]),
    .ready_o(push_ready[EngVec]),
    .data_i (vec),
    .valid_o(op_valid_o[EngVec]),
    .ready_i(op_ready_i[EngVec]),
    .data_o (vec_op_o)
  );

endmodule
