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
  parameter int unsigned ArrayDim  = 16,    // rows and columns of the array: 4, 8, 16 or 32
  parameter int unsigned SramWords = 16384  // words of the SRAM: a power of two from 256 to 65536
) (
  input logic clk_i,  // clock
  input logic rst_ni, // reset, active low

  input logic         start_i,        // pulse: a program starts; once after every reset
  input start_state_t start_state_i,  // the length of its stream; with start_i
  input start_value_t start_value_i,  // its registers, behind start_i

  input  logic     stop_i,         // the program ends: nothing is dispatched in this cycle
  // The head: only while the registers are settled; stays until ready, data stable
  input  logic     entry_valid_i,
  output logic     entry_ready_o,  // it is dispatched; only with entry_valid_i
  input  entry_t   entry_i,        // a checked instruction, with entry_valid_i
  input  extents_t extents_i,      // its dimensions, with entry_valid_i
  input  kind_t    kind_i,         // how it is dispatched, with entry_valid_i
  input  logic     plain_ready_i,  // plain_i is that of the registers as they are
  input  plain_t   plain_i,        // its address, if it is a DMA transfer, an ARGMAX or an EMBED
  input  entry_t   coming_i,       // what stands at the head next; while !plain_ready_i the head

  // A cycle after a LOOP after which another word comes than the entry says
  output redirect_t redirect_o,

  output machine_t         regs_o,         // machine registers as they are now, a level
  output logic      [32:0] len_o,          // visible keys, while settled_o
  output logic             settled_o,      // low in the cycle after POS or WINDOW has changed
  input  logic      [ 2:0] base_number_i,  // a level
  output mem_addr_t        base_o,         // BASE of that number as it is now, in the same cycle

  input  argmax_t argmax_i,       // column of the best value, the token of an ARGMAX
  output logic    argmax_clear_o, // pulse: an ARGMAX is dispatched; not while GEMM is busy

  output logic    ticket_valid_o,  // pulse, only with ticket_ready_i, in the cycle of fire_o
  input  logic    ticket_ready_i,  // room for a ticket; must not depend on ticket_valid_o
  output ticket_t ticket_o,        // share, drop, seek or wrap, with ticket_valid_o

  // Queues of the engines
  // By engine: pulse, only with its op_ready_i, with fire_o
  output logic        [NumEngines-1:0] op_valid_o,
  // Room in its queue; must not depend on op_valid_o
  input  logic        [NumEngines-1:0] op_ready_i,
  output operations_t                  operations_o,  // those of op_valid_o hold
  // Pulse: the oldest instruction of the engine is finished
  input  logic        [NumEngines-1:0] done_i,

  output progress_t progress_o,  // how far it has come, and its end

  // For the counters: a word is dispatched; engines with unfinished instructions
  output logic                  fire_o,  // pulse: an instruction is dispatched
  output logic [NumEngines-1:0] busy_o   // engines with unfinished instructions, a level
);

  // ---------------------------------------------------------------------------------------------
  // Registers, and what the instruction at the head means with them
  // ---------------------------------------------------------------------------------------------
  instr_t word;
  logic [31:0] value;
  registers_t registers;
  change_t change;

  assign word      = entry_i.word;
  assign value     = {word.src1, word.src0};
  assign regs_o    = registers.regs;
  assign len_o     = registers.len;
  assign settled_o = registers.settled;

  npu_machine #(
    .Edge(tile_edge(ArrayDim))
  ) u_machine (
    .clk_i,
    .rst_ni,
    .start_i,
    .start_regs_i(start_state_i.machine),
    .start_value_i,
    .change_i    (change),
    .base_number_i,
    .base_o,
    .registers_o (registers)
  );

  logic go;
  resolved_t resolved;

  npu_resolve #(
    .ArrayDim (ArrayDim),
    .SramWords(SramWords)
  ) u_resolve (
    .clk_i,
    .rst_ni,
    .valid_i    (entry_valid_i && !kind_i.refused),
    .done_i     (go),
    .entry_i,
    .extents_i,
    .kind_i,
    .plain_ready_i,
    .plain_i,
    .coming_i,
    .registers_i(registers),
    .argmax_i,
    .resolved_o (resolved),
    .operations_o
  );

  logic barrier_ok, all_idle;
  assign all_idle = busy_o == '0;

  npu_unfinished u_unfinished (
    .clk_i,
    .rst_ni,
    .start_i       (op_valid_o),
    .done_i,
    .barrier_mask_i(kind_i.barrier),
    .barrier_most_i(word.n[2:0]),
    .barrier_ok_o  (barrier_ok),
    .busy_o
  );

  // ---------------------------------------------------------------------------------------------
  // The instruction at the head
  // ---------------------------------------------------------------------------------------------
  error_e error;
  mem_addr_t error_addr;
  logic [31:0] offset_q, length_q;  // where the next share begins; length of the stream
  logic signed [32:0]
      left_q, left_after;  // from there to the end, negative behind it; less a share
  logic argmax_seen_q;  // a GEMM since the last ARGMAX
  logic is_argmax, is_end, seek, no_gemm, share_missing, share_left, faulty;
  logic [31:0] seek_offset;

  assign left_after = left_q - {1'b0, entry_i.share};
  assign is_argmax = word.opcode == OpArgmax;
  assign is_end = word.opcode == OpEnd;
  assign no_gemm = is_argmax && !argmax_seen_q;
  assign share_missing = kind_i.takes_share && (left_q < 33'sd0 || left_after < 33'sd0);
  assign share_left = is_end && offset_q != '0 && left_q != '0;
  assign faulty        = entry_i.error != ErrNone || no_gemm || resolved.context_full ||
                         resolved.bad_address || resolved.bad_range || share_missing || share_left;

  // The stream goes on somewhere else.
  assign seek_offset = resolved.loop_taken ? '0 : value;
  assign seek = resolved.loop_taken ? offset_q != '0 :
                word.opcode == OpSet && word.dst == SetStream && offset_q != value;

  always_comb begin
    error      = entry_i.error;
    error_addr = entry_i.error_addr;
    if (kind_i.refused) begin
      // Nothing goes before it.
    end else if (no_gemm) begin
      error      = ErrIllegalField;
      error_addr = '0;
    end else if (resolved.context_full) begin
      error      = ErrContextFull;
      error_addr = '0;
    end else if (resolved.bad_address) begin
      error      = ErrBadAddress;
      error_addr = resolved.error_addr;
    end else if (error == ErrSramRange) begin
      // The operands that depend on registers come last.
    end else if (resolved.bad_range) begin
      error      = ErrSramRange;
      error_addr = resolved.error_addr;
    end else if (share_missing) begin
      error = ErrStreamEnd;
    end else if (share_left) begin
      error = ErrStreamLeft;
    end
  end

  always_comb begin
    go = entry_valid_i && resolved.ready && !faulty && !progress_o.ended && !stop_i;
    go &= barrier_ok;
    go &= !(kind_i.takes_share || seek) || ticket_ready_i;
    go &= extents_i.nothing || (kind_i.engine & ~op_ready_i) == '0;
    unique case (word.opcode)
      OpArgmax: go &= !busy_o[EngGemm];
      OpEnd:    go &= all_idle;
      default:  ;
    endcase
  end

  assign entry_ready_o = go;
  assign fire_o = go;
  assign argmax_clear_o = change.argmax;
  assign change = '{
          set: go && word.opcode == OpSet,
          number: word.dst,
          add: word.flags[FlagAdd],
          value: value,
          argmax: go && is_argmax,
          token: argmax_i.column,
          loop: go && resolved.loop_taken
      };

  always_comb begin
    ticket_valid_o  = go && (kind_i.takes_share || seek);
    ticket_o.engine = engine_of(word.opcode);
    ticket_o.bytes  = seek ? seek_offset : entry_i.share;
    if (!seek) ticket_o.op = extents_i.nothing ? TicketDrop : TicketShare;
    else ticket_o.op = (seek_offset == '0 && left_q == '0) ? TicketWrap : TicketSeek;
  end

  assign op_valid_o = (go && !extents_i.nothing) ? kind_i.engine : '0;

  always_ff @(posedge clk_i) begin
    if (!rst_ni) begin
      offset_q      <= '0;
      left_q        <= '0;
      length_q      <= '0;
      argmax_seen_q <= 1'b0;
    end else if (start_i) begin
      offset_q      <= '0;
      left_q        <= {1'b0, start_state_i.image.stream_len};
      length_q      <= start_state_i.image.stream_len;
      argmax_seen_q <= 1'b0;
    end else if (go) begin
      if (seek) begin
        offset_q <= seek_offset;
        left_q   <= {1'b0, length_q} - {1'b0, seek_offset};
      end else if (kind_i.takes_share) begin
        offset_q <= offset_q + entry_i.share;
        left_q   <= left_after;
      end
      if (is_argmax) argmax_seen_q <= 1'b0;
      else if (op_valid_o[EngGemm] && operations_o.gemm.argmax) argmax_seen_q <= 1'b1;
    end
  end

  always_ff @(posedge clk_i) begin
    if (!rst_ni) begin
      redirect_o <= '0;
    end else begin
      redirect_o.valid <= go && word.opcode == OpLoop && resolved.loop_taken != entry_i.followed;
      redirect_o.index <= resolved.loop_taken ? value : entry_i.index + 1'b1;
    end
  end

  // ---------------------------------------------------------------------------------------------
  // End
  // ---------------------------------------------------------------------------------------------
  logic refuse;
  assign refuse = entry_valid_i && (kind_i.refused || resolved.ready) && faulty && all_idle &&
                  !progress_o.ended;

  always_ff @(posedge clk_i) begin
    if (!rst_ni) begin
      progress_o <= '0;
    end else begin
      if (refuse) begin
        progress_o.ended <= 1'b1;
        progress_o.error <= '{
            valid: 1'b1,
            code: error,
            engine: EngSeq,
            instr: entry_i.index,
            addr: error_addr
        };
      end else if (go && is_end) begin
        progress_o.ended <= 1'b1;
      end
      if (go) progress_o.last_instr <= entry_i.index;
    end
  end

`ifndef SYNTHESIS
  HeadSettled_A :
  assert property (@(posedge clk_i) disable iff (!rst_ni) entry_valid_i |-> settled_o)
  else $error("npu_dispatch: an instruction comes before the registers are settled");
`endif

endmodule
