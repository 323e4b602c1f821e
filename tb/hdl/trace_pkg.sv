// SPDX-License-Identifier: Apache-2.0
//
// What the bench sees inside the chip, by the module that owns it. tb_binds.sv puts a `trace_probe`
// of the type into each of them.

package trace_pkg;

  localparam int unsigned NumEngines = npu_pkg::NumEngines;

  // An engine; a part that it lacks stays zero.
  typedef struct packed {
    logic take;  // an operation out of its queue
    logic done;  // its oldest operation
    logic busy;
    logic works;  // moves what it is there to move
    logic read_goes;
    logic read_refused;  // by the SRAM, at any port
    logic write_valid;
    logic write_ready;
    npu_pkg::sram_addr_t write_addr;
    logic write_last;  // the last word that an operation of the store engine sends
    logic stream_late;  // a line of the parameter stream is wanted and not there
    logic channel_waits;  // memory has not taken a burst or word
    logic bank_waits;  // no free accumulator bank
    logic parameter_waits;  // those of the tile before are still in use
    logic row_goes;  // into the systolic array
    npu_pkg::word_t write_data;  // last: wide fields are cheap to simulate where words begin
  } engine_trace_t;

  typedef struct packed {
    logic valid;  // a word stands at the head
    logic taken;
    logic fire;
    logic ended;
    logic resolved;
    logic queue_full;
    npu_pkg::instr_idx_t index;
    logic [NumEngines-1:0] queued;  // the engine's queue takes the operation
    npu_isa_pkg::instr_t word;
  } dispatch_trace_t;

  typedef struct packed {
    logic rst_n;  // of all but the memory port
    logic started;
    logic busy;
    logic finish;
    logic soft_reset;
    logic stream_beat;
    logic ticket_valid;
    logic ticket_ready;
    logic [NumEngines-1:0] line_valid;
    logic [NumEngines-1:0] line_ready;
    logic [NumEngines-1:0] engine_busy;  // as the counters see it
    logic [NumEngines-1:0] engine_stall;
  } core_trace_t;

  typedef struct packed {
    logic start;  // strobe
    logic descriptor;  // it starts the ring
    logic irq;
    npu_cmd_pkg::status_t status;
    logic op_valid;
    logic op_done;
    logic ring_start;
    logic ring_end;
    logic [7:0] ring_code;
    logic entry;  // of the ring is through
    logic stall;
    logic launch_valid;
    logic launch_ready;
    logic [2:0] head;
    logic [2:0] tail;
  } cmd_trace_t;

  typedef struct packed {
    logic offered;  // a word is offered and the answer stands
    npu_cop_isa_pkg::cop_decoded_t word;  // what it is
    logic running;  // the oldest instruction is committed, its operands are there
    npu_cop_isa_pkg::cop_op_e op;
    logic fault;
  } cop_trace_t;

endpackage
