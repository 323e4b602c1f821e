// SPDX-License-Identifier: Apache-2.0
//
// The completion ring: keeps its head, waits for room, and writes the record of a descriptor. The
// phase bit of a record changes with every lap, so that software can tell new records from old ones
// without reading the head.

module npu_cmd_record
  import npu_cmd_pkg::*;
  import npu_desc_pkg::*;
(
  input logic clk_i,  // clock
  input logic rst_ni, // reset, active low

  input  record_req_t       record_i,  // what it tells; the next four are as stable as this
  input  logic        [2:0] index_i,   // index of the descriptor's first entry
  input  logic        [3:0] opcode_i,  // opcode of its operation
  input  logic              scalar_i,  // the operation is a scalar one
  input  logic              launch_i,  // it launches a program
  output logic              waits_o,   // a level: waits for the memory, not for room
  output step_end_t         end_o,     // pulse, with the answer of the memory or its refusal

  // What a scalar operation or a program has left; clear_i comes before either
  input logic                      clear_i,   // a level: forget what the last program has left
  input unit_status_t              unit_i,    // RESULT and RESULT_HI; they stay meanwhile
  input npu_host_pkg::launch_rsp_t program_i, // error and OUTCNT of a program, as it ends

  // Registers
  input  ring_regs_t        regs_i,  // of the completion ring; cq_tail may move on at any time
  output logic       [15:0] head_o,  // records written, modulo 65,536; 0 while not cq_enable

  // Memory
  output npu_cmd_pkg::write_req_t write_o,  // stable until ready or dropped
  input  npu_cmd_pkg::write_rsp_t write_i   // counts once the record is sent
);

  logic [15:0] head_q, size, place;
  logic sent_q, room_q, phase, taken, ended;

  // ---------------------------------------------------------------------------------------------
  // Content; of a descriptor that could not be fetched nothing is known
  // ---------------------------------------------------------------------------------------------
  logic [1:0][31:0] program_q, outcome;
  logic launch;
  logic [3:0] opcode;
  desc_record_t record;
  assign launch = launch_i && record_i.code != CodeFetch;
  assign opcode = (record_i.code == CodeFetch) ? '0 : opcode_i;

  always_ff @(posedge clk_i) begin
    if (!rst_ni) begin
      program_q <= '0;
    end else if (clear_i) begin
      program_q <= '0;
    end else if (program_i.ended) begin
      program_q[0] <= program_i.outcnt;
      if (program_i.error.valid)
        program_q[1] <= {17'b0, program_i.error.engine, program_i.error.code, 8'b0};
    end
  end

  always_comb begin
    outcome = '0;
    if (launch) outcome = program_q;
    else if (scalar_i && record_i.code == CodeDone) outcome = {unit_i.result_hi, unit_i.result};
  end

  // ---------------------------------------------------------------------------------------------
  // Ring
  // ---------------------------------------------------------------------------------------------

  assign size = 16'd1 << regs_i.cq_log2_size;
  assign place = head_q & (size - 16'd1);
  assign phase = !head_q[regs_i.cq_log2_size];

  assign write_o.valid = record_i.active && room_q && !sent_q;
  assign write_o.addr = regs_i.cq_base + {12'b0, place, 4'b0};
  assign write_o.strb = '1;
  always_comb begin
    record           = '0;
    record.code      = record_i.code;
    record.index     = index_i;
    record.phase     = phase;
    record.tag       = record_i.tag;
    record.opcode    = launch ? '0 : opcode;
    record.launch    = launch;
    record.result    = outcome[0];
    record.result_hi = outcome[1];
    record.cycles    = record_i.cycles;
  end
  assign write_o.data = record;

  assign taken = write_o.valid && write_i.ready;
  assign ended = record_i.active && sent_q && (write_i.valid || write_i.denied);
  assign waits_o = record_i.active && (room_q || sent_q);
  assign end_o.done = ended && !write_i.denied && !write_i.error;
  assign end_o.failed = ended && (write_i.denied || write_i.error);
  assign head_o = head_q;

  always_ff @(posedge clk_i) begin
    if (!rst_ni) begin
      head_q <= '0;
      sent_q <= 1'b0;
      room_q <= 1'b0;
    end else begin
      sent_q <= record_i.active && (sent_q || taken) && !ended;
      // In time: the next record is further away than a cycle.
      room_q <= head_q - regs_i.cq_tail != size;
      if (!regs_i.cq_enable) head_q <= '0;
      else if (end_o.done) head_q <= head_q + 1'b1;
    end
  end

endmodule
