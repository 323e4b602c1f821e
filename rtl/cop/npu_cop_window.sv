// SPDX-License-Identifier: Apache-2.0
//
// The host's window of the coprocessor: the generated register block, the counters, and the first
// fault, which stays until the host clears it.

module npu_cop_window
  import npu_cop_pkg::*;
  import npu_cop_regs_pkg::*;
#(
  parameter int unsigned NumRs = 3  // operands that the host delivers: 2 or 3; only shown
) (
  input logic clk_i,  // clock
  input logic rst_ni, // reset, active low

  input  npu_host_pkg::window_req_t req_i,  // an access to the window
  output npu_host_pkg::window_rsp_t rsp_o,  // ack in the cycle of a read, a cycle behind a write

  output cop_control_t control_o,  // pulses, with the host's access or a cycle later; levels
  output logic         fault_o,    // a level: a fault stands

  // What the registers show
  input cop_state_t  state_i,   // levels
  input logic        busy_i,    // a level
  input cop_report_t report_i,  // fault.valid: a pulse
  input cop_events_t events_i   // to count
);

  npu_cop_regs__in_t  regs_in;
  npu_cop_regs__out_t regs;
  logic rd_ack, wr_ack, wr_ack_q;

  npu_cop_regs u_regs (
    .clk                 (clk_i),
    .rst_n               (rst_ni),
    .s_cpuif_req         (req_i.valid),
    .s_cpuif_req_is_wr   (req_i.write),
    .s_cpuif_addr        (req_i.addr),
    .s_cpuif_wr_data     (req_i.wdata),
    .s_cpuif_wr_biten    (req_i.wmask),
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

  assign control_o = '{
          clear_acc: regs.ACC_LO.CLEAR.swmod,
          clear_facc: regs.FACC_LO.CLEAR.swmod,
          clear: regs.CTRL.CLEAR.value,
          trap: regs.CTRL.TRAP.value,
          limit: regs.LIMIT.BYTES.value
      };

  // ---------------------------------------------------------------------------------------------
  // The first fault
  // ---------------------------------------------------------------------------------------------
  cop_report_t report_q;

  assign fault_o = report_q.fault.valid;

  always_ff @(posedge clk_i) begin
    if (!rst_ni) report_q <= '0;
    else if (report_i.fault.valid && (!fault_o || control_o.clear)) report_q <= report_i;
    else if (control_o.clear) report_q <= '0;
  end

  // ---------------------------------------------------------------------------------------------
  // Counters
  // ---------------------------------------------------------------------------------------------
  logic [31:0] instrs_q, cycles_q, beats_q;

  always_ff @(posedge clk_i) begin
    if (!rst_ni) begin
      instrs_q <= '0;
      cycles_q <= '0;
      beats_q  <= '0;
    end else begin
      instrs_q <= regs.INSTRS.CLEAR.swmod ? '0 : instrs_q + 32'(events_i.instr);
      cycles_q <= regs.CYCLES.CLEAR.swmod ? '0 : cycles_q + 32'(events_i.busy);
      beats_q  <= regs.BEATS.CLEAR.swmod ? '0 :
                  beats_q + 32'(events_i.read_beat) + 32'(events_i.write_beat);
    end
  end

  always_comb begin
    regs_in.ACC_LO.VALUE.next  = state_i.acc[31:0];
    regs_in.ACC_HI.VALUE.next  = state_i.acc[63:32];
    regs_in.FACC_LO.VALUE.next = state_i.facc[31:0];
    regs_in.FACC_HI.VALUE.next = state_i.facc[63:32];
    for (int unsigned i = 0; i < 4; i++) regs_in.VREG[i].VALUE.next = state_i.vregs[i];

    regs_in.STATUS.BUSY.next       = busy_i;
    regs_in.STATUS.FAULT.next      = fault_o;
    regs_in.STATUS.CODE.next       = report_q.fault.code;
    regs_in.FAULT_INSTR.VALUE.next = report_q.instr;
    regs_in.FAULT_ADDR.VALUE.next  = report_q.fault.addr;
    regs_in.FAULT_INDEX.VALUE.next = report_q.fault.index;
    regs_in.INSTRS.VALUE.next      = instrs_q;
    regs_in.CYCLES.VALUE.next      = cycles_q;
    regs_in.BEATS.VALUE.next       = beats_q;
    regs_in.CONFIG.NUM_RS.next     = 2'(NumRs);
  end

`ifndef SYNTHESIS
  AckBehindWrite_A :
  assert property (@(posedge clk_i) disable iff (!rst_ni) req_i.valid && req_i.write |-> !rsp_o.ack)
  else $error("npu_cop_window: a write is acknowledged in its own cycle");
`endif

endmodule
