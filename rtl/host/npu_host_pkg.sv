// SPDX-License-Identifier: Apache-2.0
//
// What passes between the host's port, the register windows and the core: accesses, what is set for
// a program, how it goes, and the events that the performance counters count.

package npu_host_pkg;
  import npu_pkg::*;

  // One access to a register window: `valid` is a pulse, answered in the same cycle or later; until
  // then nothing else changes.
  typedef struct packed {
    logic        valid;  // pulse
    logic        write;  // with valid; 0: read
    logic [7:0]  addr;   // bytes from the start of the window, a multiple of 4
    logic [31:0] wdata;  // value to write
    logic [31:0] wmask;  // bits that the host writes
  } window_req_t;

  // The answer of a window, once per access; a write has its effect on the interrupt by then
  typedef struct packed {
    logic        ack;    // pulse
    logic [31:0] rdata;  // value read, valid with ack
  } window_rsp_t;

  // Pulses that the host gives
  typedef struct packed {
    logic start;          // start the program of the start registers; lost while busy
    logic abort_program;  // end it as an error; lost while none runs
    logic soft_reset;     // end whatever runs without a report
  } control_t;

  // How a program goes
  typedef struct packed {
    logic   started;  // pulse: a program starts
    logic   busy;     // a level: from the next cycle on until the chip can start again
    logic   done;     // a level: from the cycle after finish to the next start
    logic   finish;   // pulse: the program has ended; not after a soft reset
    logic   failed;   // pulse: error holds an error from the next cycle on
    error_t error;    // the first error of the program, a level until the next start
  } run_status_t;

  // A program that the command port has the core run
  typedef struct packed {
    logic                        valid;  // stays until ready or a soft reset, data stable
    npu_desc_pkg::desc_program_t start;  // program and first registers, with valid
  } launch_req_t;

  // What the core says of it
  typedef struct packed {
    logic        ready;   // it starts; only with the request's valid
    logic        ended;   // pulse: the program that was launched ends, before it can start again
    error_t      error;   // its error, with ended; not valid: none
    logic [31:0] outcnt;  // OUTCNT at its end, with ended
  } launch_rsp_t;

  // What happens in this cycle, for the performance counters
  typedef struct packed {
    logic [11:0]           macs;          // multiply-accumulates of GEMM
    logic                  instr;         // an instruction is dispatched
    logic                  read_beat;     // on the memory bus, for a program
    logic                  write_beat;    // the same, a write
    logic                  stream_beat;   // a read beat of the parameter stream
    logic [NumEngines-1:0] engine_busy;   // has an unfinished operation
    logic [NumEngines-1:0] engine_stall;  // is busy, and SRAM or stream holds it up
  } events_t;

endpackage
