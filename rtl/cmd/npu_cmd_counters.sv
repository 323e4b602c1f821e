// SPDX-License-Identifier: Apache-2.0
//
// Counters of the command port, 32 bits each; they wrap around. What happens in the cycle of a
// clear counts after it.

module npu_cmd_counters
  import npu_cmd_pkg::*;
(
  input logic clk_i,  // clock
  input logic rst_ni, // reset, active low

  input logic clear_perf_i,  // pulse: counters PERF_* to 0
  input logic clear_ring_i,  // pulse: counters DESC_* to 0

  input events_t events_i,    // what happens in this cycle
  input logic    thermal_i,   // pulse: the host reports an event
  input logic    busy_i,      // operation or ring runs: a cycle to count
  input logic    ring_busy_i, // the ring runs: a cycle to count

  output counters_t counters_o  // one cycle after the events
);

  counters_t kept, next;

  always_comb begin
    kept = counters_o;
    if (clear_perf_i) begin
      kept.cycles        = '0;
      kept.macs          = '0;
      kept.ops           = '0;
      kept.errors        = '0;
      kept.unsupported   = '0;
      kept.stalls        = '0;
      kept.scratch_bytes = '0;
      kept.thermal       = '0;
    end
    if (clear_ring_i) begin
      kept.ring_cycles = '0;
      kept.read_words  = '0;
      kept.write_words = '0;
    end

    next.cycles        = kept.cycles + 32'(busy_i);
    next.macs          = kept.macs + 32'(events_i.unit.macs);
    next.ops           = kept.ops + 32'(events_i.unit.begun) + 32'(events_i.ring.launched);
    next.errors        = kept.errors + 32'(events_i.failed);
    next.unsupported   = kept.unsupported + 32'(events_i.unsupported);
    next.stalls        = kept.stalls + 32'(events_i.ring.stall);
    next.scratch_bytes = kept.scratch_bytes + 32'(events_i.unit.bytes | 24'(events_i.ring.bytes));
    next.thermal       = kept.thermal + 32'(thermal_i);
    next.ring_cycles   = kept.ring_cycles + 32'(ring_busy_i);
    next.read_words    = kept.read_words + 32'(events_i.ring.read_words);
    next.write_words   = kept.write_words + 32'(events_i.ring.write_words);
  end

  always_ff @(posedge clk_i) begin
    if (!rst_ni) counters_o <= '0;
    else counters_o <= next;
  end

`ifndef SYNTHESIS
  OneMover_A :
  assert property (@(posedge clk_i) disable iff (!rst_ni)
                   events_i.unit.bytes == '0 || events_i.ring.bytes == '0)
  else $error("npu_cmd_counters: unit and ring move bytes at once");
`endif

endmodule
