// SPDX-License-Identifier: Apache-2.0
//
// Counts the cycles of the command port a second time, from what can be seen outside of it: the
// strobe of a start, the interrupt of its end, and its accesses on the memory bus. The tests hold the
// counters of the chip against these.

module cmd_monitor (
  input logic clk_i,
  input logic rst_ni,

  input logic start_i,      // strobe of CTRL_STATUS.START
  input logic ring_i,       // it starts the ring of descriptors
  input logic irq_i,        // interrupt of the command port; without one per entry it is the end
  input logic soft_reset_i,

  // Memory bus; the top bit of an identifier tells the command port from the rest of the chip
  input npu_axi_pkg::axi_req_t req_i,
  input npu_axi_pkg::axi_rsp_t rsp_i,

  output logic [31:0] cycles_o,       // from a start to its end
  output logic [31:0] ring_cycles_o,  // the same of starts of the ring
  output logic [31:0] owed_cycles_o,  // of these, while the memory owes the port something
  output logic [31:0] reads_o,        // bursts that the port has asked for
  output logic [31:0] writes_o
);

  // IDs 8 to 11; see npu_axi_mux
  function automatic logic is_ours(logic [tb_pkg::AxiIdBits-1:0] id);
    return id[3:2] == 2'b10;
  endfunction

  logic running_q, ring_q;
  logic [7:0] reads_owed_q, writes_owed_q;
  logic running, ours_ar, ours_r, ours_aw, ours_b, owed;

  assign running = running_q && !irq_i && !soft_reset_i;
  assign ours_ar = req_i.rd.arvalid && is_ours(req_i.rd.arid);
  assign ours_r = rsp_i.rd.rvalid && req_i.rd.rready && rsp_i.rd.rlast && is_ours(rsp_i.rd.rid);
  assign ours_aw = req_i.wr.awvalid && is_ours(req_i.wr.awid);
  assign ours_b = rsp_i.wr.bvalid && req_i.wr.bready && is_ours(rsp_i.wr.bid);
  assign owed = ours_ar || ours_aw || reads_owed_q != '0 || writes_owed_q != '0;

  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) begin
      running_q     <= 1'b0;
      ring_q        <= 1'b0;
      reads_owed_q  <= '0;
      writes_owed_q <= '0;
      cycles_o      <= '0;
      ring_cycles_o <= '0;
      owed_cycles_o <= '0;
      reads_o       <= '0;
      writes_o      <= '0;
    end else begin
      running_q <= running;
      if (start_i && !running) begin
        running_q <= 1'b1;
        ring_q    <= ring_i;
      end
      reads_owed_q  <= reads_owed_q + 8'(ours_ar && rsp_i.rd.arready) - 8'(ours_r);
      writes_owed_q <= writes_owed_q + 8'(ours_aw && rsp_i.wr.awready) - 8'(ours_b);
      cycles_o      <= cycles_o + 32'(running);
      ring_cycles_o <= ring_cycles_o + 32'(running && ring_q);
      owed_cycles_o <= owed_cycles_o + 32'(running && ring_q && owed);
      reads_o       <= reads_o + 32'(ours_ar && rsp_i.rd.arready);
      writes_o      <= writes_o + 32'(ours_aw && rsp_i.wr.awready);
    end
  end

endmodule
