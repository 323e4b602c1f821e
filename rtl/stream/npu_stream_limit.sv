// SPDX-License-Identifier: Apache-2.0
//
// How many bursts the parameter stream may have under way: enough that the memory never waits for an
// address, and no more, because a load has to wait behind them. The latency of the memory says how
// many that is. Should the bus run dry all the same while the stream is held back, the memory has
// become slower: then the limit grows burst by burst, until a load is unfinished again. A setting of
// the host replaces all that.

module npu_stream_limit
  import npu_mem_pkg::*;
#(
  parameter int unsigned LatencyW = 9,  // bits of latency_i, 7 to 9
  parameter logic [4:0] Most = 5'd16  // bursts, as many as the bus takes: 3 to 17
) (
  input logic clk_i,  // clock
  input logic rst_ni, // reset, active low

  input logic [         4:0] setting_i,  // of the host, in bursts; 0 = none
  input logic [LatencyW-1:0] latency_i,  // cycles from a burst's acceptance to its first word

  // All of this cycle
  input logic wants_i,  // the stream has room for another burst
  input logic held_i,   // and waits for the limit only: never without wants_i
  input logic mine_i,   // a word of the stream arrives
  input logic word_i,   // any word arrives, one of the stream included
  input logic load_i,   // a load is unfinished

  output logic [4:0] limit_o  // bursts of MaxBurst words, of what was said a cycle before
);

  localparam logic [4:0] Fewest = 5'd3;

  // When a burst has arrived, the next one is asked for, at once or behind other clients, and the
  // other N - 1 must last until it comes: N = 1 + (latency + Slack) / MaxBurst, rounded up.
  localparam int unsigned Slack = 8;
  localparam int unsigned BurstW = $clog2(MaxBurst);
  localparam logic [LatencyW:0] RoundUp = (LatencyW + 1)'(2 * MaxBurst - 1 + Slack);
  logic [4:0] needed, steady, grown;
  assign needed = 5'(({1'b0, latency_i} + RoundUp) >> BurstW);
  assign steady = (needed < Fewest) ? Fewest : (needed > Most) ? Most : needed;

  // The bus has run dry: words came to a stream that was held back, and now none comes. The silence
  // after a pause of the stream itself is no sign of anything.
  logic flowing_q, dry;
  logic [3:0] extra_q;
  assign dry   = flowing_q && held_i && !word_i;
  assign grown = (steady + {1'b0, extra_q} > Most) ? Most : steady + {1'b0, extra_q};

  always_ff @(posedge clk_i) begin
    if (!rst_ni) begin
      flowing_q <= 1'b0;
      extra_q   <= '0;
      limit_o   <= Fewest;
    end else begin
      limit_o <= (setting_i != '0) ? setting_i : grown;
      if (!wants_i || dry) flowing_q <= 1'b0;
      else if (mine_i && held_i) flowing_q <= 1'b1;
      if (load_i) extra_q <= '0;
      else if (dry && grown < Most) extra_q <= extra_q + 1'b1;
    end
  end

endmodule
