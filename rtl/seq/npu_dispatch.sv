// SPDX-License-Identifier: Apache-2.0
//
// Dispatches checked instructions in program order into the queues of the engines and executes those
// of the sequencer itself. Instructions that take a share of the stream draw a ticket. Everything
// that depends on registers is checked here; a refused instruction waits for the older ones to
// finish.

module npu_dispatch
  import npu_pkg::*;
  import npu_operation_pkg::*;
  import npu_stream_pkg::*;
  import npu_start_pkg::*;
  import npu_isa_pkg::*;
  import npu_seq_pkg::*;
#(
  parameter int unsigned Edge      = 16,    // tile edge in lanes: 16 or 32
  parameter int unsigned SramWords = 16384  // words of the SRAM: a power of two from 256 to 65536
) (
  input logic clk_i,  // clock
  input logic rst_ni, // reset, active low

  // Start of a program
  input logic            start_i,         // pulse; once after every reset
  input machine_t        start_regs_i,    // first values of the machine registers, with start_i
  input logic     [31:0] stream_length_i, // bytes of the parameter stream, with start_i

  input  logic   stop_i,         // the program ends: nothing is dispatched in this cycle
  input  logic   entry_valid_i,  // a checked instruction; stays until ready, data stable
  output logic   entry_ready_o,  // it is dispatched; only with entry_valid_i
  input  entry_t entry_i,        // the instruction at the head, with entry_valid_i

  // The next word is another one than the entry says; what has been fetched is worthless.
  output logic       redirect_o,       // pulse, with the LOOP that is dispatched
  output instr_idx_t redirect_index_o, // index of the next word, with redirect_o

  output machine_t regs_o,  // machine registers as they are now, a level

  input  argmax_t argmax_i,       // column of the best value, the token of an ARGMAX
  output logic    argmax_clear_o, // pulse: an ARGMAX is dispatched; not while GEMM is busy

  output logic    ticket_valid_o,  // pulse, only with ticket_ready_i, in the cycle of fire_o
  input  logic    ticket_ready_i,  // room for a ticket; must not depend on ticket_valid_o
  output ticket_t ticket_o,        // share, drop, seek or wrap, with ticket_valid_o

  // Queues of the engines
  // By engine: pulse, only with its op_ready_i, with fire_o
  output logic             [NumEngines-1:0] op_valid_o,
  // Room in its queue; must not depend on op_valid_o
  input  logic             [NumEngines-1:0] op_ready_i,
  output load_operation_t                   load_o,      // operation, with op_valid_o[EngLd]
  output store_operation_t                  store_o,     // operation, with op_valid_o[EngSt]
  output gemm_operation_t                   gemm_o,      // operation, with op_valid_o[EngGemm]
  output smx_operation_t                    smx_o,       // operation, with op_valid_o[EngSmx]
  output nrm_operation_t                    nrm_o,       // operation, with op_valid_o[EngNrm]
  output vec_operation_t                    vec_o,       // operation, with op_valid_o[EngVec]
  // Pulse: the oldest instruction of the engine is finished
  input  logic             [NumEngines-1:0] done_i,

  // End of the program: a level, until reset
  output logic   end_o,   // END or a refused instruction: a level until reset
  output error_t error_o, // the refusal, with end_o; not valid: END

  output instr_idx_t last_instr_o,  // index of the instruction dispatched last

  // For the counters: a word is dispatched; engines with unfinished instructions
  output logic                  fire_o,  // pulse: an instruction is dispatched
  output logic [NumEngines-1:0] busy_o   // engines with unfinished instructions, a level
);

  // ---------------------------------------------------------------------------------------------
  // Registers, and what the instruction at the head means with them
  // ---------------------------------------------------------------------------------------------
  instr_t word;
  logic [31:0] value;
  machine_t regs;
  logic [31:0] wstart;
  logic [32:0] len;
  logic settled, set_fire, argmax_fire, loop_fire;

  assign word   = entry_i.word;
  assign value  = {word.src1, word.src0};
  assign regs_o = regs;

  npu_machine #(
    .Edge(Edge)
  ) u_machine (
    .clk_i,
    .rst_ni,
    .start_i,
    .start_regs_i,
    .set_i         (set_fire),
    .set_reg_i     (word.dst),
    .set_add_i     (word.flags[FlagAdd]),
    .set_value_i   (value),
    .argmax_i      (argmax_fire),
    .argmax_token_i(argmax_i.column),
    .loop_i        (loop_fire),
    .regs_o        (regs),
    .wstart_o      (wstart),
    .len_o         (len),
    .settled_o     (settled)
  );

  // Static errors that come before everything that depends on registers
  logic refused, ready, resolved, go;
  logic nothing, extent_full, bad_address, bad_range;
  mem_addr_t resolve_addr;
  engine_e   engine;
  assign refused  = !(entry_i.error inside {ErrNone, ErrSramRange});
  assign resolved = settled && ready;

  npu_resolve #(
    .Edge     (Edge),
    .SramWords(SramWords)
  ) u_resolve (
    .clk_i,
    .rst_ni,
    .valid_i       (entry_valid_i && settled && !refused),
    .done_i        (go),
    .entry_i,
    .regs_i        (regs),
    .wstart_i      (wstart),
    .len_i         (len),
    .argmax_i,
    .ready_o       (ready),
    .nothing_o     (nothing),
    .context_full_o(extent_full),
    .bad_address_o (bad_address),
    .bad_range_o   (bad_range),
    .error_addr_o  (resolve_addr),
    .engine_o      (engine),
    .load_o,
    .store_o,
    .gemm_o,
    .smx_o,
    .nrm_o,
    .vec_o
  );

  logic barrier_ok, all_idle;
  assign all_idle = busy_o == '0;

  npu_unfinished u_unfinished (
    .clk_i,
    .rst_ni,
    .start_i       (op_valid_o),
    .done_i,
    .barrier_mask_i(word.m[NumEngines-1:0]),
    .barrier_most_i(word.n),
    .barrier_ok_o  (barrier_ok),
    .busy_o
  );

  // ---------------------------------------------------------------------------------------------
  // The instruction at the head
  // ---------------------------------------------------------------------------------------------
  error_e error;
  mem_addr_t error_addr;
  logic [31:0] offset_q, length_q;  // where the next share begins; length of the stream
  logic argmax_seen_q;  // a GEMM since the last ARGMAX
  logic is_engine, is_argmax, is_end, takes_share, loop_taken, context_full, seek;
  logic [31:0] seek_offset;

  assign is_engine = engine != EngSeq;
  assign is_argmax = word.opcode == OpArgmax;
  assign is_end = word.opcode == OpEnd;
  assign takes_share = is_engine && entry_i.share != '0;
  assign loop_taken  = word.opcode == OpLoop && regs.loop_left != '0 &&
                       (regs.token != regs.eos || regs.eos == '1);

  // The stream goes on somewhere else.
  assign seek_offset = loop_taken ? '0 : value;
  assign seek        = (loop_taken || (word.opcode == OpSet && word.dst == SetStream)) &&
                       seek_offset != offset_q;

  always_comb begin
    context_full = extent_full;
    if (loop_taken) context_full |= {1'b0, regs.pos} + 1'b1 >= {1'b0, regs.kv_cap};
  end

  always_comb begin
    error      = entry_i.error;
    error_addr = entry_i.error_addr;
    if (refused) begin
      // Nothing goes before it.
    end else if (is_argmax && !argmax_seen_q) begin
      error      = ErrIllegalField;
      error_addr = '0;
    end else if (context_full) begin
      error      = ErrContextFull;
      error_addr = '0;
    end else if (bad_address) begin
      error      = ErrBadAddress;
      error_addr = resolve_addr;
    end else if (error == ErrSramRange) begin
      // The operands that depend on registers come last.
    end else if (bad_range) begin
      error      = ErrSramRange;
      error_addr = resolve_addr;
    end else if (takes_share && {1'b0, offset_q} + {1'b0, entry_i.share} > {1'b0, length_q}) begin
      error = ErrStreamEnd;
    end else if (is_end && offset_q != '0 && offset_q != length_q) begin
      error = ErrStreamLeft;
    end
  end

  always_comb begin
    go = entry_valid_i && resolved && error == ErrNone && !end_o && !stop_i;
    go &= !(takes_share || seek) || ticket_ready_i;
    if (is_engine && !nothing) go &= op_ready_i[engine];
    unique case (word.opcode)
      OpBarrier: go &= barrier_ok;
      OpArgmax:  go &= !busy_o[EngGemm];
      OpEnd:     go &= all_idle;
      default:   ;
    endcase
  end

  assign entry_ready_o    = go;
  assign fire_o           = go;
  assign set_fire         = go && word.opcode == OpSet;
  assign argmax_fire      = go && is_argmax;
  assign loop_fire        = go && loop_taken;
  assign argmax_clear_o   = argmax_fire;
  assign redirect_o       = go && word.opcode == OpLoop && loop_taken != entry_i.followed;
  assign redirect_index_o = loop_taken ? value : entry_i.index + 1'b1;

  always_comb begin
    ticket_valid_o  = go && (takes_share || seek);
    ticket_o.engine = engine;
    ticket_o.bytes  = seek ? seek_offset : entry_i.share;
    if (!seek) ticket_o.op = nothing ? TicketDrop : TicketShare;
    else ticket_o.op = (seek_offset == '0 && offset_q == length_q) ? TicketWrap : TicketSeek;
  end

  always_comb begin
    op_valid_o = '0;
    if (go && is_engine && !nothing) op_valid_o[engine] = 1'b1;
  end

  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) begin
      offset_q      <= '0;
      length_q      <= '0;
      argmax_seen_q <= 1'b0;
    end else if (start_i) begin
      offset_q      <= '0;
      length_q      <= stream_length_i;
      argmax_seen_q <= 1'b0;
    end else if (go) begin
      if (seek) offset_q <= seek_offset;
      else if (takes_share) offset_q <= offset_q + entry_i.share;
      if (is_argmax) argmax_seen_q <= 1'b0;
      else if (op_valid_o[EngGemm] && gemm_o.argmax) argmax_seen_q <= 1'b1;
    end
  end

  // ---------------------------------------------------------------------------------------------
  // End
  // ---------------------------------------------------------------------------------------------
  logic refuse;
  assign refuse = entry_valid_i && (refused || resolved) && error != ErrNone && all_idle && !end_o;

  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) begin
      end_o        <= 1'b0;
      error_o      <= '0;
      last_instr_o <= '0;
    end else begin
      if (refuse) begin
        end_o <= 1'b1;
        error_o <= '{
            valid: 1'b1,
            code: error,
            engine: EngSeq,
            instr: entry_i.index,
            addr: error_addr
        };
      end else if (go && is_end) begin
        end_o <= 1'b1;
      end
      if (go) last_instr_o <= entry_i.index;
    end
  end

endmodule
