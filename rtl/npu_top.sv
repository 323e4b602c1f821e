// SPDX-License-Identifier: Apache-2.0
//
// Tessera: a transformer NPU. The host programs it over AXI4-Lite and is woken by an interrupt; the
// chip fetches its program, parameters and data over one AXI4 master port and writes results back.

module npu_top
  import npu_pkg::*;
  import npu_mem_pkg::*;
  import npu_stream_pkg::*;
  import npu_start_pkg::*;
  import npu_host_pkg::*;
  import npu_cop_pkg::*;
#(
  parameter int unsigned ArrayDim = 16,  // rows and columns of the systolic array: 4, 8, 16 or 32
  parameter int unsigned SramKiB = 256,  // KiB of SRAM, a power of two from 4 to 1024
  // Rows of an accumulator bank, a power of two of at least 4
  parameter int unsigned AccRows = 128,
  parameter int unsigned FifoKiB = 32,  // KiB of the parameter FIFO, a power of two of at least 4
  // Longest norm row in columns, a multiple of 16 from 32 to 8192
  parameter int unsigned NormMax = 8192,
  // Formats of weights in the stream other than int8
  parameter bit NarrowFormats = 1'b1,
  parameter bit EnableCmd = 1'b1,  // with the command port
  parameter int unsigned CmdScratchBytes = 64,  // bytes of its scratchpad: 64, 128 or 256
  parameter bit EnableCop = 1'b1,  // with the coprocessor
  parameter int unsigned CopNumRs = 3,  // X_NUM_RS: operands that its host delivers, 2 or 3
  parameter int unsigned CopIdWidth = 4,  // X_ID_WIDTH: bits of an identifier, 3 to 32
  parameter int unsigned CopHartIdWidth = 1,  // X_HARTID_WIDTH: bits of a hart's number, 1 to 32
  // X_ISSUE_REGISTER_SPLIT: operands come behind the issue, not with it
  parameter bit CopIssueRegisterSplit = 1'b0
) (
  input  logic clk_i,   // clock
  input  logic rst_ni,  // reset, active low; asynchronous
  output logic irq_o,   // a level, while an enabled cause stands in IRQ_STATUS

  // In reset, and in two cycles after it, every valid of the chip is 0, and so is every ready that
  // answers one, but where it says that it always is 1.

  // Host: AXI4-Lite slave
  input  logic        s_axil_awvalid_i,  // a write; stays until ready, address stable
  // Only with both awvalid and wvalid, which are taken together
  output logic        s_axil_awready_o,
  input  logic [11:0] s_axil_awaddr_i,   // bytes; not a multiple of 4: SLVERR, nothing is written
  input  logic        s_axil_wvalid_i,   // its data; stays until ready, all stable
  output logic        s_axil_wready_o,   // the same as awready
  input  logic [31:0] s_axil_wdata_i,    // four bytes, with wvalid
  input  logic [ 3:0] s_axil_wstrb_i,    // which of them are written, with wvalid
  // The cycle after the write was taken or later; stays until ready
  output logic        s_axil_bvalid_o,
  input  logic        s_axil_bready_i,   // may depend on bvalid
  output logic [ 1:0] s_axil_bresp_o,    // OKAY or SLVERR, stable while bvalid
  input  logic        s_axil_arvalid_i,  // a read; stays until ready, address stable
  // Only with arvalid; where both wait, writes and reads take turns
  output logic        s_axil_arready_o,
  input  logic [11:0] s_axil_araddr_i,   // bytes; not a multiple of 4: SLVERR, zero is read
  // Two cycles after the read was taken or later; stays until ready
  output logic        s_axil_rvalid_o,
  input  logic        s_axil_rready_i,   // may depend on rvalid
  output logic [31:0] s_axil_rdata_o,    // four bytes, stable while rvalid
  output logic [ 1:0] s_axil_rresp_o,    // OKAY or SLVERR, stable while rvalid

  // RISC-V host: CV-X-IF 1.0 for one hart, without compressed interface; all inputs 0 where there is
  // none. Two or three values stand for rs1, rs2 and x[rd].
  input logic x_issue_valid_i,  // an instruction; another id or hartid is another one
  output logic x_issue_ready_o,  // it is answered; without the split the values it needs are there
  input logic [31:0] x_issue_instr_i,  // instruction word, with valid; stable
  input logic [CopHartIdWidth-1:0] x_issue_hartid_i,  // whose it is, with valid
  input logic [CopIdWidth-1:0] x_issue_id_i,  // its identifier, with valid
  output logic x_issue_accept_o,  // it is the coprocessor's, with ready
  output logic x_issue_writeback_o,  // its result goes to rd, with accept
  output logic [CopNumRs-1:0] x_issue_register_read_o,  // values it needs, with accept
  // Which of rs1, rs2, rd are f registers on a host that has them, with accept
  output logic [2:0] x_issue_float_o,
  input logic x_register_valid_i,  // values: together with the issue; with the split a pulse behind
  output logic x_register_ready_o,  // the same as that of the issue; 1 with the split
  input logic [CopHartIdWidth-1:0] x_register_hartid_i,  // whose they are, with valid
  input logic [CopIdWidth-1:0] x_register_id_i,  // likewise
  input logic [CopNumRs-1:0][31:0] x_register_rs_i,  // the values, stable once they are valid
  // Which of them are valid, with valid; they come in any order, with the split all at once
  input logic [CopNumRs-1:0] x_register_rs_valid_i,
  input logic x_commit_valid_i,  // pulse, from the first cycle of the issue on
  input logic [CopHartIdWidth-1:0] x_commit_hartid_i,  // whose it is, with valid
  input logic [CopIdWidth-1:0] x_commit_id_i,  // the instruction meant, of whomever, with valid
  // 1: it and all newer ones are killed; 0: it and all older ones are committed
  input logic x_commit_kill_i,
  output logic x_result_valid_o,  // a result, in order; stays until ready, stable
  input logic x_result_ready_i,  // takes it; may depend on valid
  output logic [CopHartIdWidth-1:0] x_result_hartid_o,  // whose it is, with valid
  output logic [CopIdWidth-1:0] x_result_id_o,  // the instruction, with valid
  output logic [4:0] x_result_rd_o,  // its rd field, with valid
  output logic x_result_we_o,  // data goes to rd, with valid
  output logic [31:0] x_result_data_o,  // the value, with we

  // Memory: AXI4 master, INCR bursts of 16-byte beats
  output logic         m_axi_arvalid_o,  // a read burst; stays until ready, all stable
  input  logic         m_axi_arready_i,  // may depend on arvalid
  // Number of the client's engine; 8 descriptors, 9 stream; 12, 13 coprocessor
  output logic [  3:0] m_axi_arid_o,
  // Bytes, a multiple of 16; the burst stays in its 4 KiB page
  output logic [ 31:0] m_axi_araddr_o,
  output logic [  7:0] m_axi_arlen_o,    // beats - 1, 0 to 31
  output logic [  2:0] m_axi_arsize_o,   // always 4: 16 bytes
  output logic [  1:0] m_axi_arburst_o,  // always 1: INCR
  input  logic         m_axi_rvalid_i,   // a beat; taken at once
  output logic         m_axi_rready_o,   // always 1
  // Of its burst; in order within an ID, beats of IDs may mix
  input  logic [  3:0] m_axi_rid_i,
  input  logic [127:0] m_axi_rdata_i,    // a word, with rvalid
  input  logic [  1:0] m_axi_rresp_i,    // bit 1: an error, with rvalid
  input  logic         m_axi_rlast_i,    // the last beat of its burst, with rvalid
  output logic         m_axi_awvalid_o,  // a write burst; stays until ready, all stable
  input  logic         m_axi_awready_i,  // may depend on awvalid; the data may be taken first
  output logic [  3:0] m_axi_awid_o,     // 1 store engine, 8 command port, 12 coprocessor
  // Bytes, a multiple of 16; the burst stays in its 4 KiB page
  output logic [ 31:0] m_axi_awaddr_o,
  output logic [  7:0] m_axi_awlen_o,    // beats - 1, 0 to 31
  output logic [  2:0] m_axi_awsize_o,   // always 4: 16 bytes
  output logic [  1:0] m_axi_awburst_o,  // always 1: INCR
  output logic         m_axi_wvalid_o,   // later than its awvalid; stays until ready, all stable
  input  logic         m_axi_wready_i,   // may depend on wvalid
  output logic [127:0] m_axi_wdata_o,    // a word, with wvalid
  output logic [ 15:0] m_axi_wstrb_o,    // which bytes to write, maybe none; with wvalid
  output logic         m_axi_wlast_o,    // the last beat of its burst, with wvalid
  input  logic         m_axi_bvalid_i,   // the answer to a burst; taken at once
  output logic         m_axi_bready_o,   // always 1
  input  logic [  3:0] m_axi_bid_i,      // of its burst, with bvalid; those of one ID in order
  input  logic [  1:0] m_axi_bresp_i     // bit 1: an error, with bvalid
);

  localparam logic [2:0] SizeWord = 3'd4;
  localparam logic [1:0] BurstIncr = 2'b01;

  // Host
  npu_axi_pkg::axil_req_t axil_req;
  npu_axi_pkg::axil_rsp_t axil_rsp;

  // What is set for the core, and what it says
  control_t control;
  start_state_t start_state;
  start_value_t start_value;
  stream_range_t used_stream;
  logic [4:0] stream_limit;
  mem_settings_t memory;
  run_status_t status;
  generated_t generated;
  events_t events;

  // Memory: of the core, of the chip
  npu_axi_pkg::axi_req_t core_req, bus_req;
  npu_axi_pkg::axi_rsp_t core_rsp, bus_rsp;

  // Command port
  window_req_t cmd_req;
  window_rsp_t cmd_rsp;
  logic cmd_irq;
  launch_req_t launch_req;
  launch_rsp_t launch_rsp;
  npu_axi_pkg::axi_req_t cmd_axi_req;
  npu_axi_pkg::axi_rsp_t cmd_axi_rsp;

  // Coprocessor
  window_req_t cop_req;
  window_rsp_t cop_rsp;
  logic cop_irq;
  x_req_t x_req;
  x_commit_t x_commit;
  x_rsp_t x_rsp;
  x_result_t x_result;
  npu_axi_pkg::axi_req_t cop_axi_req;
  npu_axi_pkg::axi_rsp_t cop_axi_rsp;

  // ---------------------------------------------------------------------------------------------
  // Reset: nothing is offered or taken in it, even while the clock stands still
  // ---------------------------------------------------------------------------------------------
  logic rst_n, irq;

  npu_reset_sync u_reset (
    .clk_i,
    .rst_ni,
    .rst_no(rst_n)
  );

  // ---------------------------------------------------------------------------------------------
  // Host and core
  // ---------------------------------------------------------------------------------------------
  npu_host #(
    .ArrayDim(ArrayDim),
    .SramKiB(SramKiB),
    .AccRows(AccRows),
    .FifoKiB(FifoKiB),
    .NormMax(NormMax),
    .NarrowFormats(NarrowFormats)
  ) u_host (
    .clk_i,
    .rst_ni        (rst_n),
    .axil_req_i    (axil_req),
    .axil_rsp_o    (axil_rsp),
    .irq_o         (irq),
    .cmd_req_o     (cmd_req),
    .cmd_rsp_i     (cmd_rsp),
    .cmd_irq_i     (cmd_irq),
    .cop_req_o     (cop_req),
    .cop_rsp_i     (cop_rsp),
    .cop_irq_i     (cop_irq),
    .control_o     (control),
    .start_state_o (start_state),
    .start_value_o (start_value),
    .stream_limit_o(stream_limit),
    .memory_o      (memory),
    .status_i      (status),
    .generated_i   (generated),
    .events_i      (events)
  );

  assign axil_req = '{
          awvalid: s_axil_awvalid_i,
          awaddr: s_axil_awaddr_i,
          wvalid: s_axil_wvalid_i,
          wdata: s_axil_wdata_i,
          wstrb: s_axil_wstrb_i,
          bready: s_axil_bready_i,
          arvalid: s_axil_arvalid_i,
          araddr: s_axil_araddr_i,
          rready: s_axil_rready_i
      };
  assign irq_o = irq && rst_n;
  assign s_axil_awready_o = axil_rsp.awready && rst_n;
  assign s_axil_wready_o = axil_rsp.wready && rst_n;
  assign s_axil_bvalid_o = axil_rsp.bvalid && rst_n;
  assign s_axil_bresp_o = axil_rsp.bresp;
  assign s_axil_arready_o = axil_rsp.arready && rst_n;
  assign s_axil_rvalid_o = axil_rsp.rvalid && rst_n;
  assign s_axil_rdata_o = axil_rsp.rdata;
  assign s_axil_rresp_o = axil_rsp.rresp;

  npu_core #(
    .ArrayDim(ArrayDim),
    .SramKiB(SramKiB),
    .AccRows(AccRows),
    .FifoKiB(FifoKiB),
    .NormMax(NormMax),
    .NarrowFormats(NarrowFormats)
  ) u_core (
    .clk_i,
    .rst_ni        (rst_n),
    .control_i     (control),
    .start_state_i (start_state),
    .start_value_i (start_value),
    .stream_limit_i(stream_limit),
    .memory_i      (memory),
    .status_o      (status),
    .generated_o   (generated),
    .stream_o      (used_stream),
    .launch_i      (launch_req),
    .launch_o      (launch_rsp),
    .events_o      (events),
    .axi_req_o     (core_req),
    .axi_rsp_i     (core_rsp)
  );

  // ---------------------------------------------------------------------------------------------
  // Command port
  // ---------------------------------------------------------------------------------------------
  if (EnableCmd) begin : gen_cmd
    npu_cmd #(
      .ScratchBytes(CmdScratchBytes)
    ) u_cmd (
      .clk_i,
      .rst_ni      (rst_n),
      .req_i       (cmd_req),
      .rsp_o       (cmd_rsp),
      .irq_o       (cmd_irq),
      .soft_reset_i(control.soft_reset),
      .regions_i   (memory.regions),
      .stream_i    (used_stream),
      .launch_o    (launch_req),
      .launch_i    (launch_rsp),
      .axi_req_o   (cmd_axi_req),
      .axi_rsp_i   (cmd_axi_rsp)
    );
  end else begin : gen_no_cmd
    assign cmd_rsp     = '{ack: cmd_req.valid, rdata: '0};
    assign cmd_irq     = 1'b0;
    assign launch_req  = '0;
    assign cmd_axi_req = '0;
  end

  // ---------------------------------------------------------------------------------------------
  // Coprocessor
  // ---------------------------------------------------------------------------------------------
  assign x_req = '{
          issue: '{
              valid: x_issue_valid_i,
              instr: x_issue_instr_i,
              hartid: x_hartid_t'(x_issue_hartid_i),
              id: x_id_t'(x_issue_id_i)
          },
          operands: '{
              valid: x_register_valid_i,
              hartid: x_hartid_t'(x_register_hartid_i),
              id: x_id_t'(x_register_id_i),
              rs: x_sources_t'(96'(x_register_rs_i)),
              rs_valid: 3'(x_register_rs_valid_i)
          },
          result_ready: x_result_ready_i
      };
  assign x_commit = '{
          valid: x_commit_valid_i,
          hartid: x_hartid_t'(x_commit_hartid_i),
          id: x_id_t'(x_commit_id_i),
          kill: x_commit_kill_i
      };
  assign x_issue_ready_o = x_rsp.issue.ready && rst_n;
  assign x_issue_accept_o = x_rsp.issue.accept;
  assign x_issue_writeback_o = x_rsp.issue.writeback;
  assign x_issue_register_read_o = CopNumRs'(x_rsp.issue.register_read);
  assign x_issue_float_o = x_rsp.issue.is_float;
  assign x_register_ready_o = x_rsp.operands_ready && (rst_n || CopIssueRegisterSplit);
  assign x_result_valid_o = x_result.valid && rst_n;
  assign x_result_hartid_o = CopHartIdWidth'(x_result.hartid);
  assign x_result_id_o = CopIdWidth'(x_result.id);
  assign x_result_rd_o = x_result.rd;
  assign x_result_we_o = x_result.we;
  assign x_result_data_o = x_result.data;

  if (EnableCop) begin : gen_cop
    npu_cop #(
      .NumRs(CopNumRs),
      .IdWidth(CopIdWidth),
      .HartIdWidth(CopHartIdWidth),
      .Split(CopIssueRegisterSplit)
    ) u_cop (
      .clk_i,
      .rst_ni      (rst_n),
      .x_req_i     (x_req),
      .x_commit_i  (x_commit),
      .x_rsp_o     (x_rsp),
      .x_result_o  (x_result),
      .req_i       (cop_req),
      .rsp_o       (cop_rsp),
      .irq_o       (cop_irq),
      .soft_reset_i(control.soft_reset),
      .settings_i  (memory),
      .stream_i    (used_stream),
      .axi_req_o   (cop_axi_req),
      .axi_rsp_i   (cop_axi_rsp)
    );
  end else begin : gen_no_cop
    // Every instruction is answered and refused.
    assign x_rsp       = '{issue: '{ready: 1'b1, default: '0}, operands_ready: 1'b1};
    assign x_result    = '0;
    assign cop_rsp     = '{ack: cop_req.valid, rdata: '0};
    assign cop_irq     = 1'b0;
    assign cop_axi_req = '0;
  end

  // ---------------------------------------------------------------------------------------------
  // One bus for all
  // ---------------------------------------------------------------------------------------------
  if (EnableCmd || EnableCop) begin : gen_mux
    npu_axi_mux u_mux (
      .clk_i,
      .rst_ni(rst_n),
      .core_req_i(core_req),
      .core_rsp_o(core_rsp),
      .cmd_req_i(cmd_axi_req),
      .cmd_rsp_o(cmd_axi_rsp),
      .cop_req_i(cop_axi_req),
      .cop_rsp_o(cop_axi_rsp),
      .bus_req_o(bus_req),
      .bus_rsp_i(bus_rsp)
    );
  end else begin : gen_no_mux
    assign bus_req     = core_req;
    assign core_rsp    = bus_rsp;
    assign cmd_axi_rsp = '0;
    assign cop_axi_rsp = '0;
  end

  // ---------------------------------------------------------------------------------------------
  // Memory
  // ---------------------------------------------------------------------------------------------
  assign m_axi_arvalid_o = bus_req.rd.arvalid && rst_n;
  assign m_axi_arid_o = bus_req.rd.arid;
  assign m_axi_araddr_o = bus_req.rd.araddr;
  assign m_axi_arlen_o = bus_req.rd.arlen;
  assign m_axi_rready_o = bus_req.rd.rready;
  assign m_axi_awvalid_o = bus_req.wr.awvalid && rst_n;
  assign m_axi_awid_o = bus_req.wr.awid;
  assign m_axi_awaddr_o = bus_req.wr.awaddr;
  assign m_axi_awlen_o = bus_req.wr.awlen;
  assign m_axi_wvalid_o = bus_req.wr.wvalid && rst_n;
  assign m_axi_wdata_o = bus_req.wr.wdata;
  assign m_axi_wstrb_o = bus_req.wr.wstrb;
  assign m_axi_wlast_o = bus_req.wr.wlast;
  assign m_axi_bready_o = bus_req.wr.bready;
  assign m_axi_arsize_o = SizeWord;
  assign m_axi_arburst_o = BurstIncr;
  assign m_axi_awsize_o = SizeWord;
  assign m_axi_awburst_o = BurstIncr;

  assign bus_rsp.rd.arready = m_axi_arready_i;
  assign bus_rsp.rd.rvalid = m_axi_rvalid_i;
  assign bus_rsp.rd.rid = m_axi_rid_i;
  assign bus_rsp.rd.rdata = m_axi_rdata_i;
  assign bus_rsp.rd.rresp = m_axi_rresp_i;
  assign bus_rsp.rd.rlast = m_axi_rlast_i;
  assign bus_rsp.wr.awready = m_axi_awready_i;
  assign bus_rsp.wr.wready = m_axi_wready_i;
  assign bus_rsp.wr.bvalid = m_axi_bvalid_i;
  assign bus_rsp.wr.bid = m_axi_bid_i;
  assign bus_rsp.wr.bresp = m_axi_bresp_i;

endmodule
