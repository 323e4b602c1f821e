// SPDX-License-Identifier: Apache-2.0
//
// What tb_top and unit_cop have in common, included in their bodies, so that Python finds the same
// signals in both: clock, knobs, register port, and coprocessor port with its counters. The including
// module drives the rest of `axi_rsp`, `axil_rsp` and `x_chip`.

// -------------------------------------------------------------------------------------------------
// Clock, reset and time
// -------------------------------------------------------------------------------------------------
logic clk = 1'b0;
logic rst_n = 1'b0;
logic irq;
logic [63:0] cycle = '0;

always #5 clk = ~clk;

always_ff @(posedge clk) cycle <= cycle + 64'd1;

// -------------------------------------------------------------------------------------------------
// Knobs, set by Python
// -------------------------------------------------------------------------------------------------
logic [1:0] knob_memory = '0;
logic [15:0] knob_read_latency = 16'd40;
logic [15:0] knob_write_latency = 16'd40;
logic [15:0] knob_read_spread = '0;
logic [15:0] knob_write_spread = '0;
logic [6:0] knob_read_gap = '0;
logic [6:0] knob_write_gap = '0;
logic [6:0] knob_ar_stall = '0;
logic [6:0] knob_aw_stall = '0;
logic [6:0] knob_w_stall = '0;
logic [6:0] knob_host_stall = '0;
logic knob_interleave = 1'b0;
logic knob_read_silent = 1'b0;
logic knob_write_silent = 1'b0;
logic knob_read_error = 1'b0;
logic knob_write_error = 1'b0;
logic [31:0] knob_error_first = '0;
logic [31:0] knob_error_last = '0;
logic [31:0] knob_silent_first = '0;
logic [31:0] knob_silent_last = '1;
logic [31:0] knob_seed = 32'd1;

memory_knobs_t read_knobs;
memory_knobs_t write_knobs;

assign read_knobs = '{
        memory: memory_e'(knob_memory),
        latency: knob_read_latency,
        spread: knob_read_spread,
        gap_percent: knob_read_gap,
        address_stall_percent: knob_ar_stall,
        data_stall_percent: '0,
        interleave: knob_interleave,
        silent: knob_read_silent,
        silent_first: knob_silent_first,
        silent_last: knob_silent_last,
        error_enable: knob_read_error,
        error_first: knob_error_first,
        error_last: knob_error_last,
        seed: knob_seed
    };
assign write_knobs = '{
        memory: memory_e'(knob_memory),
        latency: knob_write_latency,
        spread: knob_write_spread,
        gap_percent: knob_write_gap,
        address_stall_percent: knob_aw_stall,
        data_stall_percent: knob_w_stall,
        interleave: 1'b0,
        silent: knob_write_silent,
        silent_first: knob_silent_first,
        silent_last: knob_silent_last,
        error_enable: knob_write_error,
        error_first: knob_error_first,
        error_last: knob_error_last,
        seed: knob_seed
    };

// -------------------------------------------------------------------------------------------------
// Register port: Python leaves a list of accesses and has it played
// -------------------------------------------------------------------------------------------------
logic access_play = 1'b0;
logic [15:0] access_count = '0;
logic access_played;
logic [15:0] access_index;

npu_axi_pkg::axil_req_t axil_req;
npu_axi_pkg::axil_rsp_t axil_rsp;

register_player u_register_player (
  .clk_i          (clk),
  .rst_ni         (rst_n),
  .stall_percent_i(knob_host_stall),
  .seed_i         (knob_seed),
  .play_i         (access_play),
  .count_i        (access_count),
  .played_o       (access_played),
  .index_o        (access_index),
  .req_o          (axil_req),
  .rsp_i          (axil_rsp)
);

// -------------------------------------------------------------------------------------------------
// Coprocessor port: Python leaves a list of instructions and has it played
// -------------------------------------------------------------------------------------------------
logic cop_play = 1'b0;
logic [15:0] cop_count = '0;
logic cop_played;
logic [15:0] cop_index;

x_host_t x_host;
x_commit_t x_commit;
x_chip_t x_chip;
logic x_issue_ready;  // of x_chip

assign x_chip.issue_ready = x_issue_ready;

cop_agent #(
  .IdWidth(CopIdWidth),
  .HartIdWidth(CopHartIdWidth),
  .Split(CopIssueRegisterSplit)
) u_cop_agent (
  .clk_i        (clk),
  .rst_ni       (rst_n),
  .cycle_i      (cycle[31:0]),
  .play_i       (cop_play),
  .count_i      (cop_count),
  .played_o     (cop_played),
  .index_o      (cop_index),
  .host_o       (x_host),
  .commit_o     (x_commit),
  .chip_i       (x_chip),
  .issue_ready_i(x_issue_ready)
);

// -------------------------------------------------------------------------------------------------
// The memory port, and what the coprocessor's counters are held against
// -------------------------------------------------------------------------------------------------
npu_axi_pkg::axi_req_t axi_req;
npu_axi_pkg::axi_rsp_t axi_rsp;

logic [31:0] cop_instrs;
logic [31:0] cop_cycles;
logic [31:0] cop_reads;
logic [31:0] cop_writes;
logic [ 7:0] cop_open;
logic [ 7:0] cop_owed;

cop_monitor #(
  .IdWidth(CopIdWidth),
  .Split  (CopIssueRegisterSplit)
) u_cop_monitor (
  .clk_i   (clk),
  .rst_ni  (rst_n),
  .host_i  (x_host),
  .commit_i(x_commit),
  .chip_i  (x_chip),
  .idle_i  (cop_play == cop_played),
  .silent_i(knob_read_silent || knob_write_silent),
  .req_i   (axi_req),
  .rsp_i   (axi_rsp),
  .instrs_o(cop_instrs),
  .cycles_o(cop_cycles),
  .reads_o (cop_reads),
  .writes_o(cop_writes),
  .open_o  (cop_open),
  .owed_o  (cop_owed)
);
