// SPDX-License-Identifier: Apache-2.0
//
// The host's view of the chip: register windows behind the AXI4-Lite slave, and the registers of the
// sequencer. Windows that do not exist read zero and ignore writes.

module npu_host
  import npu_pkg::*;
  import npu_isa_pkg::*;
#(
  parameter int unsigned ArrayDim = 16,
  parameter int unsigned SramKiB  = 256,
  parameter int unsigned AccRows  = 128,
  parameter int unsigned FifoKiB  = 32,
  parameter int unsigned NormMax  = 8192
) (
  input logic clk_i,
  input logic rst_ni,

  input  logic        s_axil_awvalid_i,
  output logic        s_axil_awready_o,
  input  logic [11:0] s_axil_awaddr_i,
  input  logic        s_axil_wvalid_i,
  output logic        s_axil_wready_o,
  input  logic [31:0] s_axil_wdata_i,
  input  logic [ 3:0] s_axil_wstrb_i,
  output logic        s_axil_bvalid_o,
  input  logic        s_axil_bready_i,
  output logic [ 1:0] s_axil_bresp_o,
  input  logic        s_axil_arvalid_i,
  output logic        s_axil_arready_o,
  input  logic [11:0] s_axil_araddr_i,
  output logic        s_axil_rvalid_o,
  input  logic        s_axil_rready_i,
  output logic [31:0] s_axil_rdata_o,
  output logic [ 1:0] s_axil_rresp_o,

  output logic irq_o,

  // Window of the command port: one access, a pulse, acknowledged in the same cycle or later
  output logic        cmd_req_o,
  output logic        cmd_write_o,
  output logic [ 7:0] cmd_addr_o,
  output logic [31:0] cmd_wdata_o,
  output logic [31:0] cmd_wmask_o,
  input  logic        cmd_ack_i,
  input  logic [31:0] cmd_rdata_i,
  input  logic        cmd_irq_i,

  // To and from the core
  output logic              start_o,
  output logic              abort_o,
  output logic              soft_reset_o,
  output mem_addr_t         ucode_base_o,
  output logic       [31:0] ucode_length_o,
  output mem_addr_t         stream_base_o,
  output logic       [31:0] stream_length_o,
  output logic       [ 4:0] stream_limit_o,
  output machine_t          start_regs_o,
  output region_t           regions_o      [NumRegions],
  output logic       [23:0] timeout_o,
  input  logic              started_i,
  input  logic              busy_i,
  input  logic              done_i,
  input  logic              finish_i,
  input  logic              failed_i,
  input  fault_t            error_i,
  input  generated_t        generated_i,

  // Events to count
  input logic [          11:0] macs_i,
  input logic                  instr_i,
  input logic                  read_beat_i,
  input logic                  write_beat_i,
  input logic                  stream_beat_i,
  input logic [NumEngines-1:0] engine_busy_i,
  input logic [NumEngines-1:0] engine_stall_i
);

  localparam logic [3:0] CmdWindow = 4'h0;
  localparam logic [3:0] SeqWindow = 4'h1;
  localparam logic [3:0] ChipWindow = 4'h3;

  logic req, req_write, ack, seq_ack, chip_ack;
  logic [11:0] req_addr;
  logic [31:0] req_wdata, req_wmask, rdata, seq_rdata, chip_rdata;
  logic seq_rd_ack, seq_wr_ack, in_cmd, in_seq, in_chip;

  npu_axil_slave u_slave (
    .clk_i,
    .rst_ni,
    .s_axil_awvalid_i,
    .s_axil_awready_o,
    .s_axil_awaddr_i,
    .s_axil_wvalid_i,
    .s_axil_wready_o,
    .s_axil_wdata_i,
    .s_axil_wstrb_i,
    .s_axil_bvalid_o,
    .s_axil_bready_i,
    .s_axil_bresp_o,
    .s_axil_arvalid_i,
    .s_axil_arready_o,
    .s_axil_araddr_i,
    .s_axil_rvalid_o,
    .s_axil_rready_i,
    .s_axil_rdata_o,
    .s_axil_rresp_o,
    .req_o      (req),
    .req_write_o(req_write),
    .req_addr_o (req_addr),
    .req_wdata_o(req_wdata),
    .req_wmask_o(req_wmask),
    .ack_i      (ack),
    .rdata_i    (rdata)
  );

  assign in_cmd  = req_addr[11:8] == CmdWindow;
  assign in_seq  = req_addr[11:8] == SeqWindow;
  assign in_chip = req_addr[11:8] == ChipWindow;
  assign seq_ack = seq_rd_ack || seq_wr_ack;

  always_comb begin
    unique case (1'b1)
      in_cmd:  {ack, rdata} = {cmd_ack_i, cmd_rdata_i};
      in_seq:  {ack, rdata} = {seq_ack, seq_rdata};
      in_chip: {ack, rdata} = {chip_ack, chip_rdata};
      default: {ack, rdata} = {1'b1, 32'b0};
    endcase
  end

  // ---------------------------------------------------------------------------------------------
  // Window 0x100: sequencer
  // ---------------------------------------------------------------------------------------------
  npu_seq_regs_pkg::npu_seq_regs__in_t  seq_in;
  npu_seq_regs_pkg::npu_seq_regs__out_t seq_out;

  npu_seq_regs u_seq_regs (
    .clk                 (clk_i),
    .arst_n              (rst_ni),
    .s_cpuif_req         (req && in_seq),
    .s_cpuif_req_is_wr   (req_write),
    .s_cpuif_addr        (req_addr[7:0]),
    .s_cpuif_wr_data     (req_wdata),
    .s_cpuif_wr_biten    (req_wmask),
    .s_cpuif_req_stall_wr(),
    .s_cpuif_req_stall_rd(),
    .s_cpuif_rd_ack      (seq_rd_ack),
    .s_cpuif_rd_err      (),
    .s_cpuif_rd_data     (seq_rdata),
    .s_cpuif_wr_ack      (seq_wr_ack),
    .s_cpuif_wr_err      (),
    .hwif_in             (seq_in),
    .hwif_out            (seq_out)
  );

  // The report of an error goes when the host clears it.
  logic failed;
  assign failed = seq_out.STATUS.ERROR.value && error_i.valid;

  always_comb begin
    seq_in.STATUS.DONE.next         = done_i;
    seq_in.STATUS.BUSY.next         = busy_i;
    seq_in.STATUS.ERROR.hwset       = failed_i;
    seq_in.STATUS.ERROR.hwclr       = started_i;
    seq_in.STATUS.ERROR_CODE.next   = failed ? error_i.code : ErrNone;
    seq_in.STATUS.ERROR_ENGINE.next = failed ? error_i.engine : EngLd;
    seq_in.ERROR_INSTR.VALUE.next   = failed ? error_i.instr : '0;
    seq_in.ERROR_ADDR.VALUE.next    = failed ? error_i.addr : '0;
    seq_in.OUTCNT.VALUE.next        = generated_i.outcnt;
    seq_in.LAST_TOKEN.VALUE.next    = generated_i.token;
    seq_in.LAST_POS.VALUE.next      = generated_i.pos;
  end

  assign start_o         = seq_out.CTRL.START.value;
  assign abort_o         = seq_out.CTRL.ABORT.value;
  assign soft_reset_o    = seq_out.CTRL.SOFT_RESET.value;
  assign ucode_base_o    = {seq_out.UCODE_BASE.VALUE.value, 4'b0};
  assign ucode_length_o  = seq_out.UCODE_LEN.VALUE.value;
  assign stream_base_o   = {seq_out.DDR_BASE_WGT.VALUE.value, 6'b0};
  assign stream_length_o = {seq_out.STREAM_LEN.VALUE.value, 6'b0};
  assign stream_limit_o  = seq_out.STREAM_LIMIT.BURSTS.value;

  always_comb begin
    start_regs_o.pos           = seq_out.POS.VALUE.value;
    start_regs_o.token         = seq_out.TOKEN.VALUE.value;
    start_regs_o.window        = seq_out.WINDOW.VALUE.value;
    start_regs_o.outcnt        = '0;
    start_regs_o.loopleft      = seq_out.LOOPLEFT.VALUE.value;
    start_regs_o.eos           = seq_out.EOS.VALUE.value;
    start_regs_o.kvbase        = {seq_out.DDR_BASE_KV.VALUE.value, 8'b0};
    start_regs_o.kvlayer       = {seq_out.KVLAYER.VALUE.value, 8'b0};
    start_regs_o.kvhead        = {seq_out.KVHEAD.VALUE.value, 8'b0};
    start_regs_o.kvvoff        = {seq_out.KVVOFF.VALUE.value, 8'b0};
    start_regs_o.kvcap         = seq_out.KVCAP.VALUE.value;
    start_regs_o.cache_in_sram = !seq_out.KV_CTRL.IN_MEMORY.value;
    start_regs_o.base[0]       = seq_out.DDR_BASE_ACT.VALUE.value;
    start_regs_o.base[1]       = seq_out.DDR_BASE_OUT.VALUE.value;
    start_regs_o.base[2]       = seq_out.BASE2.VALUE.value;
    start_regs_o.base[3]       = seq_out.BASE3.VALUE.value;
    start_regs_o.base[4]       = seq_out.BASE4.VALUE.value;
    start_regs_o.base[5]       = seq_out.BASE5.VALUE.value;
    start_regs_o.base[6]       = seq_out.BASE6.VALUE.value;
    start_regs_o.base[7]       = seq_out.BASE7.VALUE.value;
  end

  // ---------------------------------------------------------------------------------------------
  // Window 0x300: chip
  // ---------------------------------------------------------------------------------------------
  npu_chip_window #(
    .ArrayDim(ArrayDim),
    .SramKiB (SramKiB),
    .AccRows (AccRows),
    .FifoKiB (FifoKiB),
    .NormMax (NormMax)
  ) u_chip (
    .clk_i,
    .rst_ni,
    .req_i      (req && in_chip),
    .req_write_i(req_write),
    .req_addr_i (req_addr[7:0]),
    .req_wdata_i(req_wdata),
    .req_wmask_i(req_wmask),
    .ack_o      (chip_ack),
    .rdata_o    (chip_rdata),
    .irq_o,
    .cmd_irq_i,
    .regions_o,
    .timeout_o,
    .started_i,
    .busy_i,
    .finish_i,
    .macs_i,
    .instr_i,
    .read_beat_i,
    .write_beat_i,
    .stream_beat_i,
    .engine_busy_i,
    .engine_stall_i
  );

  // ---------------------------------------------------------------------------------------------
  // Window 0x000: command port
  // ---------------------------------------------------------------------------------------------
  assign cmd_req_o   = req && in_cmd;
  assign cmd_write_o = req_write;
  assign cmd_addr_o  = req_addr[7:0];
  assign cmd_wdata_o = req_wdata;
  assign cmd_wmask_o = req_wmask;

endmodule
