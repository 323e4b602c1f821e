// SPDX-License-Identifier: Apache-2.0
//
// The command port: scalar, vector and tile operations on registers and a scratchpad, started by
// register or by a ring of descriptors in memory, which can launch microcode programs as well.

module npu_cmd
  import npu_mem_pkg::*;
  import npu_stream_pkg::*;
  import npu_cmd_pkg::*;
#(
  parameter int unsigned ScratchBytes = 64  // bytes of the scratchpad: 64, 128 or 256
) (
  input logic clk_i,  // clock
  input logic rst_ni, // reset, active low

  // Register window
  input  npu_host_pkg::window_req_t req_i,  // an access to the window
  output npu_host_pkg::window_rsp_t rsp_o,  // acknowledged in the cycle after req_i.valid

  output logic irq_o,        // a level, until the host clears its reason or starts again
  input  logic soft_reset_i, // pulse: ends operation or ring without a report

  // Protection
  input regions_t      regions_i,  // what the pages of memory permit; counts for what is asked now
  input stream_range_t stream_i,   // a level: no writes to these bytes; none if the length is 0

  // Programs
  output npu_host_pkg::launch_req_t launch_o,  // a program to run
  input  npu_host_pkg::launch_rsp_t launch_i,  // ready may depend on launch_o.valid

  // Memory port
  output npu_axi_pkg::axi_req_t axi_req_o,  // single beats; stays until taken, stable
  input  npu_axi_pkg::axi_rsp_t axi_rsp_i   // ready may depend on valid
);

  localparam int unsigned ByteW = $clog2(ScratchBytes);
  localparam int unsigned WordW = ByteW - 2;

  if (!(ScratchBytes inside {64, 128, 256})) begin : gen_bad_scratch_bytes
    $fatal(1, "npu_cmd: ScratchBytes = %0d, must be 64, 128 or 256", ScratchBytes);
  end

  operation_t settings, ring_op;
  ring_regs_t ring_regs;
  status_t status;
  events_t events;
  logic start, clear, descriptor, entry_irq, started;
  ring_status_t ring;
  scratch_write_t unit_write, ring_write, host_write;
  logic [WordW-1:0] ring_raddr;
  logic [31:0] host_rdata, ring_rdata;

  // ---------------------------------------------------------------------------------------------
  // Clock of all below: it stands still where nothing is under way and nobody speaks
  // ---------------------------------------------------------------------------------------------
  logic clk, bus, awake;

  assign bus = axi_req_o.rd.arvalid || axi_req_o.wr.awvalid || axi_req_o.wr.wvalid ||
               axi_rsp_i.rd.rvalid || axi_rsp_i.wr.bvalid;
  assign awake = status.busy || req_i.valid || soft_reset_i || bus;

  npu_block_clock u_clock (
    .clk_i,
    .rst_ni,
    .awake_i(awake),
    .clk_o  (clk)
  );

  npu_cmd_window #(
    .ScratchBytes(ScratchBytes)
  ) u_window (
    .clk_i          (clk),
    .rst_ni,
    .req_i,
    .rsp_o,
    .operation_o    (settings),
    .ring_o         (ring_regs),
    .descriptor_o   (descriptor),
    .start_o        (start),
    .clear_o        (clear),
    .entry_irq_o    (entry_irq),
    .status_i       (status),
    .events_i       (events),
    .ring_i         (ring),
    .started_i      (started),
    .scratch_o      (host_write),
    .scratch_rdata_i(host_rdata)
  );

  assign irq_o = status.done || entry_irq;

  // ---------------------------------------------------------------------------------------------
  // Start and end
  // ---------------------------------------------------------------------------------------------
  logic op_start, ring_start;

  assign status.ring_busy = ring.busy;

  npu_cmd_control u_control (
    .clk_i        (clk),
    .rst_ni,
    .start_i      (start),
    .clear_i      (clear),
    .descriptor_i (descriptor),
    .soft_reset_i,
    .op_start_o   (op_start),
    .unit_i       (status.unit),
    .ring_start_o (ring_start),
    .ring_i       (ring),
    .started_o    (started),
    .busy_o       (status.busy),
    .done_o       (status.done),
    .error_o      (status.error),
    .code_o       (status.code),
    .index_o      (status.index),
    .failed_o     (events.failed),
    .unsupported_o(events.unsupported)
  );

  // ---------------------------------------------------------------------------------------------
  // Operations: from the registers or from the ring, never from both
  // ---------------------------------------------------------------------------------------------
  logic ring_op_valid;
  logic [ByteW-1:0] window_addr, gather_addr[8];
  logic [63:0] window;
  logic [ 7:0] gather [8];

  npu_cmd_unit #(
    .ScratchBytes(ScratchBytes)
  ) u_unit (
    .clk_i        (clk),
    .rst_ni,
    .stop_i       (soft_reset_i),
    .valid_i      (op_start || ring_op_valid),
    .op_i         (op_start ? settings : ring_op),
    .status_o     (status.unit),
    .write_o      (unit_write),
    .window_addr_o(window_addr),
    .window_i     (window),
    .gather_addr_o(gather_addr),
    .gather_i     (gather),
    .events_o     (events.unit)
  );


  npu_cmd_scratch #(
    .ScratchBytes(ScratchBytes)
  ) u_scratch (
    .clk_i        (clk),
    .rst_ni,
    .unit_write_i (unit_write),
    .window_addr_i(window_addr),
    .window_o     (window),
    .gather_addr_i(gather_addr),
    .gather_o     (gather),
    .ring_write_i (ring_write),
    .ring_raddr_i (ring_raddr),
    .ring_rdata_o (ring_rdata),
    .host_write_i (host_write),
    .host_rdata_o (host_rdata)
  );

  // ---------------------------------------------------------------------------------------------
  // Ring of descriptors
  // ---------------------------------------------------------------------------------------------
  npu_cmd_ring #(
    .ScratchBytes(ScratchBytes)
  ) u_ring (
    .clk_i          (clk),
    .rst_ni,
    .soft_reset_i,
    .start_i        (ring_start),
    .ring_o         (ring),
    .regs_i         (ring_regs),
    .ternary_i      (settings.ternary),
    .tile_i         (settings.tile),
    .cq_head_o      (status.cq_head),
    .op_valid_o     (ring_op_valid),
    .op_o           (ring_op),
    .unit_i         (status.unit),
    .scratch_o      (ring_write),
    .scratch_raddr_o(ring_raddr),
    .scratch_rdata_i(ring_rdata),
    .launch_o,
    .launch_i,
    .events_o       (events.ring),
    .regions_i,
    .stream_i,
    .axi_req_o,
    .axi_rsp_i
  );

endmodule
