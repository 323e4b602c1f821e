// SPDX-License-Identifier: Apache-2.0
//
// The descriptor ring: fetches descriptors from memory, has the operation unit or the core do what
// they say, writes results and completion records. Everything here passes data between the steps;
// npu_cmd_run decides what comes next. The scratchpad is used only while the operation unit rests;
// RESULT is read from the cycle after op_done_i on.

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

  // Run: start, then its end with the reason, in the last busy cycle
  input  logic       start_i,  // pulse, only while idle
  output logic       busy_o,   // a level, from the next cycle on
  output logic       end_o,    // pulse, in the last busy cycle
  output logic [7:0] code_o,   // DESC_STATUS[7:0], with end_o
  output logic [2:0] index_o,  // of an entry: with end_o and with entry_o
  output logic       entry_o,  // pulse: a descriptor has completed or failed

  // Registers: base, ternary and tile are latched at the start
  input  ring_regs_t        regs_i,     // levels; base counts at the start, the rest as it is
  input  logic              ternary_i,  // DOT16_S2 takes its lanes as ternary; at the start
  input  tile_t             tile_i,     // of operations without extension; at the start
  output logic              tail_we_o,  // pulse: a descriptor has completed
  output logic       [ 2:0] tail_o,     // index of the next entry, with tail_we_o
  output logic       [15:0] cq_head_o,  // completion records written, modulo 65,536

  // Operation unit
  output logic              op_valid_o,  // stays until op_ready_i or a soft reset
  input  logic              op_ready_i,  // taken; may depend on op_valid_o
  output operation_t        op_o,        // stable from op_valid_o to op_done_i
  input  logic              op_done_i,   // pulse: it has ended
  input  end_e              op_end_i,    // how it ended, with op_done_i
  input  logic       [31:0] result_i,    // RESULT, from the cycle after op_done_i on
  input  logic       [31:0] result_hi_i, // RESULT_HI, as result_i

  // Scratchpad: word i of the four goes to waddr + i
  output logic  [             3:0] scratch_we_o,     // bit i: 32-bit word i is written, at once
  output logic  [ScratchAddrW-1:0] scratch_waddr_o,  // 32-bit word that the first goes to
  output word_t                    scratch_wdata_o,  // four 32-bit words, the first lowest
  output logic  [ScratchAddrW-1:0] scratch_raddr_o,  // 32-bit word to read
  input  logic  [            31:0] scratch_rdata_i,  // in the same cycle

  // Programs
  output logic                               launch_valid_o,  // stays until ready or soft_reset_i
  input  logic                               launch_ready_i,  // may depend on launch_valid_o
  output npu_desc_pkg::desc_program_t        launch_o,        // stable while launch_valid_o
  input  logic                               launch_end_i,    // pulse: the program has ended
  input  error_t                             launch_error_i,  // with launch_end_i; not valid: none
  input  logic                        [31:0] launch_count_i,  // OUTCNT, with launch_end_i

  // Events to count
  output logic [ 4:0] read_words_o,     // 32-bit words read, in the cycle in which they count
  output logic [13:0] write_words_o,    // 32-bit words written back, the same
  output logic [15:0] scratch_bytes_o,  // bytes of the scratchpad read or written, the same
  output logic        launched_o,       // pulse: a program is launched
  output logic        stall_o,          // a level: waits for the memory in this cycle

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

  always_ff @(posedge clk_i or negedge rst_ni) begin
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
  logic entry_valid, entry_ready, entry_error, taken;
  word_t entry;
  logic [7:0][31:0] words;
  descriptor_t descriptor;
  stream_t stream;
  writeback_t writeback;
  logic bad_extension, bad_stream, bad_writeback;

  npu_cmd_fetch u_fetch (
    .clk_i,
    .rst_ni,
    .run_i  (active),
    .base_i (base_q),
    .first_i(regs_i.tail),
    .head_i (regs_i.head),
    .valid_o(entry_valid),
    .ready_i(entry_ready),
    .error_o(entry_error),
    .entry_o(entry),
    .read_o (read_req[RdEntry]),
    .read_i (read_rsp[RdEntry])
  );

  npu_cmd_descriptor #(
    .ScratchBytes(ScratchBytes)
  ) u_descriptor (
    .words_i        (words),
    .tile_i         (tile_q),
    .ternary_i      (ternary_q),
    .descriptor_o   (descriptor),
    .operation_o    (op_o),
    .stream_o       (stream),
    .writeback_o    (writeback),
    .program_o      (launch_o),
    .bad_extension_o(bad_extension),
    .bad_stream_o   (bad_stream),
    .bad_writeback_o(bad_writeback)
  );

  // ---------------------------------------------------------------------------------------------
  // Steps
  // ---------------------------------------------------------------------------------------------
  logic stream_active, write_active, record_active, record_waits;
  step_end_t stream_end, write_end, record_end;
  logic [7:0] record_code, record_tag;
  logic [31:0] record_cycles;
  logic [13:0] write_words;

  npu_cmd_run u_run (
    .clk_i,
    .rst_ni,
    .soft_reset_i,
    .start_i,
    .bad_base_i     (base_q[1:0] != '0),
    .busy_o,
    .end_o,
    .code_o,
    .index_o,
    .entry_o,
    .regs_i,
    .tail_we_o,
    .tail_o,
    .active_o       (active),
    .mem_idle_i     (mem_idle),
    .mem_silent_i   (mem_silent),
    .stall_o,
    .entry_valid_i  (entry_valid),
    .entry_ready_o  (entry_ready),
    .entry_error_i  (entry_error),
    .entry_i        (entry),
    .words_o        (words),
    .taken_o        (taken),
    .descriptor_i   (descriptor),
    .bad_extension_i(bad_extension),
    .bad_stream_i   (bad_stream),
    .bad_writeback_i(bad_writeback),
    .stream_active_o(stream_active),
    .stream_end_i   (stream_end),
    .op_valid_o,
    .op_ready_i,
    .op_done_i,
    .op_end_i,
    .launch_valid_o,
    .launch_ready_i,
    .launch_end_i,
    .launch_failed_i(launch_error_i.valid),
    .write_active_o (write_active),
    .write_end_i    (write_end),
    .record_active_o(record_active),
    .record_code_o  (record_code),
    .record_tag_o   (record_tag),
    .record_cycles_o(record_cycles),
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
    .scratch_we_o,
    .scratch_waddr_o,
    .scratch_wdata_o,
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
    .result_i,
    .result_hi_i,
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
    .active_i(record_active),
    .code_i  (record_code),
    .index_i (regs_i.tail),
    .tag_i   (record_tag),
    .opcode_i(op_o.opcode),
    .scalar_i(writeback.scalar),
    .launch_i(descriptor.launch),
    .cycles_i(record_cycles),
    .waits_o (record_waits),
    .end_o   (record_end),
    .clear_i (entry_ready),
    .result_i,
    .result_hi_i,
    .launch_end_i,
    .launch_error_i,
    .launch_count_i,
    .regs_i,
    .head_o  (cq_head_o),
    .write_o (record_req),
    .write_i (write_rsp)
  );

  // ---------------------------------------------------------------------------------------------
  // Events
  // ---------------------------------------------------------------------------------------------
  assign launched_o = launch_valid_o && launch_ready_i;
  always_comb begin
    read_words_o    = taken ? 5'd4 : '0;
    write_words_o   = write_end.done ? write_words : '0;
    scratch_bytes_o = '0;
    if (stream_end.done) begin
      read_words_o    = {1'b0, stream.bytes[5:2]};
      scratch_bytes_o = {10'b0, stream.bytes};
    end
    if (write_end.done && !writeback.scalar) scratch_bytes_o = {write_words, 2'b0};
  end

  // ---------------------------------------------------------------------------------------------
  // Memory
  // ---------------------------------------------------------------------------------------------
  npu_cmd_mem u_mem (
    .clk_i,
    .rst_ni,
    .read_i  (read_req),
    .read_o  (read_rsp),
    .write_i (record_active ? record_req : result_req),
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
