// SPDX-License-Identifier: Apache-2.0
//
// Clock, reset and start of a bench of a single block, and all that Python sees of it. Python sets the
// knobs, changes `run` and sleeps until `ran` has followed: each change resets the block, starts it
// once and waits for its end, or for as many cycles as it may take.

module unit_control (
  output logic clk_o,
  output logic rst_no,

  output unit_pkg::world_t   world_o,
  output unit_pkg::program_t program_o,

  output logic start_o,  // a pulse, some cycles after the reset
  input  logic end_i     // of what was started: a level
);

  logic [31:0] knob_seed = 32'd1;
  logic [6:0] knob_read_stall = '0;
  logic [6:0] knob_write_stall = '0;
  logic [6:0] knob_stream_gap = '0;
  logic [6:0] knob_memory_stall = '0;
  logic [31:0] knob_words = '0;
  logic [31:0] knob_stream_bytes = '0;
  logic knob_cache_in_sram = 1'b0;
  logic [31:0] knob_limit = 32'd1;  // cycles
  logic knob_run = 1'b0;
  logic ran = 1'b0;
  logic late = 1'b0;  // the limit was reached
  logic [31:0] cycle = '0;  // since the reset

  localparam logic [31:0] ResetCycles = 32'd3;
  localparam logic [31:0] StartCycle = 32'd6;

  logic  clk = 1'b0;
  logic  rst_n = 1'b0;
  string run_dir;

  initial begin
    if (!$value$plusargs("run_dir=%s", run_dir)) $fatal(1, "+run_dir is missing");
    tb_pkg::tb_open(run_dir, 256 * 1024);
  end

  always #5 clk = ~clk;

  assign clk_o = clk;
  assign rst_no = rst_n;
  assign start_o = cycle == StartCycle;
  assign program_o = '{
          words: knob_words,
          stream_bytes: knob_stream_bytes,
          cache_in_sram: knob_cache_in_sram
      };
  assign world_o = '{
          seed: knob_seed,
          read_stall: knob_read_stall,
          write_stall: knob_write_stall,
          stream_gap: knob_stream_gap,
          memory_stall: knob_memory_stall
      };

  logic running, ending;

  assign running = knob_run != ran;
  assign ending  = cycle > StartCycle && (end_i || cycle >= knob_limit);

  always_ff @(posedge clk) begin
    rst_n <= running && !ending && cycle >= ResetCycles;
    cycle <= (running && !ending) ? cycle + 32'd1 : '0;
    if (running && ending) begin
      late <= !end_i;
      ran  <= knob_run;
    end
  end

endmodule
