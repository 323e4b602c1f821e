// SPDX-License-Identifier: Apache-2.0
//
// Start, status and interrupt: decides what a start begins, and keeps how the last operation or
// run of the ring has ended. An end in the cycle of a clear comes after it.

module npu_cmd_control
  import npu_cmd_pkg::*;
  import npu_desc_pkg::*;
(
  input logic clk_i,  // clock
  input logic rst_ni, // reset, active low

  // Strobes of the registers
  input logic start_i,       // pulse; lost while busy_o
  input logic clear_i,       // pulse: forget how the last one ended; comes before start_i
  input logic descriptor_i,  // a level: a start runs the ring
  input logic soft_reset_i,  // pulse: the operation by register is forgotten

  // Operation by register
  output logic         op_start_o,  // pulse, in the cycle of start_i
  input  unit_status_t unit_i,      // of the unit; ends of the ring's operations do not count

  // Ring
  output logic         ring_start_o,  // pulse, in the cycle of start_i
  input  ring_status_t ring_i,        // of its run

  output logic       started_o,  // pulse: a start is accepted, in its cycle
  output logic       busy_o,     // a level, from the next cycle on: operation or ring runs
  output logic       done_o,     // a level, from the end to the next start or clear
  output logic       error_o,    // a level with done_o: it was an error
  output logic [7:0] code_o,     // DESC_STATUS[7:0]: a level
  output logic [2:0] index_o,    // entry that completed last or failed: a level

  // Events to count
  output logic failed_o,      // pulse: an operation or a run has ended with an error
  output logic unsupported_o  // pulse, with failed_o: a refused operation or a failed run
);

  logic op_busy_q, op_end, op_failed, ring_failed;

  assign busy_o       = op_busy_q || ring_i.busy;
  assign started_o    = start_i && !busy_o;
  assign op_start_o   = started_o && !descriptor_i;
  assign ring_start_o = started_o && descriptor_i;

  assign op_end       = op_busy_q && unit_i.done;
  assign op_failed    = op_end && unit_i.how != EndOkay;
  assign ring_failed  = ring_i.ended && ring_i.failed;

  always_ff @(posedge clk_i) begin
    if (!rst_ni) begin
      op_busy_q     <= 1'b0;
      done_o        <= 1'b0;
      error_o       <= 1'b0;
      code_o        <= CodeEmpty;
      index_o       <= '0;
      failed_o      <= 1'b0;
      unsupported_o <= 1'b0;
    end else begin
      failed_o      <= op_failed || ring_failed;
      unsupported_o <= (op_failed && unit_i.how == EndRefused) || ring_failed;

      if (soft_reset_i) op_busy_q <= 1'b0;
      else if (op_start_o) op_busy_q <= 1'b1;
      else if (op_end) op_busy_q <= 1'b0;

      if (op_end || ring_i.ended) begin
        done_o  <= 1'b1;
        error_o <= op_failed || ring_failed;
      end else if (clear_i || started_o) begin
        done_o  <= 1'b0;
        error_o <= 1'b0;
      end

      if (ring_i.ended) code_o <= ring_i.code;
      else if (clear_i || ring_start_o) code_o <= '0;

      if (ring_i.ended || ring_i.entry) index_o <= ring_i.index;
      else if (clear_i || ring_start_o) index_o <= '0;
    end
  end

`ifndef SYNTHESIS
  OneAtATime_A :
  assert property (@(posedge clk_i) disable iff (!rst_ni) !(op_busy_q && ring_i.busy))
  else $error("npu_cmd_control: an operation by register while the ring runs");
  ReportWhileBusy_A :
  assert property (@(posedge clk_i) disable iff (!rst_ni)
                   (ring_i.ended || ring_i.entry) |-> ring_i.busy)
  else $error("npu_cmd_control: an idle ring reports");
`endif

endmodule
