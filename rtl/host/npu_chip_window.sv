// SPDX-License-Identifier: Apache-2.0
//
// Window 0x300, what belongs to the whole chip: identification, configuration, the interrupt, the
// regions of memory, and the performance counters.

module npu_chip_window
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

  // One access: a pulse, acknowledged in the same cycle or later
  input  logic        req_i,
  input  logic        req_write_i,
  input  logic [ 7:0] req_addr_i,
  input  logic [31:0] req_wdata_i,
  input  logic [31:0] req_wmask_i,
  output logic        ack_o,
  output logic [31:0] rdata_o,

  output logic           irq_o,
  input  logic           cmd_irq_i,
  output region_t        regions_o[NumRegions],
  output logic    [23:0] timeout_o,

  // Events to count
  input logic                  started_i,
  input logic                  busy_i,
  input logic                  finish_i,
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

  npu_chip_regs_pkg::npu_chip_regs__in_t  chip_in;
  npu_chip_regs_pkg::npu_chip_regs__out_t chip_out;
  logic rd_ack, wr_ack;
  logic [63:0] cycles, macs;
  logic [31:0] instrs, read_beats, write_beats, stream_beats;
  logic [31:0] busy[NumEngines], stall[NumEngines];

  assign ack_o = rd_ack || wr_ack;

  npu_chip_regs u_regs (
    .clk                 (clk_i),
    .arst_n              (rst_ni),
    .s_cpuif_req         (req_i),
    .s_cpuif_req_is_wr   (req_write_i),
    .s_cpuif_addr        (req_addr_i),
    .s_cpuif_wr_data     (req_wdata_i),
    .s_cpuif_wr_biten    (req_wmask_i),
    .s_cpuif_req_stall_wr(),
    .s_cpuif_req_stall_rd(),
    .s_cpuif_rd_ack      (rd_ack),
    .s_cpuif_rd_err      (),
    .s_cpuif_rd_data     (rdata_o),
    .s_cpuif_wr_ack      (wr_ack),
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
    chip_in.IRQ_STATUS.CMD.next       = cmd_irq_i;
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

  assign irq_o = (chip_out.IRQ_STATUS.SEQ_DONE.value && chip_out.IRQ_ENABLE.SEQ_DONE.value) ||
                 (cmd_irq_i && chip_out.IRQ_ENABLE.CMD.value);

endmodule
