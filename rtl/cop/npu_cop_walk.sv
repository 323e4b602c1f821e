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

  // What is gone through
  typedef struct packed {
    logic        bytes;     // elements are bytes; else words
    logic        reads_a;
    logic        reads_b;
    logic        writes_d;
    cop_unit_e   cop_unit;
    logic [31:0] a;         // first elements
    logic [31:0] b;
    logic [31:0] d;
  } job_t;

  state_e state_q;
  job_t job, job_q;
  cop_fault_t fault_q;
  cop_count_t left_q, done_q;  // elements of the ranges to come, and of those that have gone
  logic begins, mine;

  // ---------------------------------------------------------------------------------------------
  // The instruction
  // ---------------------------------------------------------------------------------------------
  logic [31:0] offset, n, index;
  logic [33:0] operand_bytes;
  logic too_long;

  assign mine   = op_i.decoded.element_bytes != '0;
  assign begins = state_q == StIdle && op_i.valid && mine;

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
        cop_unit: unit_of(op_i.decoded.op),
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
  cop_count_t range, left_bytes, range_bytes;
  logic [31:0] distance;
  logic go, overlaps;
  cop_bus_t bus;

  function automatic cop_count_t in_bytes(cop_count_t elements, logic of_bytes);
    return of_bytes ? elements : CountBits'({elements, 2'b00});
  endfunction

  function automatic cop_count_t in_elements(cop_count_t size, logic of_bytes);
    return of_bytes ? size : CountBits'(size[CountBits-1:2]);
  endfunction

  assign left_bytes = in_bytes(left_q, job_q.bytes);
  assign distance = job_q.d - job_q.a;
  assign overlaps = job_q.reads_a && job_q.writes_d && distance != '0 && distance < 32'(left_bytes);
  always_comb begin
    range = left_q;
    if (overlaps) range = in_elements(distance[CountBits-1:0], job_q.bytes);
    if (range == '0) range = CountBits'(1);
  end
  assign range_bytes = in_bytes(range, job_q.bytes);
  assign go = state_q == StRange && left_q != '0 && !bus.reads && !bus.writes && !soft_reset_i;

  // ---------------------------------------------------------------------------------------------
  // Operands
  // ---------------------------------------------------------------------------------------------
  cop_read_req_t read_req[2];
  cop_read_rsp_t read_rsp[2];
  cop_write_req_t write_req;
  cop_write_rsp_t write_rsp;
  cop_chunk_t chunks[2];
  logic chunks_taken, stop, drop, dealt;
  cop_code_e read_code;
  logic read_failed, read_second, write_failed, write_denied, denied_there;
  cop_count_t next_read, next_write, answered;
  logic written, timed_out_q;  // no word comes any more
  logic [1:0][31:0] bases;
  logic [1:0] reads;

  assign bases = {job_q.b, job_q.a};
  assign reads = {job_q.reads_b, job_q.reads_a};

  cop_range_t read_range[2], write_range;

  assign read_range = '{
          '{start: go && reads[0], addr: job_q.a, bytes: range_bytes},
          '{start: go && reads[1], addr: job_q.b, bytes: range_bytes}
      };
  assign write_range = '{start: go && job_q.writes_d, addr: job_q.d, bytes: range_bytes};

  for (genvar o = 0; o < 2; o++) begin : gen_operand
    npu_cop_reader u_reader (
      .clk_i,
      .rst_ni,
      .range_i(read_range[o]),
      .stop_i (stop || timed_out_q),
      .late_i (timed_out_q),
      .read_o (read_req[o]),
      .read_i (read_rsp[o]),
      .chunk_o(chunks[o]),
      .ready_i(chunks_taken && reads[o])
    );
  end

  npu_cop_pieces u_pieces (
    .clk_i,
    .rst_ni,
    .start_i (go),
    .count_i (range),
    .stop_i  (stop),
    .drop_i  (drop),
    .bytes_i (job_q.bytes),
    .reads_i (reads),
    .value_i (vreg_i),
    .most_i  (piece_bytes(job_q.cop_unit)),
    .chunk_i (chunks),
    .ready_o (chunks_taken),
    .piece_o,
    .ready_i (ready_i),
    .failed_o(read_failed),
    .code_o  (read_code),
    .second_o(read_second),
    .next_o  (next_read),
    .done_o  (dealt)
  );

  // ---------------------------------------------------------------------------------------------
  // Destination: pieces and their results follow each other, only the last piece is a of_bytes one
  // ---------------------------------------------------------------------------------------------
  cop_count_t dealt_q, pending;  // bytes dealt, and of them those without a result
  logic [4:0] most;

  assign most = piece_bytes(job_q.cop_unit);
  assign pending = dealt_q - next_write;

  npu_cop_writer u_writer (
    .clk_i,
    .rst_ni,
    .range_i   (write_range),
    .bytes_i   (job_q.bytes),
    .drop_i    (drop),
    .flush_i   (dealt && pending == '0),
    .group_i,
    .size_i    ((pending < CountBits'(most)) ? pending[3:0] : most[3:0]),
    .ready_o,
    .regions_i (settings_i.regions),
    .stream_i,
    .write_o   (write_req),
    .write_i   (write_rsp),
    .denied_o  (denied_there),
    .taken_o   (next_write),
    .answered_o(answered),
    .empty_o   (written)
  );

  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) dealt_q <= '0;
    else if (go) dealt_q <= '0;
    else if (piece_o.valid && ready_i)
      dealt_q <= dealt_q + in_bytes(CountBits'(piece_o.count), job_q.bytes);
  end

  npu_cop_mem u_mem (
    .clk_i,
    .rst_ni,
    .read_i (read_req),
    .read_o (read_rsp),
    .write_i(write_req),
    .write_o(write_rsp),
    .settings_i,
    .bus_o  (bus),
    .axi_req_o,
    .axi_rsp_i
  );

  // ---------------------------------------------------------------------------------------------
  // Faults
  // ---------------------------------------------------------------------------------------------
  logic range_done, all_done, quiet, ends;
  cop_fault_t fault;

  assign write_denied = denied_there && job_q.writes_d;
  assign write_failed = write_rsp.done && write_rsp.error && state_q == StRun;
  // Everything before the fault of a read, or before an element that may not be written, is written.
  assign range_done = write_denied ? written && !bus.writes :
                      dealt && idle_i && (!job_q.writes_d ||
                                          (pending == '0 && written && !bus.writes));
  assign all_done = left_q == '0;
  assign stop = state_q != StRun || write_denied;
  assign drop = state_q inside {StDrain, StEnd};
  assign quiet = !bus.reads && !bus.writes;

  // The element with which a range begins is done_q.
  function automatic cop_fault_t fault_of(cop_code_e code, logic [31:0] base, cop_count_t element,
                                          logic of_bytes, cop_count_t first);
    return
    '{
        valid: 1'b1,
        code: code,
        addr: base + 32'(in_bytes(element, of_bytes)),
        index: 32'(first + element)
    }
    ;
  endfunction

  always_comb begin
    fault = '0;
    ends  = 1'b0;
    if (write_failed) begin
      fault = fault_of(CodeBus, job_q.d, in_elements(answered, job_q.bytes), job_q.bytes, done_q);
    end else if (bus.expired && bus.writes) begin
      fault =
          fault_of(CodeTimeout, job_q.d, in_elements(answered, job_q.bytes), job_q.bytes, done_q);
      ends = 1'b1;
    end else if (range_done && write_denied) begin
      fault =
          fault_of(CodeDenied, job_q.d, in_elements(next_write, job_q.bytes), job_q.bytes, done_q);
    end else if (range_done && read_failed) begin
      fault = fault_of(read_code, bases[read_second], next_read, job_q.bytes, done_q);
      ends  = read_code == CodeTimeout;
    end
  end

  // ---------------------------------------------------------------------------------------------
  // States
  // ---------------------------------------------------------------------------------------------
  // Elements that a reset finds completed
  assign index = 32'(done_q) + ((state_q == StRange) ? '0 : 32'(in_elements(
      job_q.writes_d ? answered : dealt_q, job_q.bytes
  )));

  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) begin
      state_q     <= StIdle;
      job_q       <= '0;
      fault_q     <= '0;
      left_q      <= '0;
      done_q      <= '0;
      timed_out_q <= 1'b0;
    end else begin
      unique case (state_q)
        StIdle:
        if (begins) begin
          job_q       <= job;
          fault_q     <= too_long ? '{valid: 1'b1, code: CodeLength, default: '0} : '0;
          left_q      <= n[CountBits-1:0];
          done_q      <= '0;
          timed_out_q <= 1'b0;
          state_q     <= (too_long || n == '0) ? StEnd : StRange;
        end
        StRange: begin
          if (go) begin
            left_q  <= left_q - range;
            state_q <= StRun;
          end else if (bus.expired) begin
            fault_q <= fault_of(
                CodeTimeout, job_q.reads_a ? job_q.a : job_q.d, '0, job_q.bytes, done_q
            );
            state_q <= StEnd;
          end
        end
        StRun: begin
          if (bus.expired) timed_out_q <= 1'b1;
          if (fault.valid) begin
            fault_q <= fault;
            state_q <= ends ? StEnd : StDrain;
          end else if (range_done) begin
            job_q.a <= job_q.a + 32'(dealt_q);
            job_q.b <= job_q.b + 32'(dealt_q);
            job_q.d <= job_q.d + 32'(dealt_q);
            done_q  <= done_q + in_elements(dealt_q, job_q.bytes);
            state_q <= all_done ? StEnd : StRange;
          end
        end
        StDrain: if (quiet || (bus.expired && fault_q.code != CodeReset)) state_q <= StEnd;
        StEnd:   if (room_i) state_q <= StIdle;
        default: state_q <= StIdle;
      endcase
      if (soft_reset_i && state_q inside {StRange, StRun}) begin
        fault_q <= '{valid: 1'b1, code: CodeReset, addr: '0, index: index};
        state_q <= StDrain;
      end
    end
  end

  assign start_o = begins;
  assign drop_o  = state_q == StEnd && fault_q.valid;
  assign done_o  = state_q == StEnd && room_i;
  assign fault_o = fault_q;

endmodule
