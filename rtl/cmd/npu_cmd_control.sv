// SPDX-License-Identifier: Apache-2.0
//
// Start, status and interrupt: decides what a start begins, and keeps how the last operation or
// run of the ring has ended. An end in the cycle of a clear comes after it.

module npu_cmd_control
  import npu_cmd_pkg::*;
(
  input logic clk_i,
  input logic rst_ni,

  // Strobes of the registers
  input logic start_i,
  input logic clear_i,
  input logic descriptor_i,  // a start runs the ring
  input logic soft_reset_i,

  // Operation by register
  output logic op_start_o,
  input  logic op_done_i,
  input  end_e op_end_i,

  // Ring
  output logic       ring_start_o,
  input  logic       ring_busy_i,
  input  logic       ring_end_i,
  input  logic       ring_entry_i,
  input  logic [7:0] ring_code_i,
  input  logic [2:0] ring_index_i,

  output logic       started_o,  // a start is accepted
  output logic       busy_o,
  output logic       done_o,
  output logic       error_o,
  output logic [7:0] code_o,     // DESC_STATUS
  output logic [2:0] index_o,

  // Events to count
  output logic failed_o,
  output logic unsupported_o
);

  logic op_busy_q, op_end, op_failed, ring_failed;

  assign busy_o        = op_busy_q || ring_busy_i;
  assign started_o     = start_i && !busy_o;
  assign op_start_o    = started_o && !descriptor_i;
  assign ring_start_o  = started_o && descriptor_i;

  assign op_end        = op_busy_q && op_done_i;
  assign op_failed     = op_end && op_end_i != EndOkay;
  assign ring_failed   = ring_end_i && ring_code_i != CodeDone;
  assign failed_o      = op_failed || ring_failed;
  assign unsupported_o = (op_failed && op_end_i == EndRefused) || ring_failed;

  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) begin
      op_busy_q <= 1'b0;
      done_o    <= 1'b0;
      error_o   <= 1'b0;
      code_o    <= CodeEmpty;
      index_o   <= '0;
    end else begin
      if (soft_reset_i) op_busy_q <= 1'b0;
      else if (op_start_o) op_busy_q <= 1'b1;
      else if (op_end) op_busy_q <= 1'b0;

      if (op_end || ring_end_i) begin
        done_o  <= 1'b1;
        error_o <= failed_o;
      end else if (clear_i || started_o) begin
        done_o  <= 1'b0;
        error_o <= 1'b0;
      end

      if (ring_end_i) code_o <= ring_code_i;
      else if (clear_i || ring_start_o) code_o <= '0;

      if (ring_end_i || ring_entry_i) index_o <= ring_index_i;
      else if (clear_i || ring_start_o) index_o <= '0;
    end
  end

`ifndef SYNTHESIS
  assert property (@(posedge clk_i) disable iff (!rst_ni) !(op_busy_q && ring_busy_i))
  else $error("npu_cmd_control: an operation by register while the ring runs");
  assert property (@(posedge clk_i) disable iff (!rst_ni)
                   (ring_end_i || ring_entry_i) |-> ring_busy_i)
  else $error("npu_cmd_control: an idle ring reports");
`endif

endmodule
