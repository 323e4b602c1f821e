// SPDX-License-Identifier: Apache-2.0
//
// The descriptor ring: fetches descriptors from memory, has the operation unit or the core do what
// they say, writes results and completion records. Everything here passes data between the steps;
// npu_cmd_run decides what comes next. The scratchpad is used only while the operation unit rests;
// RESULT is read from the cycle after unit_i.done on.

module npu_cmd_ring
  import npu_pkg::*;
  import npu_mem_pkg::*;
  import npu_stream_pkg::*;
  import npu_cmd_pkg::*;
#(
  parameter int unsigned ScratchBytes = 64,  // bytes of the scratchpad: 64, 128 or 256
  localparam int unsigned ScratchAddrW = $clog2(ScratchBytes / 4)  // width of a 32-bit word address
) (
  input logic clk_i,        // clock
  input logic rst_ni,       // reset, active low
  input logic soft_reset_i, // pulse: ends the run without a report

  input  logic         start_i,  // pulse, only while idle: begins a run
  output ring_status_t ring_o,   // how it stands

  // Registers: base, ternary and tile are latched at the start
  input  ring_regs_t        regs_i,     // levels; base counts at the start, the rest as it is
  input  logic              ternary_i,  // DOT16_S2 takes its lanes as ternary; at the start
  input  tile_t             tile_i,     // of operations without extension; at the start
  output logic       [15:0] cq_head_o,  // completion records written, modulo 65,536

  // Operation unit
  output logic         op_valid_o,  // stays until unit_i.ready or a soft reset
  output operation_t   op_o,        // stable from op_valid_o to unit_i.done
  input  unit_status_t unit_i,      // ready may depend on op_valid_o

  // Scratchpad
  output scratch_write_t                    scratch_o,        // up to four 32-bit words
  output logic           [ScratchAddrW-1:0] scratch_raddr_o,  // 32-bit word to read
  input  logic           [            31:0] scratch_rdata_i,  // in the same cycle

  // Programs
  output npu_host_pkg::launch_req_t launch_o,  // a program to run
  input  npu_host_pkg::launch_rsp_t launch_i,  // ready may depend on launch_o.valid

  output ring_events_t events_o,  // to count

  // Protection
  input regions_t      regions_i,  // what the pages of memory permit; counts for what is asked now
  input stream_range_t stream_i,   // a level: no writes to these bytes; none if the length is 0

  // Memory port
  output npu_axi_pkg::axi_req_t axi_req_o,  // single beats; stays until taken, stable
  input  npu_axi_pkg::axi_rsp_t axi_rsp_i   // ready may depend on valid
);

  // Read clients of the memory
  localparam int unsigned RdEntry = 0;
  localparam int unsigned RdStream = 1;

  logic active, mem_idle, mem_silent;
  read_req_t read_req[2];
  read_rsp_t read_rsp[2];
  write_rsp_t write_rsp;

  // ---------------------------------------------------------------------------------------------
  // Latched at the start
  // ---------------------------------------------------------------------------------------------
  mem_addr_t base_q;
  logic ternary_q;
  tile_t tile_q;

  always_ff @(posedge clk_i) begin
    if (!rst_ni) begin
      base_q    <= '0;
      ternary_q <= 1'b0;
      tile_q    <= '0;
    end else if (start_i) begin
      base_q    <= regs_i.base;
      ternary_q <= ternary_i;
      tile_q    <= tile_i;
    end
  end

  // ---------------------------------------------------------------------------------------------
  // Descriptors
  // ---------------------------------------------------------------------------------------------
  logic entry_ready, taken;
  entry_t entry;
  logic [7:0][31:0] words;
  descriptor_t descriptor;
  stream_t stream;
  writeback_t writeback;

  npu_cmd_fetch u_fetch (
    .clk_i,
    .rst_ni,
    .run_i  (active),
    .base_i (base_q),
    .first_i(regs_i.tail),
    .head_i (regs_i.head),
    .entry_o(entry),
    .ready_i(entry_ready),
    .read_o (read_req[RdEntry]),
    .read_i (read_rsp[RdEntry])
  );

  npu_cmd_descriptor #(
    .ScratchBytes(ScratchBytes)
  ) u_descriptor (
    .words_i     (words),
    .tile_i      (tile_q),
    .ternary_i   (ternary_q),
    .descriptor_o(descriptor),
    .operation_o (op_o),
    .stream_o    (stream),
    .writeback_o (writeback),
    .program_o   (launch_o.start)
  );

  // ---------------------------------------------------------------------------------------------
  // Steps
  // ---------------------------------------------------------------------------------------------
  logic stream_active, write_active, record_waits;
  step_end_t stream_end, write_end, record_end;
  record_req_t record;
  logic [13:0] write_words;

  npu_cmd_run u_run (
    .clk_i,
    .rst_ni,
    .soft_reset_i,
    .start_i,
    .bad_base_i     (base_q[1:0] != '0),
    .ring_o,
    .regs_i,
    .active_o       (active),
    .mem_idle_i     (mem_idle),
    .mem_silent_i   (mem_silent),
    .stall_o        (events_o.stall),
    .entry_i        (entry),
    .entry_ready_o  (entry_ready),
    .words_o        (words),
    .taken_o        (taken),
    .descriptor_i   (descriptor),
    .stream_active_o(stream_active),
    .stream_end_i   (stream_end),
    .op_valid_o,
    .unit_i,
    .launch_valid_o (launch_o.valid),
    .launch_i,
    .write_active_o (write_active),
    .write_end_i    (write_end),
    .record_o       (record),
    .record_waits_i (record_waits),
    .record_end_i   (record_end)
  );

  npu_cmd_stream #(
    .ScratchBytes(ScratchBytes)
  ) u_stream (
    .clk_i,
    .rst_ni,
    .active_i(stream_active),
    .stream_i(stream),
    .end_o   (stream_end),
    .scratch_o,
    .read_o  (read_req[RdStream]),
    .read_i  (read_rsp[RdStream])
  );

  // ---------------------------------------------------------------------------------------------
  // Writes: result, then record
  // ---------------------------------------------------------------------------------------------
  write_req_t result_req, record_req;

  npu_cmd_writeback #(
    .ScratchBytes(ScratchBytes)
  ) u_writeback (
    .clk_i,
    .rst_ni,
    .active_i   (write_active),
    .writeback_i(writeback),
    .unit_i,
    .end_o      (write_end),
    .words_o    (write_words),
    .scratch_raddr_o,
    .scratch_rdata_i,
    .write_o    (result_req),
    .write_i    (write_rsp)
  );

  npu_cmd_record u_record (
    .clk_i,
    .rst_ni,
    .record_i(record),
    .index_i (regs_i.tail),
    .opcode_i(op_o.opcode),
    .scalar_i(writeback.scalar),
    .launch_i(descriptor.launch),
    .waits_o (record_waits),
    .end_o   (record_end),
    .clear_i (entry_ready),
    .unit_i,
    .program_i(launch_i),
    .regs_i,
    .head_o  (cq_head_o),
    .write_o (record_req),
    .write_i (write_rsp)
  );

  // ---------------------------------------------------------------------------------------------
  // Events
  // ---------------------------------------------------------------------------------------------
  assign events_o.launched = launch_o.valid && launch_i.ready;
  always_comb begin
    events_o.read_words  = taken ? 5'd4 : '0;
    events_o.write_words = write_end.done ? write_words : '0;
    events_o.bytes       = '0;
    if (stream_end.done) begin
      events_o.read_words = {1'b0, stream.bytes[5:2]};
      events_o.bytes      = {10'b0, stream.bytes};
    end
    if (write_end.done && !writeback.scalar) events_o.bytes = {write_words, 2'b0};
  end

  // ---------------------------------------------------------------------------------------------
  // Memory
  // ---------------------------------------------------------------------------------------------
  npu_cmd_mem u_mem (
    .clk_i,
    .rst_ni,
    .read_i  (read_req),
    .read_o  (read_rsp),
    .write_i (record.active ? record_req : result_req),
    .write_o (write_rsp),
    .regions_i,
    .stream_i,
    .drain_i (!active),
    .idle_o  (mem_idle),
    .silent_o(mem_silent),
    .axi_req_o,
    .axi_rsp_i
  );

endmodule
