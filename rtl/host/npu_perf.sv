// SPDX-License-Identifier: Apache-2.0
//
// Performance counters: what a program did and what its engines waited for. They count while a
// program runs and keep their values until the next start or an explicit clear. What happens is
// counted a cycle later, because it may be the last that is known of a cycle.

module npu_perf
  import npu_pkg::*;
(
  input logic clk_i,  // clock
  input logic rst_ni, // reset, active low

  input logic clear_i,  // pulse: all to 0, before run_i counts again
  input logic run_i,    // a level: a program runs; a cycle to count

  input npu_host_pkg::events_t events_i,  // what happens in this cycle

  output npu_host_pkg::counters_t counters_o  // two cycles after the events
);

  logic clear_q, run_q;
  npu_host_pkg::events_t events_q;

  always_ff @(posedge clk_i) begin
    if (!rst_ni) begin
      clear_q  <= 1'b0;
      run_q    <= 1'b0;
      events_q <= '0;
    end else begin
      clear_q  <= clear_i;
      run_q    <= run_i;
      events_q <= events_i;
    end
  end

  always_ff @(posedge clk_i) begin
    if (!rst_ni) begin
      counters_o <= '0;
    end else if (clear_q) begin
      counters_o <= '0;
    end else if (run_q) begin
      counters_o.cycles       <= counters_o.cycles + 64'd1;
      counters_o.macs         <= counters_o.macs + 64'(events_q.macs);
      counters_o.instrs       <= counters_o.instrs + 32'(events_q.instr);
      counters_o.read_beats   <= counters_o.read_beats + 32'(events_q.read_beat);
      counters_o.write_beats  <= counters_o.write_beats + 32'(events_q.write_beat);
      counters_o.stream_beats <= counters_o.stream_beats + 32'(events_q.stream_beat);
      for (int unsigned e = 0; e < NumEngines; e++) begin
        counters_o.busy[e]  <= counters_o.busy[e] + 32'(events_q.engine_busy[e]);
        counters_o.stall[e] <= counters_o.stall[e] + 32'(events_q.engine_stall[e]);
      end
    end
  end

endmodule
