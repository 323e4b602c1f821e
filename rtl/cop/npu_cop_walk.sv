// SPDX-License-Identifier: Apache-2.0
//
// Takes an instruction through arrays in memory. It reads ahead, but not over what it will write:
// where the destination begins inside a source, the array is gone through in ranges no longer than
// the distance, or of one element, each written and answered before the next one is read. That gives
// what one element after the other would.
//
// A fault belongs to the first element whose access fails. Reads are in order and so are writes, and
// an element that is written has been read: a fault of a write always is the earlier one. The bus is
// drained before the instruction ends, unless the memory is silent.

module npu_cop_walk
  import npu_mem_pkg::*;
  import npu_stream_pkg::*;
  import npu_cop_pkg::*;
  import npu_cop_isa_pkg::*;
(
  input logic clk_i,  // clock
  input logic rst_ni, // reset, active low

  input  cop_op_t           op_i,     // the oldest instruction
  input  logic              room_i,   // a level: an instruction may end
  input  logic       [19:0] limit_i,  // longest operand of a counted instruction in bytes; 0: 1 MiB
  input  logic       [31:0] vreg_i,   // what STVEC writes
  output logic              done_o,   // it ends in this cycle; units have results
  output cop_fault_t        fault_o,  // why it has failed, with done_o

  input logic soft_reset_i,  // pulse: end the instruction

  // Units
  output logic       start_o,  // pulse: an instruction begins, forget what was before
  output logic       drop_o,   // pulse: it has failed, forget what is inside
  output cop_piece_t piece_o,  // elements
  input  logic       ready_i,  // takes them
  input  logic       idle_i,   // a level: results hold everything that was taken
  input  cop_group_t group_i,  // results to write, in order
  output logic       ready_o,  // takes them

  // Protection
  input mem_settings_t settings_i,  // levels: regions for new requests, limit of waits in cycles
  input stream_range_t stream_i,    // a level: no writes to these bytes; none if the length is 0

  // Memory port
  output npu_axi_pkg::axi_req_t axi_req_o,  // stays until taken, stable; answers always taken
  input  npu_axi_pkg::axi_rsp_t axi_rsp_i   // ready may depend on valid
);

  typedef enum logic [2:0] {
    StIdle,
    StRange,  // a range begins when the memory owes nothing
    StRun,
    StDrain,  // it has failed, and the memory still owes answers
    StEnd
  } state_e;

  state_e state_q;
  cop_job_t job, job_q;
  cop_fault_t fault_q;
  cop_count_t left_q, done_q;  // elements of the ranges to come, and of those that have gone
  logic begins, mine, runs;

  // ---------------------------------------------------------------------------------------------
  // The instruction
  // ---------------------------------------------------------------------------------------------
  logic [31:0] offset, n;
  logic [33:0] operand_bytes;
  logic too_long;

  assign mine   = op_i.decoded.element_bytes != '0;
  assign begins = state_q == StIdle && op_i.valid && mine;
  assign runs   = state_q == StRun;

  always_comb begin
    unique case (op_i.decoded.op)
      CopLdvec: offset = {{20{op_i.instr[31]}}, op_i.instr[31:20]};
      CopStvec: offset = {{20{op_i.instr[31]}}, op_i.instr[31:25], op_i.instr[11:7]};
      default:  offset = '0;
    endcase
    job = '{
        bytes: op_i.decoded.element_bytes == 3'd1,
        reads_a: op_i.decoded.reads_a,
        reads_b: op_i.decoded.reads_b,
        writes_d: op_i.decoded.writes_d,
        most: piece_bytes(op_i.cop_unit),
        a: op_i.rs[0] + offset,
        b: op_i.rs[1],
        d: (op_i.decoded.op == CopStvec) ? op_i.rs[0] + offset : op_i.rs[1]
    };
    // Where the result goes to rd, the count is in rs2.
    n = !op_i.decoded.counted ? 32'd1 : op_i.decoded.writeback ? op_i.rs[1] : op_i.rs[2];
  end

  assign operand_bytes = job.bytes ? {2'b0, n} : {n, 2'b0};
  assign too_long = op_i.decoded.counted && operand_bytes > {13'b0, limit_i == '0, limit_i};

  // ---------------------------------------------------------------------------------------------
  // The range that begins next
  // ---------------------------------------------------------------------------------------------
  // No range is longer than the stride, the elements from the source to a destination behind it.
  cop_count_t range, stride, stride_q;
  logic [31:0] distance, apart;
  logic go, quiet;
  cop_bus_t bus;

  assign distance = op_i.rs[1] - op_i.rs[0];
  assign apart = job.bytes ? distance : {2'b00, distance[31:2]};
  always_comb begin
    stride = apart[CountBits-1:0];
    if (apart == '0) stride = CountBits'(1);
    if (!job.reads_a || !job.writes_d || distance == '0 || apart[31:CountBits] != '0) stride = '1;
  end
  assign range = (stride_q < left_q) ? stride_q : left_q;
  assign quiet = !bus.reads && !bus.writes;
  assign go = state_q == StRange && quiet && !soft_reset_i;

  logic timed_out_q;  // no word comes any more
  cop_progress_t progress;

  npu_cop_arrays u_arrays (
    .clk_i,
    .rst_ni,
    .start_i   (go),
    .count_i   (range),
    .job_i     (job_q),
    .value_i   (vreg_i),
    .run_i     (runs),
    .drop_i    (state_q inside {StDrain, StEnd}),
    .late_i    (timed_out_q),
    .progress_o(progress),
    .bus_o     (bus),
    .piece_o,
    .ready_i,
    .idle_i,
    .group_i,
    .ready_o,
    .settings_i,
    .stream_i,
    .axi_req_o,
    .axi_rsp_i
  );

  // ---------------------------------------------------------------------------------------------
  // Faults, the earliest element's first. Whether there is one does not wait for which element it is.
  // ---------------------------------------------------------------------------------------------
  logic lost, late, fails, ends;  // a write: is not written, is not answered; ends: nothing comes
  cop_code_e code;

  assign lost = progress.write_failed;
  assign late = bus.expired && bus.writes;
  assign fails = lost || late || (progress.done && (progress.write_denied || progress.read_failed));

  always_comb begin
    if (state_q == StRange || (late && !lost)) code = CodeTimeout;
    else if (lost) code = CodeBus;
    else if (progress.write_denied) code = CodeDenied;
    else code = progress.read_code;
  end

  assign ends = code == CodeTimeout;

  // ---------------------------------------------------------------------------------------------
  // The element that counts: the one that has failed, the first one of a range, where a range ends, or
  // how far a reset finds it
  // ---------------------------------------------------------------------------------------------
  logic [31:0] reached;  // index, as a fault tells it
  cop_count_t element, index, behind;  // behind: bytes from the start of the range
  logic [31:0] a, b, d, addr;
  logic range_q;  // a reset came while a range was under way
  logic of_write;

  assign of_write = runs ? lost || late || progress.write_denied : !job_q.reads_a;

  always_comb begin
    unique case (state_q)
      StRun:
      if (lost || late) element = progress.answered;
      else if (progress.write_denied) element = progress.next_write;
      else if (progress.read_failed) element = progress.next_read;
      else element = progress.dealt;
      StDrain: element = !range_q ? '0 : job_q.writes_d ? progress.answered : progress.dealt;
      default: element = '0;
    endcase
  end

  assign behind  = in_bytes(element, job_q.bytes);
  assign index   = done_q + element;
  assign reached = 32'(index);
  assign a       = job_q.a + 32'(behind);
  assign b       = job_q.b + 32'(behind);
  assign d       = job_q.d + 32'(behind);
  assign addr    = of_write ? d : (runs && progress.read_second) ? b : a;

  // ---------------------------------------------------------------------------------------------
  // States
  // ---------------------------------------------------------------------------------------------
  always_ff @(posedge clk_i) begin
    if (!rst_ni) begin
      state_q     <= StIdle;
      job_q       <= '0;
      fault_q     <= '0;
      left_q      <= '0;
      stride_q    <= '0;
      done_q      <= '0;
      timed_out_q <= 1'b0;
      range_q     <= 1'b0;
    end else begin
      unique case (state_q)
        StIdle:
        if (begins) begin
          job_q       <= job;
          fault_q     <= too_long ? '{valid: 1'b1, code: CodeLength, default: '0} : '0;
          left_q      <= n[CountBits-1:0];
          stride_q    <= stride;
          done_q      <= '0;
          timed_out_q <= 1'b0;
          state_q     <= (too_long || n == '0) ? StEnd : StRange;
        end
        StRange: begin
          if (go) begin
            left_q  <= left_q - range;
            state_q <= StRun;
          end else if (bus.expired) begin
            fault_q <= '{valid: 1'b1, code: code, addr: addr, index: reached};
            state_q <= StEnd;
          end
        end
        StRun: begin
          if (bus.expired) timed_out_q <= 1'b1;
          if (fails) begin
            fault_q <= '{valid: 1'b1, code: code, addr: addr, index: reached};
            state_q <= ends ? StEnd : StDrain;
          end else if (progress.done) begin
            job_q.a <= a;
            job_q.b <= b;
            job_q.d <= d;
            done_q  <= index;
            state_q <= (left_q == '0) ? StEnd : StRange;
          end
        end
        StDrain: begin
          // What was under way when a reset came has been written meanwhile.
          if (fault_q.code == CodeReset) fault_q.index <= reached;
          if (quiet || (bus.expired && fault_q.code != CodeReset)) state_q <= StEnd;
        end
        StEnd:   if (room_i) state_q <= StIdle;
        default: state_q <= StIdle;
      endcase
      if (soft_reset_i && state_q inside {StRange, StRun}) begin
        fault_q <= '{valid: 1'b1, code: CodeReset, default: '0};
        range_q <= runs && (fails || !progress.done);
        state_q <= StDrain;
      end
    end
  end

  assign start_o = begins;
  assign drop_o  = state_q == StEnd && fault_q.valid;
  assign done_o  = state_q == StEnd && room_i;
  assign fault_o = fault_q;

endmodule
