// SPDX-License-Identifier: Apache-2.0
//
// The latency of the memory, as the port sees it: cycles from the acceptance of a read burst to its
// first word. Only a burst that has the bus for itself tells it, because behind others it would
// wait for them too; the first burst of every program is one. The last figure stays until the next
// one.

module npu_mem_latency #(
  parameter int unsigned Width = 9  // bits of the figure; longer latencies count as all ones
) (
  input logic clk_i,  // clock
  input logic rst_ni, // reset, active low

  input logic accepted_i,  // pulse: the memory accepts a read burst
  input logic alone_i,     // with accepted_i: no other burst is under way
  input logic word_i,      // pulse: a word comes from the memory

  output logic [Width-1:0] latency_o  // cycles; 0 before the first answer
);

  logic waiting_q;
  logic [Width-1:0] count_q;

  always_ff @(posedge clk_i) begin
    if (!rst_ni) begin
      waiting_q <= 1'b0;
      count_q   <= '0;
      latency_o <= '0;
    end else begin
      if (accepted_i && alone_i) begin
        waiting_q <= 1'b1;
        count_q   <= Width'(1);
      end else if (count_q != '1) begin
        count_q <= count_q + 1'b1;
      end
      if (waiting_q && word_i) begin
        waiting_q <= 1'b0;
        latency_o <= count_q;
      end
    end
  end

endmodule
