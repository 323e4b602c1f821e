// SPDX-License-Identifier: Apache-2.0
//
// Which program runs and how it fares: the host or the command port starts one, the host first; the
// program and its first registers go to the sequencer; the end of a program that the command port
// has launched is reported to it. npu_run_ctrl does the rest.

module npu_program
  import npu_pkg::*;
  import npu_mem_pkg::*;
  import npu_start_pkg::*;
  import npu_isa_pkg::*;
  import npu_host_pkg::*;
  import npu_seq_pkg::*;
(
  input logic clk_i,  // clock
  input logic rst_ni, // reset, active low

  // Host
  // Pulses: start is lost while busy or with soft_reset; abort while no program runs
  input control_t     control_i,
  input start_state_t start_state_i,  // valid with control_i.start; launches use the rest of it
  input start_value_t start_value_i,  // behind every start; launches use the rest of them

  // Command port
  // Program and first registers, these until the last start value; the host's are the rest
  input  launch_req_t launch_i,
  output logic        launch_ready_o,  // it starts; only with launch_i.valid
  output logic        launch_end_o,    // pulse: the program that it launched ends

  // To the sequencer
  output start_state_t start_state_o,  // the program, with status_o.started
  output start_value_t start_value_o,  // behind it: first registers

  // Ways to end
  input progress_t progress_i,  // of the sequencer: END or a refused instruction, or the last one
  input error_t engine_error_i,  // of the load engine: a level until core_rst_no

  output logic        drain_o,     // a level from the end on: no new bursts, answers are dropped
  input  bus_status_t bus_i,       // how the memory port fares; its faults count in a run
  output logic        core_rst_no, // low with rst_ni, a cycle after it, and in the last busy cycle

  output run_status_t status_o  // how the program stands; the fields say when they hold
);

  logic launched_q;  // the program in hand is the command port's
  mem_addr_t ucode_base_q;
  error_t mem_error;

  assign launch_ready_o = status_o.started && !control_i.start;

  always_comb begin
    start_state_o = start_state_i;
    if (!control_i.start) begin
      start_state_o.image.ucode_base = launch_i.start.ucode_base;
      start_state_o.image.ucode_len  = launch_i.start.ucode_len;
    end
  end

  always_comb begin
    start_value_o = start_value_i;
    if (launched_q) begin
      unique case (16'(start_value_i.number))
        SetPos:   start_value_o.value = launch_i.start.pos;
        SetToken: start_value_o.value = launch_i.start.token;
        SetBase0: start_value_o.value = launch_i.start.base0;
        SetBase1: start_value_o.value = launch_i.start.base1;
        default:  ;
      endcase
    end
  end

  always_ff @(posedge clk_i) begin
    if (!rst_ni) begin
      launched_q   <= 1'b0;
      ucode_base_q <= '0;
    end else if (status_o.started) begin
      launched_q   <= !control_i.start;
      ucode_base_q <= start_state_o.image.ucode_base;
    end
  end

  // An error of the fetch names the word that could not be had.
  always_comb begin
    mem_error = bus_i.error;
    if (bus_i.error.engine == EngSeq) mem_error.instr = (bus_i.error.addr - ucode_base_q) >> 4;
    if (!bus_i.error.valid) mem_error = engine_error_i;
  end

  logic ending;
  assign launch_end_o = ending && launched_q;

  npu_run_ctrl u_run_ctrl (
    .clk_i,
    .rst_ni,
    .start_i     (control_i.start || launch_i.valid),
    .abort_i     (control_i.abort_program),
    .soft_reset_i(control_i.soft_reset),
    .progress_i,
    .mem_error_i (mem_error),
    .drain_o,
    .bus_idle_i  (bus_i.idle),
    .bus_stuck_i (bus_i.stuck),
    .core_rst_no,
    .status_o,
    .ending_o    (ending)
  );

`ifndef SYNTHESIS
  LaunchStays_A :
  assert property (@(posedge clk_i) disable iff (!rst_ni || drain_o || control_i.soft_reset)
                   start_value_i.valid && launched_q && status_o.busy |-> $stable(
      launch_i.start
  ))
  else $error("npu_program: a launch changes before its first registers are sent");
`endif

endmodule
