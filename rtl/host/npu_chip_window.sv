// SPDX-License-Identifier: Apache-2.0
//
// Window 0x300, what belongs to the whole chip: identification, configuration, the interrupt, the
// regions of memory, and the performance counters. The parameters are only shown to the host.

module npu_chip_window
  import npu_pkg::*;
  import npu_mem_pkg::*;
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

  input  window_req_t req_i,  // an access to the window
  output window_rsp_t rsp_o,  // acknowledged in the cycle of req_i.valid

  output logic          irq_o,      // a level: a cause of IRQ_STATUS that is enabled
  input  logic          cmd_irq_i,  // interrupt of the command port: a level
  input  logic          cop_irq_i,  // a fault of the coprocessor stands: a level
  output mem_settings_t memory_o,   // as the registers stand: a level
  input  logic          started_i,  // pulse: a program starts; clears the counters
  input  logic          busy_i,     // a level: a program runs; the counters count
  input  logic          finish_i,   // pulse: a program has ended
  input  events_t       events_i    // what happens in this cycle
);

  localparam logic [7:0] ChipMajor = 8'd0;
  localparam logic [7:0] ChipMinor = 8'd1;

  npu_chip_regs_pkg::npu_chip_regs__in_t  chip_in;
  npu_chip_regs_pkg::npu_chip_regs__out_t chip_out;
  logic rd_ack, wr_ack;
  npu_counters_pkg::counter_place_t place;
  logic [31:0] rdata, count;
  logic [63:0] cycles, macs;

  assign place = npu_counters_pkg::counter_place(req_i.addr);
  assign rsp_o = '{
          ack: place.known ? req_i.valid : (rd_ack || wr_ack),
          rdata: place.known ? count : rdata
      };

  npu_chip_regs u_regs (
    .clk                 (clk_i),
    .rst_n               (rst_ni),
    .s_cpuif_req         (req_i.valid && !place.known),
    .s_cpuif_req_is_wr   (req_i.write),
    .s_cpuif_addr        (req_i.addr),
    .s_cpuif_wr_data     (req_i.wdata),
    .s_cpuif_wr_biten    (req_i.wmask),
    .s_cpuif_req_stall_wr(),
    .s_cpuif_req_stall_rd(),
    .s_cpuif_rd_ack      (rd_ack),
    .s_cpuif_rd_err      (),
    .s_cpuif_rd_data     (rdata),
    .s_cpuif_wr_ack      (wr_ack),
    .s_cpuif_wr_err      (),
    .hwif_in             (chip_in),
    .hwif_out            (chip_out)
  );

  npu_perf u_perf (
    .clk_i,
    .rst_ni,
    .clear_i (chip_out.PERF_CTRL.CLEAR.value || started_i),
    .run_i   (busy_i),
    .events_i,
    .cycles_o(cycles),
    .macs_o  (macs),
    .read_i  (req_i.valid && place.known),
    .number_i(place.number),
    .value_o (count)
  );

  always_comb begin
    chip_in.VERSION.ISA.next            = IsaVersion;
    chip_in.VERSION.CHIP_MINOR.next     = ChipMinor;
    chip_in.VERSION.CHIP_MAJOR.next     = ChipMajor;
    chip_in.CONFIG0.ARRAY_DIM.next      = 8'(ArrayDim);
    chip_in.CONFIG0.SRAM_KIB.next       = 16'(SramKiB);
    chip_in.CONFIG1.ACC_ROWS.next       = 16'(AccRows);
    chip_in.CONFIG1.FIFO_LINES.next     = 16'(FifoKiB * 1024 / LineBytes);
    chip_in.CONFIG2.AXI_BYTES.next      = 8'(WordBytes);
    chip_in.CONFIG2.NARROW_FORMATS.next = NarrowFormats;
    chip_in.CONFIG2.NORM_MAX.next       = 16'(NormMax);
    chip_in.IRQ_STATUS.SEQ_DONE.hwset   = finish_i;
    chip_in.IRQ_STATUS.CMD.next         = cmd_irq_i;
    chip_in.IRQ_STATUS.COP.next         = cop_irq_i;
    chip_in.CYCLES_LO.VALUE.next        = cycles[31:0];
    chip_in.CYCLES_HI.VALUE.next        = cycles[63:32];
    chip_in.MACS_LO.VALUE.next          = macs[31:0];
    chip_in.MACS_HI.VALUE.next          = macs[63:32];
  end

  assign memory_o.timeout = chip_out.MEM_TIMEOUT.CYCLES.value;
  assign memory_o.regions[0] = '{
          read: chip_out.REGION0.CTRL.READ.value,
          write: chip_out.REGION0.CTRL.WRITE.value,
          base: chip_out.REGION0.BASE.PAGE.value,
          limit: chip_out.REGION0.LIMIT.PAGE.value
      };
  assign memory_o.regions[1] = '{
          read: chip_out.REGION1.CTRL.READ.value,
          write: chip_out.REGION1.CTRL.WRITE.value,
          base: chip_out.REGION1.BASE.PAGE.value,
          limit: chip_out.REGION1.LIMIT.PAGE.value
      };
  assign memory_o.regions[2] = '{
          read: chip_out.REGION2.CTRL.READ.value,
          write: chip_out.REGION2.CTRL.WRITE.value,
          base: chip_out.REGION2.BASE.PAGE.value,
          limit: chip_out.REGION2.LIMIT.PAGE.value
      };
  assign memory_o.regions[3] = '{
          read: chip_out.REGION3.CTRL.READ.value,
          write: chip_out.REGION3.CTRL.WRITE.value,
          base: chip_out.REGION3.BASE.PAGE.value,
          limit: chip_out.REGION3.LIMIT.PAGE.value
      };
  assign memory_o.regions[4] = '{
          read: chip_out.REGION4.CTRL.READ.value,
          write: chip_out.REGION4.CTRL.WRITE.value,
          base: chip_out.REGION4.BASE.PAGE.value,
          limit: chip_out.REGION4.LIMIT.PAGE.value
      };
  assign memory_o.regions[5] = '{
          read: chip_out.REGION5.CTRL.READ.value,
          write: chip_out.REGION5.CTRL.WRITE.value,
          base: chip_out.REGION5.BASE.PAGE.value,
          limit: chip_out.REGION5.LIMIT.PAGE.value
      };
  assign memory_o.regions[6] = '{
          read: chip_out.REGION6.CTRL.READ.value,
          write: chip_out.REGION6.CTRL.WRITE.value,
          base: chip_out.REGION6.BASE.PAGE.value,
          limit: chip_out.REGION6.LIMIT.PAGE.value
      };
  assign memory_o.regions[7] = '{
          read: chip_out.REGION7.CTRL.READ.value,
          write: chip_out.REGION7.CTRL.WRITE.value,
          base: chip_out.REGION7.BASE.PAGE.value,
          limit: chip_out.REGION7.LIMIT.PAGE.value
      };

  assign irq_o = (chip_out.IRQ_STATUS.SEQ_DONE.value && chip_out.IRQ_ENABLE.SEQ_DONE.value) ||
                 (cmd_irq_i && chip_out.IRQ_ENABLE.CMD.value) ||
                 (cop_irq_i && chip_out.IRQ_ENABLE.COP.value);

endmodule
