// SPDX-License-Identifier: Apache-2.0
//
// Copies bytes of the scratchpad and replaces negative ones by zero, eight per cycle. Where the
// destination begins a few bytes behind the source, a cycle takes no more than that many, so that
// it sees what the one before has written.

module npu_cmd_vrelu
  import npu_cmd_pkg::*;
#(
  parameter int unsigned ScratchBytes = 64,  // bytes of the scratchpad: 64, 128 or 256
  localparam int unsigned ByteW = $clog2(ScratchBytes)  // width of a byte address
) (
  input logic clk_i,  // clock
  input logic rst_ni, // reset, active low

  input  logic   start_i,  // pulse: the first bytes are copied in the next cycle
  input  logic   stop_i,   // pulse: forget what is running
  input  shape_t shape_i,  // legal; stays until the end
  output logic   done_o,   // pulse, in the cycle of the last bytes

  output logic           [ByteW-1:0] window_addr_o,  // first of eight bytes
  input  logic           [     63:0] window_i,       // eight bytes, first lowest, same cycle
  output scratch_write_t             write_o         // up to eight bytes; never refused
);

  localparam int unsigned Lanes = 8;

  logic busy_q, last_q;
  logic [3:0] step_q, step, count;
  logic [8:0] left_q, ahead;
  logic [ByteW-1:0] source_q, target_q;

  assign ahead = {1'b0, shape_i.b} - {1'b0, shape_i.a};
  assign step  = (ahead != '0 && ahead < 9'(Lanes)) ? ahead[3:0] : 4'(Lanes);
  assign count = last_q ? left_q[3:0] : step_q;

  always_ff @(posedge clk_i) begin
    if (!rst_ni) begin
      busy_q   <= 1'b0;
      last_q   <= 1'b0;
      step_q   <= '0;
      left_q   <= '0;
      source_q <= '0;
      target_q <= '0;
    end else if (stop_i) begin
      busy_q <= 1'b0;
    end else if (start_i) begin
      busy_q   <= 1'b1;
      last_q   <= shape_i.len <= 9'(step);
      step_q   <= step;
      left_q   <= shape_i.len;
      source_q <= ByteW'(shape_i.a);
      target_q <= ByteW'(shape_i.b);
    end else if (busy_q) begin
      busy_q   <= !last_q;
      last_q   <= left_q <= 9'({step_q, 1'b0});
      left_q   <= left_q - 9'(count);
      source_q <= source_q + ByteW'(count);
      target_q <= target_q + ByteW'(count);
    end
  end

  logic [  Lanes-1:0] we;
  logic [8*Lanes-1:0] data;
  always_comb begin
    for (int unsigned l = 0; l < Lanes; l++) begin
      we[l]        = busy_q && 4'(l) < count;
      data[8*l+:8] = window_i[8*l+7] ? 8'd0 : window_i[8*l+:8];
    end
  end

  assign window_addr_o = source_q;
  assign write_o       = '{we: {8'b0, we}, addr: 8'(target_q), data: {64'b0, data}};
  assign done_o        = busy_q && last_q;

endmodule
