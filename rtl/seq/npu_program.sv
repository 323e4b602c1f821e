// SPDX-License-Identifier: Apache-2.0
//
// Which program runs and how it fares: the host or the command port starts one, the host first; the
// program and its first registers go to the sequencer; the end of a program that the command port
// has launched is reported to it. npu_run_ctrl does the rest.

module npu_program
  import npu_pkg::*;
  import npu_isa_pkg::*;
(
  input logic clk_i,
  input logic rst_ni,

  // Host
  input logic             start_i,
  input logic             abort_i,
  input logic             soft_reset_i,
  input mem_addr_t        ucode_base_i,
  input logic      [31:0] ucode_length_i,
  input machine_t         start_regs_i,

  // Command port
  input  logic                 launch_valid_i,
  output logic                 launch_ready_o,
  input  npu_cmd_pkg::launch_t launch_i,
  output logic                 launch_end_o,    // pulse: the program that it launched has ended

  // To the sequencer: valid with start_o
  output logic             start_o,
  output mem_addr_t        ucode_base_o,
  output logic      [31:0] ucode_length_o,
  output machine_t         start_regs_o,

  // Ways to end
  input logic       end_i,
  input fault_t     end_fault_i,
  input fault_t     port_fault_i,
  input fault_t     engine_fault_i,
  input instr_idx_t last_instr_i,

  output logic drain_o,
  input  logic bus_idle_i,
  input  logic bus_stuck_i,
  output logic core_rst_no,

  output logic   busy_o,
  output logic   done_o,
  output logic   finish_o,
  output logic   failed_o,
  output fault_t error_o
);

  logic launched_q;  // the program in hand is the command port's
  mem_addr_t ucode_base_q;
  fault_t mem_fault;

  assign launch_ready_o = start_o && !start_i;
  assign launch_end_o   = finish_o && launched_q;

  always_comb begin
    ucode_base_o   = ucode_base_i;
    ucode_length_o = ucode_length_i;
    start_regs_o   = start_regs_i;
    if (!start_i) begin
      ucode_base_o         = launch_i.ucode_base;
      ucode_length_o       = launch_i.ucode_length;
      start_regs_o.pos     = launch_i.pos;
      start_regs_o.token   = launch_i.token;
      start_regs_o.base[0] = launch_i.base0;
      start_regs_o.base[1] = launch_i.base1;
    end
  end

  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) begin
      launched_q   <= 1'b0;
      ucode_base_q <= '0;
    end else if (start_o) begin
      launched_q   <= !start_i;
      ucode_base_q <= ucode_base_o;
    end
  end

  // A fault of the fetch names the word that could not be had.
  always_comb begin
    mem_fault = port_fault_i;
    if (port_fault_i.engine == EngSeq) mem_fault.instr = (port_fault_i.addr - ucode_base_q) >> 4;
    if (!port_fault_i.valid) mem_fault = engine_fault_i;
  end

  npu_run_ctrl u_run_ctrl (
    .clk_i,
    .rst_ni,
    .start_i    (start_i || launch_valid_i),
    .abort_i,
    .soft_reset_i,
    .end_i,
    .end_fault_i,
    .mem_fault_i(mem_fault),
    .last_instr_i,
    .start_o,
    .drain_o,
    .bus_idle_i,
    .bus_stuck_i,
    .core_rst_no,
    .busy_o,
    .done_o,
    .finish_o,
    .failed_o,
    .error_o
  );

endmodule
