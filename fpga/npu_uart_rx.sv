// SPDX-License-Identifier: Apache-2.0
//
// Receiver of a UART: frames of a start bit, eight data bits with the lowest first and a stop bit. A
// bit is looked at in its middle; a frame without its stop bit is dropped.

module npu_uart_rx #(
  parameter int unsigned Divisor = 32  // cycles of a bit, at least 4
) (
  input logic clk_i,  // clock
  input logic rst_ni, // reset, active low

  input logic rx_i,  // the line, asynchronous; 1 while idle

  output logic       valid_o,  // a byte; stays until ready_i or the next byte
  input  logic       ready_i,  // takes it; may depend on valid_o
  output logic [7:0] data_o    // the byte, with valid_o
);

  if (Divisor < 4) begin : gen_bad_divisor
    $fatal(1, "npu_uart_rx: Divisor = %0d, must be at least 4", Divisor);
  end

  localparam int unsigned TimeW = $clog2(Divisor);
  localparam logic [TimeW-1:0] Half = TimeW'(Divisor / 2 - 1);
  localparam logic [TimeW-1:0] Whole = TimeW'(Divisor - 1);
  localparam logic [3:0] Bits = 4'd10;

  logic [1:0] sync_q;  // the second one is the line of this clock
  logic [3:0] left_q;  // bits of the frame that are still to come, 0 while idle
  logic [TimeW-1:0] time_q;  // cycles to the middle of the next one
  logic [7:0] frame_q;
  logic line, sample, first, last;

  assign line   = sync_q[1];
  assign sample = left_q != '0 && time_q == '0;
  assign first  = sample && left_q == Bits;
  assign last   = sample && left_q == 4'd1;

  always_ff @(posedge clk_i) begin
    if (!rst_ni) begin
      sync_q  <= '1;
      left_q  <= '0;
      time_q  <= '0;
      frame_q <= '0;
      valid_o <= 1'b0;
      data_o  <= '0;
    end else begin
      sync_q <= {sync_q[0], rx_i};
      if (left_q == '0) begin
        if (!line) begin
          left_q <= Bits;
          time_q <= Half;
        end
      end else begin
        time_q <= sample ? Whole : time_q - 1'b1;
        if (sample) begin
          frame_q <= {line, frame_q[7:1]};
          // A start bit that is over by its middle was none.
          left_q  <= (first && line) ? '0 : left_q - 1'b1;
        end
      end
      if (valid_o && ready_i) valid_o <= 1'b0;
      if (last && line) begin
        valid_o <= 1'b1;
        data_o  <= frame_q;
      end
    end
  end

`ifndef SYNTHESIS
  // The taker has the time of a frame.
  NoneLost_A :
  assert property (@(posedge clk_i) disable iff (!rst_ni) last && line |-> !valid_o || ready_i)
  else $error("npu_uart_rx: a byte is lost");
`endif

endmodule
