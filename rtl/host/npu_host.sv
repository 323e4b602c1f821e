// SPDX-License-Identifier: Apache-2.0
//
// The host's view of the chip: register windows behind the AXI4-Lite slave, the interrupt, and the
// performance counters. The register blocks are generated from the SystemRDL descriptions; windows
// that do not exist read zero and ignore writes.

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

  localparam logic [7:0] ChipMajor = 8'd0;
  localparam logic [7:0] ChipMinor = 8'd1;
  localparam logic [3:0] SeqWindow = 4'h1;
  localparam logic [3:0] ChipWindow = 4'h3;

  logic req, req_write, ack, seq_ack, chip_ack;
  logic [11:0] req_addr;
  logic [31:0] req_wdata, req_wmask, rdata, seq_rdata, chip_rdata;
  logic seq_rd_ack, seq_wr_ack, chip_rd_ack, chip_wr_ack, in_seq, in_chip;

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

  assign in_seq   = req_addr[11:8] == SeqWindow;
  assign in_chip  = req_addr[11:8] == ChipWindow;
  assign seq_ack  = seq_rd_ack || seq_wr_ack;
  assign chip_ack = chip_rd_ack || chip_wr_ack;
  assign ack      = in_seq ? seq_ack : in_chip ? chip_ack : 1'b1;
  assign rdata    = in_seq ? seq_rdata : in_chip ? chip_rdata : '0;

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
  npu_chip_regs_pkg::npu_chip_regs__in_t  chip_in;
  npu_chip_regs_pkg::npu_chip_regs__out_t chip_out;
  logic [63:0] cycles, macs;
  logic [31:0] instrs, read_beats, write_beats, stream_beats;
  logic [31:0] busy[NumEngines], stall[NumEngines];

  npu_chip_regs u_chip_regs (
    .clk                 (clk_i),
    .arst_n              (rst_ni),
    .s_cpuif_req         (req && in_chip),
    .s_cpuif_req_is_wr   (req_write),
    .s_cpuif_addr        (req_addr[7:0]),
    .s_cpuif_wr_data     (req_wdata),
    .s_cpuif_wr_biten    (req_wmask),
    .s_cpuif_req_stall_wr(),
    .s_cpuif_req_stall_rd(),
    .s_cpuif_rd_ack      (chip_rd_ack),
    .s_cpuif_rd_err      (),
    .s_cpuif_rd_data     (chip_rdata),
    .s_cpuif_wr_ack      (chip_wr_ack),
    .s_cpuif_wr_err      (),
    .hwif_in             (chip_in),
    .hwif_out            (chip_out)
  );

  npu_perf u_perf (
    .clk_i,
    .rst_ni,
    .clear_i       (chip_out.PERF_CTRL.CLEAR.value || started_i),
    .run_i         (busy_i),
    .macs_i,
    .instr_i,
    .read_beat_i,
    .write_beat_i,
    .stream_beat_i,
    .busy_i        (engine_busy_i),
    .stall_i       (engine_stall_i),
    .cycles_o      (cycles),
    .macs_o        (macs),
    .instrs_o      (instrs),
    .read_beats_o  (read_beats),
    .write_beats_o (write_beats),
    .stream_beats_o(stream_beats),
    .busy_o        (busy),
    .stall_o       (stall)
  );

  always_comb begin
    chip_in.VERSION.ISA.next          = IsaVersion;
    chip_in.VERSION.CHIP_MINOR.next   = ChipMinor;
    chip_in.VERSION.CHIP_MAJOR.next   = ChipMajor;
    chip_in.CONFIG0.ARRAY_DIM.next    = 8'(ArrayDim);
    chip_in.CONFIG0.SRAM_KIB.next     = 16'(SramKiB);
    chip_in.CONFIG1.ACC_ROWS.next     = 16'(AccRows);
    chip_in.CONFIG1.FIFO_BEATS.next   = 16'(FifoKiB * 1024 / BeatBytes);
    chip_in.CONFIG2.AXI_BYTES.next    = 8'(WordBytes);
    chip_in.CONFIG2.NORM_MAX.next     = 16'(NormMax);
    chip_in.IRQ_STATUS.SEQ_DONE.hwset = finish_i;
    chip_in.CYCLES_LO.VALUE.next      = cycles[31:0];
    chip_in.CYCLES_HI.VALUE.next      = cycles[63:32];
    chip_in.MACS_LO.VALUE.next        = macs[31:0];
    chip_in.MACS_HI.VALUE.next        = macs[63:32];
    chip_in.INSTRS.VALUE.next         = instrs;
    chip_in.READ_BEATS.VALUE.next     = read_beats;
    chip_in.WRITE_BEATS.VALUE.next    = write_beats;
    chip_in.STREAM_BEATS.VALUE.next   = stream_beats;
    for (int unsigned e = 0; e < NumEngines; e++) begin
      chip_in.BUSY[e].VALUE.next  = busy[e];
      chip_in.STALL[e].VALUE.next = stall[e];
    end
  end

  assign timeout_o = chip_out.MEM_TIMEOUT.CYCLES.value;
  assign regions_o[0] = '{
          read: chip_out.REGION0.CTRL.READ.value,
          write: chip_out.REGION0.CTRL.WRITE.value,
          base: chip_out.REGION0.BASE.PAGE.value,
          limit: chip_out.REGION0.LIMIT.PAGE.value
      };
  assign regions_o[1] = '{
          read: chip_out.REGION1.CTRL.READ.value,
          write: chip_out.REGION1.CTRL.WRITE.value,
          base: chip_out.REGION1.BASE.PAGE.value,
          limit: chip_out.REGION1.LIMIT.PAGE.value
      };
  assign regions_o[2] = '{
          read: chip_out.REGION2.CTRL.READ.value,
          write: chip_out.REGION2.CTRL.WRITE.value,
          base: chip_out.REGION2.BASE.PAGE.value,
          limit: chip_out.REGION2.LIMIT.PAGE.value
      };
  assign regions_o[3] = '{
          read: chip_out.REGION3.CTRL.READ.value,
          write: chip_out.REGION3.CTRL.WRITE.value,
          base: chip_out.REGION3.BASE.PAGE.value,
          limit: chip_out.REGION3.LIMIT.PAGE.value
      };
  assign regions_o[4] = '{
          read: chip_out.REGION4.CTRL.READ.value,
          write: chip_out.REGION4.CTRL.WRITE.value,
          base: chip_out.REGION4.BASE.PAGE.value,
          limit: chip_out.REGION4.LIMIT.PAGE.value
      };
  assign regions_o[5] = '{
          read: chip_out.REGION5.CTRL.READ.value,
          write: chip_out.REGION5.CTRL.WRITE.value,
          base: chip_out.REGION5.BASE.PAGE.value,
          limit: chip_out.REGION5.LIMIT.PAGE.value
      };
  assign regions_o[6] = '{
          read: chip_out.REGION6.CTRL.READ.value,
          write: chip_out.REGION6.CTRL.WRITE.value,
          base: chip_out.REGION6.BASE.PAGE.value,
          limit: chip_out.REGION6.LIMIT.PAGE.value
      };
  assign regions_o[7] = '{
          read: chip_out.REGION7.CTRL.READ.value,
          write: chip_out.REGION7.CTRL.WRITE.value,
          base: chip_out.REGION7.BASE.PAGE.value,
          limit: chip_out.REGION7.LIMIT.PAGE.value
      };

  assign irq_o = chip_out.IRQ_STATUS.SEQ_DONE.value && chip_out.IRQ_ENABLE.SEQ_DONE.value;

endmodule
