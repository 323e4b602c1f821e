// SPDX-License-Identifier: Apache-2.0
//
// Life of a program: start, run, stop. However a program stops (END, a refused instruction, an
// error on the bus, a soft reset), the bus is drained, the core is reset, and the chip is ready for
// the next start. The first error is kept with its place.

module npu_run_ctrl
  import npu_pkg::*;
  import npu_isa_pkg::*;
(
  input logic clk_i,
  input logic rst_ni,

  input logic start_i,
  input logic soft_reset_i,

  input logic       end_i,
  input error_e     end_error_i,
  input instr_idx_t end_instr_i,
  input mem_addr_t  end_addr_i,

  input logic       bus_error_i,
  input error_e     bus_error_code_i,
  input engine_e    bus_error_engine_i,
  input instr_idx_t bus_error_instr_i,
  input mem_addr_t  bus_error_addr_i,

  output logic start_o,  // to the core
  output logic drain_o,
  input logic bus_idle_i,
  output logic core_rst_no,

  output logic       busy_o,
  output logic       done_o,
  output logic       finish_o,        // pulse
  output error_e     error_o,
  output engine_e    error_engine_o,
  output instr_idx_t error_instr_o,
  output mem_addr_t  error_addr_o
);

  typedef enum logic [1:0] {
    StIdle,
    StRun,
    StDrain,
    StReset
  } state_e;

  state_e state_q;
  logic   abandoned_q;  // by a soft reset: no completion is reported
  logic   core_rst_nq;

  assign start_o     = state_q == StIdle && start_i && !soft_reset_i;
  assign drain_o     = state_q == StDrain || state_q == StReset;
  assign busy_o      = state_q != StIdle;
  assign core_rst_no = core_rst_nq && rst_ni;
  assign finish_o    = state_q == StReset && !abandoned_q;

  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) begin
      state_q        <= StIdle;
      abandoned_q    <= 1'b0;
      core_rst_nq    <= 1'b0;
      done_o         <= 1'b0;
      error_o        <= ErrNone;
      error_engine_o <= EngLd;
      error_instr_o  <= '0;
      error_addr_o   <= '0;
    end else begin
      core_rst_nq <= 1'b1;
      unique case (state_q)
        StIdle: begin
          abandoned_q <= 1'b0;
          if (soft_reset_i) begin
            abandoned_q <= 1'b1;
            state_q     <= StDrain;
          end else if (start_i) begin
            state_q        <= StRun;
            done_o         <= 1'b0;
            error_o        <= ErrNone;
            error_engine_o <= EngLd;
            error_instr_o  <= '0;
            error_addr_o   <= '0;
          end
        end
        StRun: begin
          if (soft_reset_i) begin
            abandoned_q <= 1'b1;
            state_q     <= StDrain;
          end else if (bus_error_i) begin
            error_o        <= bus_error_code_i;
            error_engine_o <= bus_error_engine_i;
            error_instr_o  <= bus_error_instr_i;
            error_addr_o   <= bus_error_addr_i;
            state_q        <= StDrain;
          end else if (end_i) begin
            error_o        <= end_error_i;
            error_engine_o <= (end_error_i == ErrNone) ? EngLd : EngSeq;
            error_instr_o  <= end_instr_i;
            error_addr_o   <= end_addr_i;
            state_q        <= StDrain;
          end
        end
        StDrain: begin
          if (soft_reset_i) abandoned_q <= 1'b1;
          if (bus_idle_i) begin
            state_q     <= StReset;
            core_rst_nq <= 1'b0;
          end
        end
        StReset: begin
          if (!abandoned_q) done_o <= 1'b1;
          state_q <= StIdle;
        end
        default: state_q <= StIdle;
      endcase
    end
  end

endmodule
