// SPDX-License-Identifier: Apache-2.0
//
// Life of a program: start, run, stop. However a program stops (END, a refused instruction, an error
// of the memory port, an abort, a soft reset), the bus is drained, the core is reset, and the chip
// is ready for the next start. The first error is kept with its place. A memory that keeps silent
// even then cannot hide the end of the program: it is reported, and the chip stays busy until the
// memory has answered what it owes.

module npu_run_ctrl
  import npu_pkg::*;
  import npu_isa_pkg::*;
  import npu_host_pkg::*;
  import npu_seq_pkg::*;
(
  input logic clk_i,  // clock
  input logic rst_ni, // reset, active low

  input logic start_i,      // a pulse is lost while busy, a level waits for status_o.started
  input logic abort_i,      // pulse: end the program as an error; lost while none runs
  input logic soft_reset_i, // pulse: end the program unreported, drain the bus; while idle too

  // Ways to end: by the sequencer (without or with an error), by the memory port
  input progress_t progress_i,  // of the sequencer; counts in a run
  input error_t    mem_error_i, // of the memory port or the load engine; counts in a run

  output logic drain_o,      // a level from the end on: no new bursts, what comes back is dropped
  input  logic bus_idle_i,   // the bus owes no answer: a level
  input  logic bus_stuck_i,  // a wait for the memory is longer than its limit: a level
  output logic core_rst_no,  // low with rst_ni, a cycle after it, and in the last busy cycle

  output run_status_t status_o,  // how the program stands; started: in the cycle of start_i
  output logic        ending_o   // pulse: finish comes in the next cycle, or in this if stuck
);

  typedef enum logic [1:0] {
    StIdle,
    StRun,
    StDrain,
    StReset
  } state_e;

  state_e state_q;
  logic   abandoned_q;  // by a soft reset: no completion is reported
  logic   reported_q;  // before the bus was drained
  logic   stuck_q;
  logic   core_rst_nq;
  logic   done_q;
  error_t error_q;
  logic give_up, finish;
  error_t error;

  assign drain_o = state_q == StDrain || state_q == StReset;
  assign core_rst_no = core_rst_nq && rst_ni;
  assign give_up = state_q == StDrain && stuck_q && !bus_idle_i && !abandoned_q;
  assign finish = !reported_q && ((state_q == StReset && !abandoned_q) || give_up);
  assign ending_o = state_q == StDrain && (bus_idle_i || stuck_q) && !reported_q && !abandoned_q;

  assign status_o = '{
          started: state_q == StIdle && start_i && !soft_reset_i,
          busy: state_q != StIdle,
          done: done_q,
          finish: finish,
          failed: state_q == StRun && !soft_reset_i && error.valid,
          error: error_q
      };

  // What is wrong on the bus comes first: it may be the reason of the rest.
  always_comb begin
    if (mem_error_i.valid) begin
      error = mem_error_i;
    end else if (progress_i.ended) begin
      error = progress_i.error;
    end else begin
      error = '{
          valid: abort_i,
          code: ErrAborted,
          engine: EngSeq,
          instr: progress_i.last_instr,
          addr: '0
      };
    end
  end

  always_ff @(posedge clk_i) begin
    if (!rst_ni) begin
      state_q     <= StIdle;
      abandoned_q <= 1'b0;
      reported_q  <= 1'b0;
      stuck_q     <= 1'b0;
      core_rst_nq <= 1'b0;
      done_q      <= 1'b0;
      error_q     <= '0;
    end else begin
      core_rst_nq <= 1'b1;
      stuck_q     <= bus_stuck_i;
      if (finish) done_q <= 1'b1;
      unique case (state_q)
        StIdle: begin
          abandoned_q <= soft_reset_i;
          reported_q  <= 1'b0;
          if (soft_reset_i) begin
            state_q <= StDrain;
          end else if (start_i) begin
            state_q <= StRun;
            done_q  <= 1'b0;
            error_q <= '0;
          end
        end
        StRun: begin
          if (soft_reset_i) begin
            abandoned_q <= 1'b1;
            state_q     <= StDrain;
          end else if (error.valid || progress_i.ended) begin
            if (error.valid) error_q <= error;
            state_q <= StDrain;
          end
        end
        StDrain: begin
          if (soft_reset_i) abandoned_q <= 1'b1;
          if (finish) reported_q <= 1'b1;
          if (bus_idle_i) begin
            state_q     <= StReset;
            core_rst_nq <= 1'b0;
          end
        end
        StReset: state_q <= StIdle;
        default: state_q <= StIdle;
      endcase
    end
  end

endmodule
