// SPDX-License-Identifier: Apache-2.0
//
// The host's window of the command port: the generated register block, with the fields hidden that
// a small scratchpad does not have, the counters, and the words of the scratchpad behind SCRATCH.

module npu_cmd_window
  import npu_cmd_pkg::*;
  import npu_cmd_regs_pkg::*;
  import npu_desc_pkg::*;
#(
  parameter int unsigned ScratchBytes = 64  // bytes of the scratchpad: 64, 128 or 256
) (
  input logic clk_i,  // clock
  input logic rst_ni, // reset, active low

  input  npu_host_pkg::window_req_t req_i,  // an access to the window
  output npu_host_pkg::window_rsp_t rsp_o,  // acknowledged in the cycle after req_i.valid

  // Settings and strobes
  output operation_t operation_o,   // as the registers stand: a level
  output ring_regs_t ring_o,        // as the registers stand: a level
  output logic       descriptor_o,  // a start runs the ring: a level
  output logic       start_o,       // pulse, a cycle after the host's access
  output logic       clear_o,       // pulse, a cycle after the host's access
  output logic       entry_irq_o,   // a level: an entry has finished, until the host clears it

  // What the registers show
  input status_t      status_i,  // levels
  input events_t      events_i,  // to count
  input ring_status_t ring_i,    // entries that have finished, and where the tail moves
  input logic         started_i, // pulse: a start is accepted

  // Scratchpad
  output scratch_write_t        scratch_o,       // with the host's access; addr: to read, too
  input  logic           [31:0] scratch_rdata_i  // of scratch_o.addr, in the same cycle
);

  localparam bit Wide = ScratchBytes > 64;
  localparam int unsigned WordW = $clog2(ScratchBytes / 4);  // width of a 32-bit word address
  localparam int unsigned PageBits = $clog2(ScratchBytes / 64);

  // Registers with fields that depend on the scratchpad
  localparam logic [31:0] PageMask = (32'd1 << PageBits) - 32'd1;

  logic [31:0] there;
  always_comb begin
    there = '1;
    if (!Wide && req_i.addr == GemmCfgAddr) there = GemmCfgNarrow;
    if (!Wide && req_i.addr == GemmBaseAddr) there = GemmBaseNarrow;
    if (!Wide && req_i.addr == GemmStrideAddr) there = GemmStrideNarrow;
    if (req_i.addr == ScratchPageAddr) there = PageMask;
  end

  npu_cmd_regs__in_t  regs_in;
  npu_cmd_regs__out_t regs;
  logic rd_ack, wr_ack, wr_ack_q;

  npu_cmd_regs u_regs (
    .clk                 (clk_i),
    .rst_n               (rst_ni),
    .s_cpuif_req         (req_i.valid),
    .s_cpuif_req_is_wr   (req_i.write),
    .s_cpuif_addr        (req_i.addr),
    .s_cpuif_wr_data     (req_i.wdata),
    .s_cpuif_wr_biten    (req_i.wmask & there),
    .s_cpuif_req_stall_wr(),
    .s_cpuif_req_stall_rd(),
    .s_cpuif_rd_ack      (rd_ack),
    .s_cpuif_rd_err      (),
    .s_cpuif_rd_data     (rsp_o.rdata),
    .s_cpuif_wr_ack      (wr_ack),
    .s_cpuif_wr_err      (),
    .hwif_in             (regs_in),
    .hwif_out            (regs)
  );

  // Before a write is acknowledged, what it clears no longer asks for the interrupt.
  always_ff @(posedge clk_i) begin
    if (!rst_ni) wr_ack_q <= 1'b0;
    else wr_ack_q <= wr_ack;
  end

  assign rsp_o.ack = rd_ack || wr_ack_q;

  // ---------------------------------------------------------------------------------------------
  // Settings
  // ---------------------------------------------------------------------------------------------
  always_comb begin
    operation_o.opcode = op_e'(regs.OPCODE.VALUE.value);
    operation_o.ternary = regs.CMD_PARAM.TERNARY.value;
    operation_o.a = regs.OP_A.VALUE.value;
    operation_o.b = regs.OP_B.VALUE.value;
    operation_o.acc = regs.ACC.VALUE.value;
    operation_o.tile.cfg = {
      regs.GEMM_CFG.K_WIDE.value,
      regs.GEMM_CFG.K.value,
      regs.GEMM_CFG.N_WIDE.value,
      regs.GEMM_CFG.N.value,
      regs.GEMM_CFG.M_WIDE.value,
      regs.GEMM_CFG.LEN.value
    };
    operation_o.tile.base = {
      regs.GEMM_BASE.C_WIDE.value,
      regs.GEMM_BASE.C.value,
      regs.GEMM_BASE.B_WIDE.value,
      regs.GEMM_BASE.B.value,
      regs.GEMM_BASE.A_WIDE.value,
      regs.GEMM_BASE.A.value
    };
    operation_o.tile.stride = {
      regs.GEMM_STRIDE.C_WIDE.value,
      regs.GEMM_STRIDE.C.value,
      regs.GEMM_STRIDE.B_WIDE.value,
      regs.GEMM_STRIDE.B.value,
      regs.GEMM_STRIDE.A_WIDE.value,
      regs.GEMM_STRIDE.A.value
    };

    ring_o.base = regs.DESC_BASE.VALUE.value;
    ring_o.head = regs.DESC_HEAD.VALUE.value;
    ring_o.tail = regs.DESC_TAIL.VALUE.value;
    ring_o.timeout = regs.DESC_TIMEOUT.CYCLES.value;
    ring_o.cq_base = {regs.CQ_BASE.VALUE.value, 4'b0};
    ring_o.cq_enable = regs.CQ_CTRL.ENABLE.value;
    ring_o.cq_log2_size = regs.CQ_CTRL.LOG2_SIZE.value;
    ring_o.cq_tail = regs.CQ_TAIL.VALUE.value;
  end

  assign descriptor_o = regs.CMD_PARAM.DESCRIPTOR.value;
  assign start_o = regs.CTRL_STATUS.START.value;
  assign clear_o = regs.CTRL_STATUS.CLEAR.value;
  assign entry_irq_o = regs.CMD_IRQ.ENTRY.value && regs.CMD_IRQ.PER_ENTRY.value;

  // ---------------------------------------------------------------------------------------------
  // Scratchpad
  // ---------------------------------------------------------------------------------------------
  logic [WordW-1:0] scratch_word;
  logic scratch_write;
  assign scratch_word   = WordW'({regs.SCRATCH_PAGE.PAGE_WIDE.value, req_i.addr[5:2]});
  assign scratch_write  = req_i.valid && req_i.write && req_i.addr[7:6] == 2'b10 && !status_i.busy;
  assign scratch_o.addr = 8'({scratch_word, 2'b00});
  assign scratch_o.data = {96'b0, req_i.wdata};
  always_comb begin
    scratch_o.we = '0;
    for (int unsigned i = 0; i < 4; i++) scratch_o.we[i] = scratch_write && req_i.wmask[8*i];
  end

  // ---------------------------------------------------------------------------------------------
  // What the registers show
  // ---------------------------------------------------------------------------------------------
  counters_t counters;

  npu_cmd_counters u_counters (
    .clk_i,
    .rst_ni,
    .clear_perf_i(regs.PERF_ERRORS.CLEAR.value),
    .clear_ring_i(clear_o),
    .events_i,
    .thermal_i   (regs.PERF_THERMAL_THROTTLE.ADD.swmod),
    .busy_i      (status_i.busy),
    .ring_busy_i (status_i.ring_busy),
    .counters_o  (counters)
  );

  always_comb begin
    for (int unsigned i = 0; i < 16; i++) begin
      regs_in.SCRATCH[i].rd_ack  = regs.SCRATCH[i].req && !regs.SCRATCH[i].req_is_wr;
      regs_in.SCRATCH[i].wr_ack  = regs.SCRATCH[i].req && regs.SCRATCH[i].req_is_wr;
      regs_in.SCRATCH[i].rd_data = scratch_rdata_i;
    end

    regs_in.RESULT.VALUE.next                = status_i.unit.result;
    regs_in.RESULT_HI.VALUE.next             = status_i.unit.result_hi;
    regs_in.CTRL_STATUS.BUSY.next            = status_i.busy;
    regs_in.CTRL_STATUS.DONE.next            = status_i.done;
    regs_in.CTRL_STATUS.ERROR.next           = status_i.error;
    regs_in.DEBUG.BUSY_COUNT.next            = status_i.unit.busy_count;
    regs_in.DEBUG.OPCODE.next                = status_i.unit.opcode;
    regs_in.DEBUG.GEMM_BUSY.next             = status_i.unit.gemm_busy;
    regs_in.DEBUG.VECTOR_BUSY.next           = status_i.unit.vector_busy;

    regs_in.DESC_TAIL.VALUE.next             = ring_i.tail;
    regs_in.DESC_TAIL.VALUE.we               = ring_i.tail_we;
    regs_in.DESC_TAIL.VALUE.swwel            = status_i.busy;
    regs_in.DESC_STATUS.EMPTY.next           = status_i.code[0];
    regs_in.DESC_STATUS.DONE.next            = status_i.code[1];
    regs_in.DESC_STATUS.ERROR.next           = status_i.code[2];
    regs_in.DESC_STATUS.TIMEOUT.next         = status_i.code[3];
    regs_in.DESC_STATUS.RESPONSE.next        = status_i.code[4];
    regs_in.DESC_STATUS.STREAM.next          = status_i.code[5];
    regs_in.DESC_STATUS.OWNER.next           = status_i.code[6];
    regs_in.DESC_STATUS.WRITEBACK.next       = status_i.code[7];
    regs_in.DESC_STATUS.BUSY.next            = status_i.ring_busy;
    regs_in.DESC_STATUS.INDEX.next           = status_i.index;
    regs_in.DESC_STATUS.PENDING.next         = ring_o.head - ring_o.tail;

    regs_in.CQ_BASE.VALUE.swwel              = status_i.busy;
    regs_in.CQ_CTRL.ENABLE.swwel             = status_i.busy;
    regs_in.CQ_CTRL.LOG2_SIZE.swwel          = status_i.busy;
    regs_in.CQ_HEAD.VALUE.next               = status_i.cq_head;
    regs_in.CMD_IRQ.ENTRY.hwset              = ring_i.entry && regs.CMD_IRQ.PER_ENTRY.value;
    regs_in.CMD_IRQ.ENTRY.hwclr              = clear_o || started_i;
    regs_in.CMD_CONFIG.SCRATCH_BYTES.next    = 16'(ScratchBytes);

    regs_in.PERF_CYCLES.VALUE.next           = counters.cycles;
    regs_in.PERF_MACS.VALUE.next             = counters.macs;
    regs_in.PERF_OPS.VALUE.next              = counters.ops;
    regs_in.PERF_ERRORS.COUNT.next           = counters.errors;
    regs_in.PERF_UNSUPPORTED_OPS.VALUE.next  = counters.unsupported;
    regs_in.PERF_STALL_CYCLES.VALUE.next     = counters.stalls;
    regs_in.PERF_SCRATCH_BYTES.VALUE.next    = counters.scratch_bytes;
    regs_in.PERF_THERMAL_THROTTLE.COUNT.next = counters.thermal;
    regs_in.DESC_TIMEOUT_COUNT.VALUE.next    = counters.ring_cycles;
    regs_in.DESC_READ_BEATS.VALUE.next       = counters.read_words;
    regs_in.DESC_BYTES_READ.VALUE.next       = {counters.read_words[29:0], 2'b00};
    regs_in.DESC_WRITE_BEATS.VALUE.next      = counters.write_words;
    regs_in.DESC_BYTES_WRITTEN.VALUE.next    = {counters.write_words[29:0], 2'b00};
  end

`ifndef SYNTHESIS
  AckBehindWrite_A :
  assert property (@(posedge clk_i) disable iff (!rst_ni) req_i.valid && req_i.write |-> !rsp_o.ack)
  else $error("npu_cmd_window: a write is acknowledged in its own cycle");
`endif

endmodule
