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
  import npu_seq_pkg::*;
#(
  // Rows and columns of the systolic array: 4, 8, 16 or 32
  parameter int unsigned ArrayDim = 16,
  // Rows of an accumulator bank, a power of two of at least 4
  parameter int unsigned AccRows = 128,
  // Longest norm row in columns, a multiple of 16 from 32 to 8192
  parameter int unsigned NormMax = 8192,
  // Formats of weights in the stream other than int8
  parameter bit NarrowFormats = 1'b1,
  parameter int unsigned SramWords = 16384  // words of the SRAM: a power of two from 256 to 65536
) (
  input logic clk_i,  // clock
  input logic rst_ni, // reset, active low

  input logic         start_i,        // pulse: a program starts; once after every reset
  input logic         stop_i,         // nothing is dispatched in this cycle
  input start_state_t start_state_i,  // the program, with start_i
  input start_value_t start_value_i,  // its first registers, behind start_i

  // Of the fetch, 16 words at most; may be withdrawn or changed before ready
  output mem_req_t rd_req_o,
  input mem_rd_rsp_t rd_rsp_i,  // ready may depend on rd_req_o.valid; words in order, never refused

  output machine_t regs_o,  // machine registers as they are now, a level

  input  argmax_t argmax_i,       // column of the best value, the token of an ARGMAX
  output logic    argmax_clear_o, // pulse: an ARGMAX is dispatched; not while GEMM is busy

  output logic    ticket_valid_o,  // pulse, only with ticket_ready_i, in the cycle of fire_o
  input  logic    ticket_ready_i,  // room for a ticket; must not depend on ticket_valid_o
  output ticket_t ticket_o,        // share, drop, seek or wrap, with ticket_valid_o

  output logic        [NumEngines-1:0] op_valid_o,    // by engine; stays until ready, data stable
  input  logic        [NumEngines-1:0] op_ready_i,    // taken; may depend on op_valid_o
  output operations_t                  operations_o,  // those of op_valid_o hold
  // Pulse: the oldest instruction of the engine is finished
  input  logic        [NumEngines-1:0] done_i,

  output progress_t progress_o,  // how far it has come, and its end

  output logic                  fire_o,  // pulse: an instruction is dispatched
  output logic [NumEngines-1:0] busy_o   // engines with unfinished instructions, a level
);

  localparam int unsigned QueueDepth = 8;

  logic word_ready, checked_valid, checked_ready, entry_valid, entry_ready;
  redirect_t redirect;
  logic [31:0] length;
  fetched_t fetched;
  entry_t checked, coming, entry;
  extents_t extents;
  kind_t kind;
  plain_t plain;
  logic settled, plain_ready;
  logic [2:0] base_number;
  mem_addr_t base;
  logic [32:0] len;

  npu_fetch u_fetch (
    .clk_i,
    .rst_ni,
    .start_i,
    .image_i     (start_state_i.image),
    .length_o    (length),
    .redirect_i  (redirect),
    .loops_left_i(regs_o.loop_left),
    .loop_i      (fire_o && entry.followed),
    .fetched_o   (fetched),
    .ready_i     (word_ready),
    .rd_req_o,
    .rd_rsp_i
  );

  npu_check #(
    .ArrayDim(ArrayDim),
    .AccRows(AccRows),
    .NormMax(NormMax),
    .SramWords(SramWords),
    .NarrowFormats(NarrowFormats)
  ) u_check (
    .clk_i,
    .rst_ni,
    .flush_i      (redirect.valid),
    .fetched_i    (fetched),
    .word_ready_o (word_ready),
    .length_i     (length),
    .entry_valid_o(checked_valid),
    .entry_ready_i(checked_ready),
    .entry_o      (checked)
  );

  npu_ahead u_ahead (
    .clk_i,
    .rst_ni,
    .flush_i      (redirect.valid),
    .entry_valid_i(checked_valid),
    .entry_ready_o(checked_ready),
    .entry_i      (checked),
    .len_i        (len),
    .settled_i    (settled),
    .outcnt_i     (regs_o.outcnt),
    .base_number_o(base_number),
    .base_i       (base),
    .entry_valid_o(entry_valid),
    .entry_ready_i(entry_ready),
    .entry_o      (entry),
    .extents_o    (extents),
    .kind_o       (kind),
    .plain_ready_o(plain_ready),
    .plain_o      (plain),
    .coming_o     (coming)
  );

  logic [NumEngines-1:0] push, push_ready;
  operations_t dispatched;

  npu_dispatch #(
    .ArrayDim (ArrayDim),
    .SramWords(SramWords)
  ) u_dispatch (
    .clk_i,
    .rst_ni,
    .start_i,
    .start_state_i,
    .start_value_i,
    .stop_i,
    .entry_valid_i(entry_valid),
    .entry_ready_o(entry_ready),
    .entry_i      (entry),
    .extents_i    (extents),
    .kind_i       (kind),
    .plain_ready_i(plain_ready),
    .plain_i      (plain),
    .coming_i     (coming),
    .redirect_o   (redirect),
    .regs_o,
    .base_number_i(base_number),
    .base_o       (base),
    .len_o        (len),
    .settled_o    (settled),
    .argmax_i,
    .argmax_clear_o,
    .ticket_valid_o,
    .ticket_ready_i,
    .ticket_o,
    .op_valid_o   (push),
    .op_ready_i   (push_ready),
    .operations_o (dispatched),
    .done_i,
    .progress_o,
    .fire_o,
    .busy_o
  );

  // A queue for each engine, as wide as its operation
  for (genvar e = 0; e < int'(NumEngines); e++) begin : gen_queue
    npu_fifo #(
      .DataT(logic [OperationBits[e]-1:0]),
      .Depth(QueueDepth)
    ) u_queue (
      .clk_i,
      .rst_ni,
      .valid_i(push[e]),
      .ready_o(push_ready[e]),
      .data_i (dispatched[operation_low(e)+:OperationBits[e]]),
      .valid_o(op_valid_o[e]),
      .ready_i(op_ready_i[e]),
      .data_o (operations_o[operation_low(e)+:OperationBits[e]])
    );
  end

endmodule
