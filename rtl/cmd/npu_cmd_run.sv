// SPDX-License-Identifier: Apache-2.0
//
// A run of the descriptor ring: takes one entry after the other, checks it, has its stream,
// operation or program, writeback and record done, and moves the tail. The first failure ends the
// run; so does a wait for the memory that lasts too long, at once and without a record.

module npu_cmd_run
  import npu_cmd_pkg::*;
  import npu_desc_pkg::*;
(
  input logic clk_i,        // clock
  input logic rst_ni,       // reset, active low
  input logic soft_reset_i, // pulse: ends the run without a report

  input  logic         start_i,     // pulse, only while idle
  input  logic         bad_base_i,  // base is no multiple of 4, from the cycle after start_i
  output ring_status_t ring_o,      // how the run stands
  input  ring_regs_t   regs_i,      // levels; head, timeout, cq_tail move at any time

  // Memory
  output logic active_o,      // a level: it may be used
  input  logic mem_idle_i,    // a level: it owes nothing
  input  logic mem_silent_i,  // a level: it owes something and does nothing in this cycle
  output logic stall_o,       // a level: waits for it in this cycle

  // Entries, as words of the descriptor
  input  entry_t             entry_i,        // next one in order
  output logic               entry_ready_o,  // taken; may come without entry_i.valid
  output logic   [7:0][31:0] words_o,        // 32-bit words of it, from the next cycle on
  output logic               taken_o,        // pulse: an entry without error has been taken

  input descriptor_t descriptor_i,  // what words_o mean, in the same cycle

  // Parts of the work: active until done or failed
  output logic stream_active_o,  // until stream_end_i, a time-out or soft_reset_i
  input step_end_t stream_end_i,  // pulse, only while active
  output logic op_valid_o,  // stays until unit_i.ready or soft_reset_i
  input unit_status_t unit_i,  // takes the operation, tells its end
  output logic launch_valid_o,  // stays until launch_i.ready or soft_reset_i
  input npu_host_pkg::launch_rsp_t launch_i,  // the program starts; it has ended
  output logic write_active_o,  // until write_end_i, a time-out or soft_reset_i
  input step_end_t write_end_i,  // pulse, only while active

  // Record of the descriptor
  output record_req_t record_o,        // how it has ended
  input  logic        record_waits_i,  // a level: waits for the memory, not for room
  input  step_end_t   record_end_i     // pulse, only while active
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
  logic failed_q;  // code_q is an error
  logic [2:0] last_q;  // completed
  logic [31:0] cycles_q;

  logic empty, last, extend;  // no entry pending, one; the second one is to be taken
  logic over, complete, failed, expired, ended;
  logic succeeds, next_ready;  // it completes without an error; the next entry is taken with that
  logic [7:0] code;
  logic [2:0] after_tail;

  // The index behind another, without a carry chain
  function automatic logic [2:0] after(logic [2:0] index);
    return {index[2] ^ (index[1] && index[0]), index[1] ^ index[0], !index[0]};
  endfunction

  assign empty = regs_i.tail == regs_i.head;
  assign last = after(regs_i.tail) == regs_i.head;
  assign after_tail = extended_q ? after(after(regs_i.tail)) : after(regs_i.tail);
  assign extend = state_q == StCheck && descriptor_i.owner && descriptor_i.extended &&
                  !extended_q && !last;

  // A descriptor that ends well hands over to the next one, if it is there.
  always_comb begin
    unique case (state_q)
      StOperate: succeeds = unit_i.done && unit_i.how == EndOkay && !descriptor_i.writeback;
      StProgram: succeeds = launch_i.ended && !launch_i.error.valid;
      StWrite:   succeeds = write_end_i.done;
      StRecord:  succeeds = record_end_i.done && !failed_q;
      default:   succeeds = 1'b0;
    endcase
    if (regs_i.cq_enable && state_q != StRecord) succeeds = 1'b0;
  end
  assign next_ready = succeeds && !expired && after_tail != regs_i.head && entry_i.valid &&
                      !entry_i.error;

  // ---------------------------------------------------------------------------------------------
  // Steps
  // ---------------------------------------------------------------------------------------------
  always_comb begin
    state          = state_q;
    code           = CodeDone;
    failed         = 1'b0;  // code is an error, with over, complete or ended
    over           = 1'b0;  // the descriptor has come to its end, but for the record
    complete       = 1'b0;  // and the record is written, or there is none
    ended          = 1'b0;
    op_valid_o     = 1'b0;
    launch_valid_o = 1'b0;
    unique case (state_q)
      StIdle:  if (start_i) state = StStart;
      StStart: begin
        if (bad_base_i || empty) begin
          ended  = 1'b1;
          failed = 1'b1;
          code   = bad_base_i ? CodeBase : CodeEmpty;
        end else if (mem_idle_i) begin
          state = StTake;
        end
      end
      StTake: begin
        ended = empty;
        if (!empty && entry_i.valid) begin
          over   = entry_i.error;
          failed = 1'b1;
          code   = CodeFetch;
          state  = StCheck;
        end
      end
      StCheck: begin
        over   = 1'b1;
        failed = 1'b1;
        if (!descriptor_i.owner) begin
          code = CodeOwner;
        end else if (descriptor_i.extended && !extended_q) begin
          over = last || (entry_i.valid && entry_i.error);
          code = last ? CodeOperation : CodeFetch;
        end else if (descriptor_i.bad_extension) begin
          code = CodeOperation;
        end else if (descriptor_i.bad_stream) begin
          code = CodeStreamConfig;
        end else if (descriptor_i.bad_writeback) begin
          code = CodeWritebackConfig;
        end else begin
          over = 1'b0;
          if (descriptor_i.launch) begin
            state = StLaunch;
          end else if (descriptor_i.stream) begin
            state = StStream;
          end else begin
            op_valid_o = 1'b1;
            state      = unit_i.ready ? StOperate : StIssue;
          end
        end
      end
      StStream: begin
        if (stream_end_i.done) state = StIssue;
        over   = stream_end_i.failed;
        failed = 1'b1;
        code   = CodeStreamRead;
      end
      StIssue: begin
        op_valid_o = 1'b1;
        if (unit_i.ready) state = StOperate;
      end
      StOperate: begin
        if (unit_i.done) begin
          failed = unit_i.how != EndOkay;
          over   = failed || !descriptor_i.writeback;
          if (failed) code = CodeOperation;
          state = StWrite;
        end
      end
      StLaunch: begin
        launch_valid_o = 1'b1;
        if (launch_i.ready) state = StProgram;
      end
      StProgram: begin
        over   = launch_i.ended;
        failed = launch_i.error.valid;
        if (failed) code = CodeOperation;
      end
      StWrite: begin
        over   = write_end_i.done || write_end_i.failed;
        failed = write_end_i.failed;
        if (failed) code = CodeWritebackWrite;
      end
      StRecord: begin
        complete = record_end_i.done || record_end_i.failed;
        failed   = record_end_i.failed || failed_q;
        code     = (record_end_i.failed && !failed_q) ? CodeWritebackWrite : code_q;
      end
      default: state = StIdle;
    endcase

    if (expired) begin
      complete = 1'b1;
      over     = 1'b0;
      failed   = 1'b1;
      code     = (state_q == StRecord && failed_q) ? code_q : CodeTimeout;
    end
    if (over && regs_i.cq_enable) state = StRecord;
    if (over && !regs_i.cq_enable) complete = 1'b1;
    if (complete && failed) ended = 1'b1;
    if (complete) state = next_ready ? StCheck : StTake;
    if (soft_reset_i) begin
      complete = 1'b0;
      ended    = 1'b0;
    end
    if (ended || soft_reset_i) state = StIdle;
  end

  assign ring_o = '{
          busy: state_q != StIdle,
          ended: ended,
          failed: failed,
          code: code,
          entry: complete,
          index: (state_q == StTake && empty) ? last_q : regs_i.tail,
          tail_we: complete && !failed,
          tail: after_tail
      };

  always_ff @(posedge clk_i) begin
    if (!rst_ni) begin
      state_q    <= StIdle;
      active_o   <= 1'b0;
      taken_o    <= 1'b0;
      words_q    <= '0;
      extended_q <= 1'b0;
      code_q     <= '0;
      failed_q   <= 1'b0;
      last_q     <= '0;
      cycles_q   <= '0;
    end else begin
      state_q  <= state;
      active_o <= !(state inside {StIdle, StStart});
      taken_o  <= entry_ready_o && entry_i.valid && !entry_i.error;
      if (over) begin
        code_q   <= code;
        failed_q <= failed;
      end
      if (complete) last_q <= regs_i.tail;
      if (state_q != StRecord) cycles_q <= cycles_q + 1'b1;
      if (entry_ready_o && entry_i.valid) begin
        if (!extend) begin
          for (int unsigned i = 0; i < 4; i++) words_q[i] <= entry_i.data[32*i+:32];
          extended_q <= 1'b0;
          cycles_q   <= '0;
        end else begin
          for (int unsigned i = 0; i < 4; i++) words_q[4+i] <= entry_i.data[32*i+:32];
          extended_q <= 1'b1;
        end
      end
    end
  end

  assign entry_ready_o   = (state_q == StTake && !empty) || extend || next_ready;
  assign words_o         = words_q;

  // ---------------------------------------------------------------------------------------------
  // Memory
  // ---------------------------------------------------------------------------------------------
  assign stream_active_o = state_q == StStream;
  assign write_active_o  = state_q == StWrite;

  always_comb begin
    unique case (state_q)
      StStart:           stall_o = !bad_base_i && !empty && !mem_idle_i;
      StTake:            stall_o = !empty && !entry_i.valid;
      StCheck:           stall_o = extend && !entry_i.valid;
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
  assign record_o = '{
          active: state_q == StRecord,
          code: code_q,
          tag: (extended_q && code_q != CodeFetch) ? descriptor_i.tag : '0,
          cycles: cycles_q
      };

`ifndef SYNTHESIS
  StartWhileIdle_A :
  assert property (@(posedge clk_i) disable iff (!rst_ni) start_i |-> !ring_o.busy)
  else $error("npu_cmd_run: a start while busy");
  DoneAfterTaken_A :
  assert property (@(posedge clk_i) disable iff (!rst_ni) unit_i.done |-> !op_valid_o)
  else $error("npu_cmd_run: an operation ends before it is taken");
`endif

endmodule
