// SPDX-License-Identifier: Apache-2.0
//
// Performance counters: what a program did and what its engines waited for. They count while a
// program runs and keep their values until the next start or an explicit clear. What happens is
// counted a cycle later, because it may be the last that is known of a cycle. All but the two long
// ones lie in a memory: what has happened since is counted in a few bits for each, and every cycle
// one of them is brought up to date, in turn, or the one that is read.

module npu_perf
  import npu_pkg::*;
  import npu_host_pkg::*;
  import npu_counters_pkg::*;
(
  input logic clk_i,  // clock
  input logic rst_ni, // reset, active low

  input logic clear_i,  // pulse: all to 0, before run_i counts again
  input logic run_i,    // a level: a program runs; a cycle to count

  input events_t events_i,  // what happens in this cycle

  // Values two cycles after the events
  output logic [63:0] cycles_o,  // busy cycles
  output logic [63:0] macs_o,    // multiply-accumulates of GEMM
  input  logic        read_i,    // a counter is read; in half of the cycles at most
  input  logic [ 3:0] number_i,  // which, with read_i
  output logic [31:0] value_o    // that one, with read_i
);

  localparam int unsigned Counters = 16;
  localparam int unsigned RecentW = 5;  // it has its turn after 31 cycles at the latest

  logic clear_q, run_q;
  events_t events_q;

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
      cycles_o <= '0;
      macs_o   <= '0;
    end else if (clear_q) begin
      cycles_o <= '0;
      macs_o   <= '0;
    end else if (run_q) begin
      cycles_o <= cycles_o + 64'd1;
      macs_o   <= macs_o + 64'(events_q.macs);
    end
  end

  logic [Counters-1:0] happens;
  always_comb begin
    happens[CounterInstrs]            = events_q.instr;
    happens[CounterReadBeats]         = events_q.read_beat;
    happens[CounterWriteBeats]        = events_q.write_beat;
    happens[CounterStreamBeats]       = events_q.stream_beat;
    happens[CounterBusy+:NumEngines]  = events_q.engine_busy;
    happens[CounterStall+:NumEngines] = events_q.engine_stall;
  end

  logic [31:0] mem_q[Counters];
  logic [Counters-1:0] kept_q;  // since they were cleared
  logic [Counters-1:0][RecentW-1:0] recent_q;
  logic [3:0] turn_q, at;
  assign at      = read_i ? number_i : turn_q;
  assign value_o = (kept_q[at] ? mem_q[at] : '0) + 32'(recent_q[at]);

  always_ff @(posedge clk_i) begin
    if (recent_q[at] != '0) mem_q[at] <= value_o;
  end

  always_ff @(posedge clk_i) begin
    if (!rst_ni) begin
      turn_q   <= '0;
      kept_q   <= '0;
      recent_q <= '0;
    end else begin
      if (!read_i) turn_q <= turn_q + 1'b1;
      if (clear_q) begin
        kept_q   <= '0;
        recent_q <= '0;
      end else begin
        if (recent_q[at] != '0) kept_q[at] <= 1'b1;
        for (int unsigned c = 0; c < Counters; c++) begin
          recent_q[c] <= ((4'(c) == at) ? '0 : recent_q[c]) + RecentW'(run_q && happens[c]);
        end
      end
    end
  end

`ifndef SYNTHESIS
  for (genvar c = 0; c < int'(Counters); c++) begin : gen_count
    InTime_A :
    assert property (@(posedge clk_i) disable iff (!rst_ni) recent_q[c] == '1 |-> at == 4'(c))
    else $error("npu_perf: a counter is not brought up to date in time");
  end
`endif

endmodule
