// SPDX-License-Identifier: Apache-2.0
//
// A run of the descriptor ring: takes one entry after the other, checks it, has its stream,
// operation or program, writeback and record done, and moves the tail. The first failure ends the
// run; so does a wait for the memory that lasts too long, at once and without a record.

module npu_cmd_run
  import npu_pkg::*;
  import npu_cmd_pkg::*;
  import npu_desc_pkg::*;
(
  input logic clk_i,        // clock
  input logic rst_ni,       // reset, active low
  input logic soft_reset_i, // pulse: ends the run without a report

  input  logic             start_i,     // pulse, only while idle
  input  logic             bad_base_i,  // base is no multiple of 4, from the cycle after start_i
  output logic             busy_o,      // a level, from the cycle after start_i on
  output logic             end_o,       // pulse, in the last busy cycle
  output logic       [7:0] code_o,      // DESC_STATUS[7:0], with end_o
  output logic       [2:0] index_o,     // of an entry, with end_o and entry_o
  output logic             entry_o,     // pulse: a descriptor has completed or failed
  input  ring_regs_t       regs_i,      // levels; head, timeout, cq_tail move at any time
  output logic             tail_we_o,   // pulse: a descriptor has completed
  output logic       [2:0] tail_o,      // index of the next entry, with tail_we_o

  // Memory
  output logic active_o,      // a level: it may be used
  input  logic mem_idle_i,    // a level: it owes nothing
  input  logic mem_silent_i,  // a level: it owes something and does nothing in this cycle
  output logic stall_o,       // a level: waits for it in this cycle

  // Entries, as words of the descriptor
  input  logic              entry_valid_i,  // stays until entry_ready_o while active_o, all stable
  output logic              entry_ready_o,  // taken; may come without entry_valid_i
  input  logic              entry_error_i,  // with entry_valid_i: it could not be read
  input  word_t             entry_i,        // 16 bytes, with entry_valid_i, without entry_error_i
  output logic  [7:0][31:0] words_o,        // 32-bit words of it, from the next cycle on
  output logic              taken_o,        // pulse: an entry without error is taken

  // What they mean
  input descriptor_t descriptor_i,     // of words_o, in the same cycle
  input logic        bad_extension_i,  // its extension is not allowed, with descriptor_i
  input logic        bad_stream_i,     // its stream is not allowed, with descriptor_i
  input logic        bad_writeback_i,  // its writeback is not allowed, with descriptor_i

  // Parts of the work: active until done or failed
  output logic      stream_active_o,  // until stream_end_i, a time-out or soft_reset_i
  input  step_end_t stream_end_i,     // pulse, only while active
  output logic      op_valid_o,       // stays until op_ready_i or soft_reset_i
  input  logic      op_ready_i,       // taken; may depend on op_valid_o
  input  logic      op_done_i,        // pulse, after op_ready_i: the operation has ended
  input  end_e      op_end_i,         // how, with op_done_i
  output logic      launch_valid_o,   // stays until launch_ready_i or soft_reset_i
  input  logic      launch_ready_i,   // the program starts; may depend on launch_valid_o
  input  logic      launch_end_i,     // pulse, after launch_ready_i: the program has ended
  input  logic      launch_failed_i,  // with an error; with launch_end_i
  output logic      write_active_o,   // until write_end_i, a time-out or soft_reset_i
  input  step_end_t write_end_i,      // pulse, only while active

  // Record of the descriptor
  output logic             record_active_o,  // until record_end_i, a time-out or soft_reset_i
  output logic      [ 7:0] record_code_o,    // DESC_STATUS[7:0], while record_active_o
  output logic      [ 7:0] record_tag_o,     // of an extended entry, else 0, the same
  output logic      [31:0] record_cycles_o,  // from the entry's arrival to its end, the same
  input  logic             record_waits_i,   // a level: waits for the memory, not for room
  input  step_end_t        record_end_i      // pulse, only while active
);

  typedef enum logic [3:0] {
    StIdle,
    StStart,    // waits until the memory owes nothing from an earlier run
    StTake,
    StCheck,    // an extended entry: takes the second
    StStream,
    StIssue,
    StOperate,
    StLaunch,
    StProgram,
    StWrite,
    StRecord
  } state_e;

  state_e state_q, state;
  logic [7:0][31:0] words_q;
  logic extended_q;  // words 4 to 7 are there
  logic [7:0] code_q;
  logic [2:0] last_q;  // completed
  logic [31:0] cycles_q;

  logic empty, last, extend;  // no entry pending, one; the second one is to be taken
  logic over, complete, expired;
  logic [7:0] code;
  logic [2:0] after;

  assign empty = regs_i.tail == regs_i.head;
  assign last = regs_i.tail + 3'd1 == regs_i.head;
  assign extend = state_q == StCheck && descriptor_i.owner && descriptor_i.extended &&
                  !extended_q && !last;
  assign after = regs_i.tail + (extended_q ? 3'd2 : 3'd1);

  // ---------------------------------------------------------------------------------------------
  // Steps
  // ---------------------------------------------------------------------------------------------
  always_comb begin
    state          = state_q;
    code           = CodeDone;
    over           = 1'b0;  // the descriptor has come to its end, but for the record
    complete       = 1'b0;  // and the record is written, or there is none
    end_o          = 1'b0;
    op_valid_o     = 1'b0;
    launch_valid_o = 1'b0;
    unique case (state_q)
      StIdle:  if (start_i) state = StStart;
      StStart: begin
        if (bad_base_i || empty) begin
          end_o = 1'b1;
          code  = bad_base_i ? CodeBase : CodeEmpty;
        end else if (mem_idle_i) begin
          state = StTake;
        end
      end
      StTake: begin
        end_o = empty;
        if (!empty && entry_valid_i) begin
          over  = entry_error_i;
          code  = CodeFetch;
          state = StCheck;
        end
      end
      StCheck: begin
        over = 1'b1;
        if (!descriptor_i.owner) begin
          code = CodeOwner;
        end else if (descriptor_i.extended && !extended_q) begin
          over = last || (entry_valid_i && entry_error_i);
          code = last ? CodeOperation : CodeFetch;
        end else if (bad_extension_i) begin
          code = CodeOperation;
        end else if (bad_stream_i) begin
          code = CodeStreamConfig;
        end else if (bad_writeback_i) begin
          code = CodeWritebackConfig;
        end else begin
          over = 1'b0;
          if (descriptor_i.launch) begin
            state = StLaunch;
          end else if (descriptor_i.stream) begin
            state = StStream;
          end else begin
            op_valid_o = 1'b1;
            state      = op_ready_i ? StOperate : StIssue;
          end
        end
      end
      StStream: begin
        if (stream_end_i.done) state = StIssue;
        over = stream_end_i.failed;
        code = CodeStreamRead;
      end
      StIssue: begin
        op_valid_o = 1'b1;
        if (op_ready_i) state = StOperate;
      end
      StOperate: begin
        if (op_done_i) begin
          over = op_end_i != EndOkay || !descriptor_i.writeback;
          if (op_end_i != EndOkay) code = CodeOperation;
          state = StWrite;
        end
      end
      StLaunch: begin
        launch_valid_o = 1'b1;
        if (launch_ready_i) state = StProgram;
      end
      StProgram: begin
        over = launch_end_i;
        if (launch_failed_i) code = CodeOperation;
      end
      StWrite: begin
        over = write_end_i.done || write_end_i.failed;
        if (write_end_i.failed) code = CodeWritebackWrite;
      end
      StRecord: begin
        complete = record_end_i.done || record_end_i.failed;
        code     = code_q;
        if (record_end_i.failed && code_q == CodeDone) code = CodeWritebackWrite;
      end
      default: state = StIdle;
    endcase

    if (expired) begin
      complete = 1'b1;
      over     = 1'b0;
      code     = (state_q == StRecord && code_q != CodeDone) ? code_q : CodeTimeout;
    end
    if (over && regs_i.cq_enable) state = StRecord;
    if (over && !regs_i.cq_enable) complete = 1'b1;
    if (complete && code != CodeDone) end_o = 1'b1;
    if (complete) state = StTake;
    if (soft_reset_i) begin
      complete = 1'b0;
      end_o    = 1'b0;
    end
    if (end_o || soft_reset_i) state = StIdle;
  end

  assign busy_o    = state_q != StIdle;
  assign code_o    = code;
  assign entry_o   = complete;
  assign index_o   = (end_o && !complete && code == CodeDone) ? last_q : regs_i.tail;
  assign tail_we_o = complete && code == CodeDone;
  assign tail_o    = after;

  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) begin
      state_q    <= StIdle;
      words_q    <= '0;
      extended_q <= 1'b0;
      code_q     <= '0;
      last_q     <= '0;
      cycles_q   <= '0;
    end else begin
      state_q <= state;
      if (over) code_q <= code;
      if (complete) last_q <= regs_i.tail;
      if (state_q != StRecord) cycles_q <= cycles_q + 1'b1;
      if (entry_ready_o && entry_valid_i) begin
        if (!extend) begin
          for (int unsigned i = 0; i < 4; i++) words_q[i] <= entry_i[32*i+:32];
          extended_q <= 1'b0;
          cycles_q   <= '0;
        end else begin
          for (int unsigned i = 0; i < 4; i++) words_q[4+i] <= entry_i[32*i+:32];
          extended_q <= 1'b1;
        end
      end
    end
  end

  assign entry_ready_o   = (state_q == StTake && !empty) || extend;
  assign taken_o         = entry_ready_o && entry_valid_i && !entry_error_i;
  assign words_o         = words_q;

  // ---------------------------------------------------------------------------------------------
  // Memory
  // ---------------------------------------------------------------------------------------------
  assign active_o        = !(state_q inside {StIdle, StStart});
  assign stream_active_o = state_q == StStream;
  assign write_active_o  = state_q == StWrite;
  assign record_active_o = state_q == StRecord;

  always_comb begin
    unique case (state_q)
      StStart:           stall_o = !bad_base_i && !empty && !mem_idle_i;
      StTake:            stall_o = !empty && !entry_valid_i;
      StCheck:           stall_o = extend && !entry_valid_i;
      StStream, StWrite: stall_o = 1'b1;
      StRecord:          stall_o = record_waits_i;
      default:           stall_o = 1'b0;
    endcase
  end

  npu_mem_timer u_timer (
    .clk_i,
    .rst_ni,
    .waiting_i(stall_o && mem_silent_i),
    .limit_i  (regs_i.timeout),
    .expired_o(expired)
  );

  // ---------------------------------------------------------------------------------------------
  // Record
  // ---------------------------------------------------------------------------------------------
  assign record_code_o   = code_q;
  assign record_tag_o    = (extended_q && code_q != CodeFetch) ? descriptor_i.tag : '0;
  assign record_cycles_o = cycles_q;

`ifndef SYNTHESIS
  StartWhileIdle_A :
  assert property (@(posedge clk_i) disable iff (!rst_ni) start_i |-> !busy_o)
  else $error("npu_cmd_run: a start while busy");
  DoneAfterTaken_A :
  assert property (@(posedge clk_i) disable iff (!rst_ni) op_done_i |-> !op_valid_o)
  else $error("npu_cmd_run: an operation ends before it is taken");
`endif

endmodule
