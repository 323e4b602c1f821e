// SPDX-License-Identifier: Apache-2.0
//
// The command port: scalar, vector and tile operations on registers and a scratchpad, started by
// register or by a ring of descriptors in memory, which can launch microcode programs as well.

module npu_cmd
  import npu_pkg::*;
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
  output npu_host_pkg::window_rsp_t rsp_o,  // acknowledged in the cycle of req_i.valid

  output logic irq_o,        // a level, until the host clears its reason or starts again
  input  logic soft_reset_i, // pulse: ends operation or ring without a report

  // Protection
  input regions_t      regions_i,  // what the pages of memory permit; counts for what is asked now
  input stream_range_t stream_i,   // a level: no writes to these bytes; none if the length is 0

  // Programs
  output logic                               launch_valid_o,  // stays until ready or soft_reset_i
  input  logic                               launch_ready_i,  // may depend on launch_valid_o
  output npu_desc_pkg::desc_program_t        launch_o,        // stable while launch_valid_o
  input  logic                               launch_end_i,    // pulse: the program has ended
  input  error_t                             launch_error_i,  // with launch_end_i; not valid: none
  input  logic                        [31:0] launch_count_i,  // OUTCNT, with launch_end_i

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
  logic entry, tail_we;
  logic [2:0] tail;
  logic [WordW-1:0] host_addr, ring_waddr, ring_raddr;
  logic host_write;
  logic [31:0] host_wdata, host_wmask, host_rdata, ring_rdata;

  npu_cmd_window #(
    .ScratchBytes(ScratchBytes)
  ) u_window (
    .clk_i,
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
    .entry_i        (entry),
    .started_i      (started),
    .tail_we_i      (tail_we),
    .tail_i         (tail),
    .scratch_write_o(host_write),
    .scratch_addr_o (host_addr),
    .scratch_wdata_o(host_wdata),
    .scratch_wmask_o(host_wmask),
    .scratch_rdata_i(host_rdata)
  );

  assign irq_o = status.done || entry_irq;

  // ---------------------------------------------------------------------------------------------
  // Start and end
  // ---------------------------------------------------------------------------------------------
  logic op_start, op_done, ring_start, ring_end;
  logic [7:0] ring_code;
  logic [2:0] ring_index;
  end_e op_end;

  npu_cmd_control u_control (
    .clk_i,
    .rst_ni,
    .start_i      (start),
    .clear_i      (clear),
    .descriptor_i (descriptor),
    .soft_reset_i,
    .op_start_o   (op_start),
    .op_done_i    (op_done),
    .op_end_i     (op_end),
    .ring_start_o (ring_start),
    .ring_busy_i  (status.ring_busy),
    .ring_end_i   (ring_end),
    .ring_entry_i (entry),
    .ring_code_i  (ring_code),
    .ring_index_i (ring_index),
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
  logic ring_op_valid, op_ready;
  scratch_write_t unit_write;
  logic [ByteW-1:0] window_addr, gather_addr[8];
  logic [63:0] window;
  logic [ 7:0] gather [8];

  npu_cmd_unit #(
    .ScratchBytes(ScratchBytes)
  ) u_unit (
    .clk_i,
    .rst_ni,
    .stop_i         (soft_reset_i),
    .valid_i        (op_start || ring_op_valid),
    .ready_o        (op_ready),
    .op_i           (op_start ? settings : ring_op),
    .done_o         (op_done),
    .end_o          (op_end),
    .result_o       (status.result),
    .result_hi_o    (status.result_hi),
    .busy_count_o   (status.busy_count),
    .opcode_o       (status.opcode),
    .gemm_busy_o    (status.gemm_busy),
    .vector_busy_o  (status.vector_busy),
    .write_o        (unit_write),
    .window_addr_o  (window_addr),
    .window_i       (window),
    .gather_addr_o  (gather_addr),
    .gather_i       (gather),
    .begun_o        (events.op_begun),
    .macs_o         (events.macs),
    .scratch_bytes_o(events.unit_bytes)
  );

  logic [  3:0] ring_we;
  logic [127:0] ring_wdata;

  npu_cmd_scratch #(
    .ScratchBytes(ScratchBytes)
  ) u_scratch (
    .clk_i,
    .rst_ni,
    .unit_write_i (unit_write),
    .window_addr_i(window_addr),
    .window_o     (window),
    .gather_addr_i(gather_addr),
    .gather_o     (gather),
    .ring_we_i    (ring_we),
    .ring_waddr_i (ring_waddr),
    .ring_wdata_i (ring_wdata),
    .ring_raddr_i (ring_raddr),
    .ring_rdata_o (ring_rdata),
    .host_write_i (host_write),
    .host_addr_i  (host_addr),
    .host_wdata_i (host_wdata),
    .host_wmask_i (host_wmask),
    .host_rdata_o (host_rdata)
  );

  // ---------------------------------------------------------------------------------------------
  // Ring of descriptors
  // ---------------------------------------------------------------------------------------------
  npu_cmd_ring #(
    .ScratchBytes(ScratchBytes)
  ) u_ring (
    .clk_i,
    .rst_ni,
    .soft_reset_i,
    .start_i        (ring_start),
    .busy_o         (status.ring_busy),
    .end_o          (ring_end),
    .code_o         (ring_code),
    .index_o        (ring_index),
    .entry_o        (entry),
    .regs_i         (ring_regs),
    .ternary_i      (settings.ternary),
    .tile_i         (settings.tile),
    .tail_we_o      (tail_we),
    .tail_o         (tail),
    .cq_head_o      (status.cq_head),
    .op_valid_o     (ring_op_valid),
    .op_ready_i     (op_ready),
    .op_o           (ring_op),
    .op_done_i      (op_done),
    .op_end_i       (op_end),
    .result_i       (status.result),
    .result_hi_i    (status.result_hi),
    .scratch_we_o   (ring_we),
    .scratch_waddr_o(ring_waddr),
    .scratch_wdata_o(ring_wdata),
    .scratch_raddr_o(ring_raddr),
    .scratch_rdata_i(ring_rdata),
    .launch_valid_o,
    .launch_ready_i,
    .launch_o,
    .launch_end_i,
    .launch_error_i,
    .launch_count_i,
    .read_words_o   (events.read_words),
    .write_words_o  (events.write_words),
    .scratch_bytes_o(events.ring_bytes),
    .launched_o     (events.launched),
    .stall_o        (events.stall),
    .regions_i,
    .stream_i,
    .axi_req_o,
    .axi_rsp_i
  );

endmodule
