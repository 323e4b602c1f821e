// SPDX-License-Identifier: Apache-2.0
//
// Transmitter of a UART: frames as npu_uart_rx takes them, one behind the other while there are bytes.

module npu_uart_tx #(
  parameter int unsigned Divisor = 32  // cycles of a bit, at least 4
) (
  input logic clk_i,  // clock
  input logic rst_ni, // reset, active low

  input  logic       valid_i,  // a byte; stays until ready_o, data stable
  output logic       ready_o,  // it is taken; does not depend on valid_i
  input  logic [7:0] data_i,   // the byte, with valid_i

  output logic tx_o  // the line, 1 while idle
);

  if (Divisor < 4) begin : gen_bad_divisor
    $fatal(1, "npu_uart_tx: Divisor = %0d, must be at least 4", Divisor);
  end

  localparam int unsigned TimeW = $clog2(Divisor);
  localparam logic [TimeW-1:0] Whole = TimeW'(Divisor - 1);
  localparam logic [3:0] Bits = 4'd10;

  logic [3:0] left_q;  // bits of the frame that are not over, 0 while idle
  logic [TimeW-1:0] time_q;  // cycles that the one on the line still takes
  logic [8:0] frame_q;  // those behind it

  assign ready_o = left_q == '0;

  always_ff @(posedge clk_i) begin
    if (!rst_ni) begin
      left_q  <= '0;
      time_q  <= '0;
      frame_q <= '1;
      tx_o    <= 1'b1;
    end else if (ready_o) begin
      if (valid_i) begin
        left_q  <= Bits;
        time_q  <= Whole;
        frame_q <= {1'b1, data_i};
        tx_o    <= 1'b0;
      end
    end else if (time_q != '0) begin
      time_q <= time_q - 1'b1;
    end else begin
      left_q  <= left_q - 1'b1;
      time_q  <= Whole;
      frame_q <= {1'b1, frame_q[8:1]};
      tx_o    <= frame_q[0];
    end
  end

endmodule
