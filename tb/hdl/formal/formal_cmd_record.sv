// SPDX-License-Identifier: Apache-2.0
//
// The completion ring: a record is written once, where software has taken the one before, inside the
// ring, one place behind the last, with a phase that changes from lap to lap.

module formal_cmd_record
  import npu_cmd_pkg::*;
  import npu_desc_pkg::*;
(
  input logic                      clk_i,      // clock
  input logic                      rst_ni,     // reset, active low
  input record_req_t               record_i,
  input ring_regs_t                regs_i,
  input write_rsp_t                rsp_i,
  input unit_status_t              unit_i,
  input npu_host_pkg::launch_rsp_t program_i,
  input logic                      clear_i
);

  localparam int unsigned LogSize = 2;
  localparam logic [15:0] Size = 16'd1 << LogSize;

  step_end_t ended;
  write_req_t req;
  desc_record_t written;
  logic [15:0] head, head_q, tail_q;
  logic begun_q, live_q, active_q, done_q, sent_q;
  logic [LogSize:0] place_q;  // of the next record, and its lap
  ring_regs_t regs;

  always_comb begin
    regs              = regs_i;
    regs.cq_base      = 32'h1234_0000;
    regs.cq_log2_size = 4'(LogSize);
    regs.cq_enable    = 1'b1;
  end

  npu_cmd_record u_record (
    .clk_i,
    .rst_ni,
    .record_i,
    .index_i ('0),
    .opcode_i('0),
    .scalar_i(1'b0),
    .launch_i(1'b0),
    .waits_o (),
    .end_o   (ended),
    .clear_i,
    .unit_i,
    .program_i,
    .regs_i  (regs),
    .head_o  (head),
    .write_o (req),
    .write_i (rsp_i)
  );

  assign written = req.data;

  initial begun_q = 1'b0;
  always_ff @(posedge clk_i) begin
    begun_q  <= 1'b1;
    live_q   <= begun_q && rst_ni;
    head_q   <= head;
    tail_q   <= regs_i.cq_tail;
    active_q <= record_i.active;
    done_q   <= ended.done || ended.failed;
    if (!rst_ni) place_q <= '0;
    else if (ended.done) place_q <= place_q + 1'b1;
    if (!rst_ni || !record_i.active || ended.done || ended.failed) sent_q <= 1'b0;
    else if (req.valid && rsp_i.ready) sent_q <= 1'b1;
  end

  always_comb begin
    assume (begun_q || !rst_ni);
    // Software takes no record that is not there, nor gives one back.
    assume (16'(head - regs_i.cq_tail) <= Size);
    assume (!live_q || 16'(regs_i.cq_tail - tail_q) <= 16'(head_q - tail_q));
    // The next record is further away than a cycle; an answer comes to what was sent.
    assume (!(record_i.active && done_q));
    assume (!(rsp_i.valid || rsp_i.denied) || sent_q);
    assume (!rsp_i.ready || req.valid);
    if (begun_q && rst_ni) begin
      InRing_A :
      assert (!req.valid || req.addr == 32'h1234_0000 + {26'h0, place_q[LogSize-1:0], 4'h0});
      Phase_A : assert (!req.valid || written.phase == !place_q[LogSize]);
      Once_A : assert (!(req.valid && sent_q));
      // There was room in the cycle before, since when software can have taken records only.
      RoomFirst_A :
      assert ((!req.valid || 16'(head - regs_i.cq_tail) < Size) &&
              (!u_record.room_q || live_q && 16'(head_q - tail_q) != Size) &&
              (!live_q || head == head_q || done_q));
      if (live_q) begin
        OneStep_A : assert (head == head_q || head == 16'(head_q + 1) && done_q && active_q);
      end
    end
  end

endmodule
