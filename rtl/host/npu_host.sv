// SPDX-License-Identifier: Apache-2.0
//
// The host's view of the chip: register windows behind the AXI4-Lite slave, and the registers of
// the sequencer. Windows that do not exist read zero and ignore writes.

module npu_host
  import npu_pkg::*;
  import npu_mem_pkg::*;
  import npu_start_pkg::*;
  import npu_isa_pkg::*;
  import npu_host_pkg::*;
#(
  parameter int unsigned ArrayDim = 16,  // rows and columns of the systolic array: 4, 8, 16 or 32
  parameter int unsigned SramKiB = 256,  // KiB of SRAM: a power of two from 4 to 1024
  parameter int unsigned AccRows = 128,  // rows of an accumulator bank: a power of two, at least 4
  parameter int unsigned FifoKiB = 32,  // KiB of the stream's FIFO: a power of two, at least 4
  parameter int unsigned NormMax = 8192,  // longest row of a norm: a multiple of 16, 32 to 8192
  parameter bit NarrowFormats = 1'b1  // weights in formats of the stream other than int8
) (
  input logic clk_i,  // clock
  input logic rst_ni, // reset, active low

  // Register port
  input  npu_axi_pkg::axil_req_t axil_req_i,  // keeps the rules of AXI4-Lite
  output npu_axi_pkg::axil_rsp_t axil_rsp_o,  // ready only with valid; answers stay until taken

  output logic irq_o,  // a level, until the host clears its reason

  // Window of the command port
  output window_req_t cmd_req_o,  // one access at a time
  input  window_rsp_t cmd_rsp_i,  // ack once per access, in its cycle or later
  input  logic        cmd_irq_i,  // interrupt of the command port: a level

  // Window of the coprocessor
  output window_req_t cop_req_o,  // one access at a time
  input  window_rsp_t cop_rsp_i,  // ack once per access, in its cycle or later
  input  logic        cop_irq_i,  // a fault of the coprocessor stands: a level

  // To and from the core
  output control_t            control_o,       // pulses, a cycle after the host's access
  output start_state_t        start_state_o,   // as the registers stand: a level
  output start_value_t        start_value_o,   // behind every start: the machine's first values
  output logic          [4:0] stream_limit_o,  // bursts, a level; 0: the chip finds it
  output mem_settings_t       memory_o,        // as the registers stand: a level
  input  run_status_t         status_i,        // how the program goes
  input  generated_t          generated_i,     // levels: OUTCNT, LAST_TOKEN, LAST_POS
  input  events_t             events_i         // what happens in this cycle
);

  localparam logic [3:0] CmdWindow = 4'h0;
  localparam logic [3:0] SeqWindow = 4'h1;
  localparam logic [3:0] CopWindow = 4'h2;
  localparam logic [3:0] ChipWindow = 4'h3;

  logic [3:0] window;
  window_req_t req, chip_req;
  window_rsp_t rsp, seq_rsp, start_rsp, chip_rsp;
  logic in_cmd, in_seq, in_cop, in_chip, start_known;

  npu_axil_slave u_slave (
    .clk_i,
    .rst_ni,
    .axil_req_i,
    .axil_rsp_o,
    .window_o(window),
    .req_o   (req),
    .rsp_i   (rsp)
  );

  assign in_cmd  = window == CmdWindow;
  assign in_seq  = window == SeqWindow;
  assign in_cop  = window == CopWindow;
  assign in_chip = window == ChipWindow;

  always_comb begin
    rsp = '0;
    if (in_cmd) rsp |= cmd_rsp_i;
    if (in_seq) rsp |= start_known ? start_rsp : seq_rsp;
    if (in_cop) rsp |= cop_rsp_i;
    if (in_chip) rsp |= chip_rsp;
    if (!(in_cmd || in_seq || in_cop || in_chip)) rsp.ack = req.valid;
  end

  // ---------------------------------------------------------------------------------------------
  // Window 0x100: sequencer
  // ---------------------------------------------------------------------------------------------
  logic seq_rd_ack, seq_wr_ack;
  window_req_t start_req;
  npu_seq_regs_pkg::npu_seq_regs__in_t seq_in;
  npu_seq_regs_pkg::npu_seq_regs__out_t seq_out;

  npu_seq_regs u_seq_regs (
    .clk                 (clk_i),
    .rst_n               (rst_ni),
    .s_cpuif_req         (req.valid && in_seq && !start_known),
    .s_cpuif_req_is_wr   (req.write),
    .s_cpuif_addr        (req.addr),
    .s_cpuif_wr_data     (req.wdata),
    .s_cpuif_wr_biten    (req.wmask),
    .s_cpuif_req_stall_wr(),
    .s_cpuif_req_stall_rd(),
    .s_cpuif_rd_ack      (seq_rd_ack),
    .s_cpuif_rd_err      (),
    .s_cpuif_rd_data     (seq_rsp.rdata),
    .s_cpuif_wr_ack      (seq_wr_ack),
    .s_cpuif_wr_err      (),
    .hwif_in             (seq_in),
    .hwif_out            (seq_out)
  );

  assign seq_rsp.ack = seq_rd_ack || seq_wr_ack;

  npu_start_values u_start_values (
    .clk_i,
    .rst_ni,
    .req_i  (start_req),
    .known_o(start_known),
    .rsp_o  (start_rsp),
    .start_i(status_i.started),
    .value_o(start_value_o)
  );

  // The report of an error goes when the host clears it.
  logic failed_q;

  always_ff @(posedge clk_i) begin
    if (!rst_ni) failed_q <= 1'b0;
    else if (status_i.started) failed_q <= 1'b0;
    else failed_q <= status_i.failed || (failed_q && seq_out.STATUS.ERROR.value);
  end

  always_comb begin
    seq_in.STATUS.DONE.next         = status_i.done;
    seq_in.STATUS.BUSY.next         = status_i.busy;
    seq_in.STATUS.ERROR.hwset       = status_i.failed;
    seq_in.STATUS.ERROR.hwclr       = status_i.started;
    seq_in.STATUS.ERROR_CODE.next   = failed_q ? status_i.error.code : ErrNone;
    seq_in.STATUS.ERROR_ENGINE.next = failed_q ? status_i.error.engine : EngLd;
    seq_in.ERROR_INSTR.VALUE.next   = failed_q ? status_i.error.instr : '0;
    seq_in.ERROR_ADDR.VALUE.next    = failed_q ? status_i.error.addr : '0;
    seq_in.OUTCNT.VALUE.next        = generated_i.outcnt;
    seq_in.LAST_TOKEN.VALUE.next    = generated_i.token;
    seq_in.LAST_POS.VALUE.next      = generated_i.pos;
  end

  assign control_o.start         = seq_out.CTRL.START.value;
  assign control_o.abort_program = seq_out.CTRL.ABORT.value;
  assign control_o.soft_reset    = seq_out.CTRL.SOFT_RESET.value;
  assign start_state_o           = start_state_of(seq_out);
  assign stream_limit_o          = seq_out.STREAM_LIMIT.BURSTS.value;

  // ---------------------------------------------------------------------------------------------
  // Window 0x300: chip
  // ---------------------------------------------------------------------------------------------
  npu_chip_window #(
    .ArrayDim(ArrayDim),
    .SramKiB(SramKiB),
    .AccRows(AccRows),
    .FifoKiB(FifoKiB),
    .NormMax(NormMax),
    .NarrowFormats(NarrowFormats)
  ) u_chip (
    .clk_i,
    .rst_ni,
    .req_i(chip_req),
    .rsp_o(chip_rsp),
    .irq_o,
    .cmd_irq_i,
    .cop_irq_i,
    .memory_o,
    .started_i(status_i.started),
    .busy_i   (status_i.busy),
    .finish_i (status_i.finish),
    .events_i
  );

  // ---------------------------------------------------------------------------------------------
  // Windows 0x000 and 0x200: command port and coprocessor; who is asked
  // ---------------------------------------------------------------------------------------------
  always_comb begin
    cmd_req_o       = req;
    cmd_req_o.valid = req.valid && in_cmd;
    start_req       = req;
    start_req.valid = req.valid && in_seq;
    cop_req_o       = req;
    cop_req_o.valid = req.valid && in_cop;
    chip_req        = req;
    chip_req.valid  = req.valid && in_chip;
  end

endmodule
