// SPDX-License-Identifier: Apache-2.0
//
// Plays what Python has prepared for each cycle of a run, and writes down what is there in the same
// cycle, just before the clock edge. Rows of `Words` words of 16 bytes lie in memory, the first cycle
// first; nothing is driven before and after them.

module unit_player #(
  parameter int unsigned Words = 1
) (
  input logic clk_i,
  input logic rst_ni,

  input  logic        start_i,
  input  logic [31:0] cycles_i,  // at least one
  output logic        end_o,     // all cycles have been played

  output logic [Words-1:0][127:0] drive_o,
  input  logic [Words-1:0][127:0] observe_i
);

  logic playing;
  logic [31:0] cycle, next;

  assign next = playing ? cycle + 32'd1 : '0;

  always @(posedge clk_i) begin
    if (!rst_ni) begin
      playing <= 1'b0;
      end_o   <= 1'b0;
      cycle   <= '0;
      drive_o <= '0;
    end else begin
      for (int unsigned w = 0; w < Words && playing; w++) begin
        tb_pkg::tb_memory_now(unit_pkg::ObservedAt + 16 * (Words * cycle + w), observe_i[w]);
      end
      cycle   <= next;
      playing <= start_i || (playing && next != cycles_i);
      drive_o <= '0;
      if (playing && next == cycles_i) begin
        end_o <= 1'b1;
      end else if (start_i || playing) begin
        for (int unsigned w = 0; w < Words; w++) begin
          automatic bit [127:0] data;
          tb_pkg::tb_memory_read(unit_pkg::ProgramAt + 16 * (Words * next + w), data);
          drive_o[w] <= data;
        end
      end
    end
  end

endmodule
