// SPDX-License-Identifier: Apache-2.0
//
// The coprocessor's port keeps its rules of CV-X-IF 1.0, whatever the host does within its own, and
// whenever instructions end. Operands come with the issue. The host names what is here; what a
// decision by another identifier means is left to simulation.

module formal_cop_issue
  import npu_cop_pkg::*;
(
  input logic      clk_i,       // clock
  input logic      rst_ni,      // reset, active low
  input x_req_t    x_req_i,
  input x_commit_t x_commit_i,
  input logic      refuse_i,
  input cop_end_t  end_i,
  input logic      mark_i
);

  logic live, waits_q, ended_q, under_way_q, alike, on_memory_q;
  logic [31:0] data_q;
  logic [ 2:0] missing;
  x_result_t result, was_q;
  x_issue_rsp_t answer;
  cop_op_t op;

  cop_followed u_port (
    .clk_i,
    .rst_ni,
    .x_req_i,
    .x_commit_i,
    .refuse_i,
    .end_i,
    .mark_i
  );

  assign live = u_port.begun_q && rst_ni;
  assign alike = u_port.alike;
  assign answer = u_port.rsp.issue;
  assign result = u_port.result;
  assign op = u_port.op;
  assign missing = answer.register_read &
      ((x_req_i.operands.valid && x_req_i.operands.id == x_req_i.issue.id) ?
       ~x_req_i.operands.rs_valid : '1);

  // Of elements, VMAC to FVDIV with the bits that say so, and vectors that are loaded or stored
  logic uses_memory;
  assign uses_memory = x_req_i.issue.instr[14:13] == '1 ||
      (x_req_i.issue.instr[14:12] == '0 && x_req_i.issue.instr[31:25] inside {[7'd1 : 7'd12]});

  always_ff @(posedge clk_i) begin
    waits_q  <= live && result.valid && !x_req_i.result_ready;
    ended_q  <= live && u_port.ends;
    data_q   <= op.decoded.writeback ? u_port.ending.data : '0;
    was_q    <= result;
    under_way_q <= live && u_port.under_way;
    if (u_port.marks) on_memory_q <= uses_memory;
  end

  always_comb begin
    if (live) begin
      AcceptsOwn_A : assert (!answer.accept || x_req_i.issue.instr[6:0] inside {7'h0b, 7'h2b});
      Refused_A :
      assert (answer.accept ||
              !answer.writeback && answer.register_read == '0 && answer.is_float == '0);
      Awaited_A :
      assert (u_port.rsp.operands_ready == answer.ready && (!answer.ready || missing == '0));
      Alone_A : assert (alike && (!u_port.mine_inside || !on_memory_q || !answer.ready));
      Committed_A : assert (alike && (!op.valid || u_port.may_go));
      Executes_A : assert (alike && (!u_port.told || op.valid));
      Word_A :
      assert (alike && u_port.of_instr && !(op.valid && u_port.mine && op.instr != u_port.instr_q));
      Operands_A :
      assert (alike && u_port.of_operands && (!op.valid || !u_port.mine || op.rs == u_port.rs_q));
      OneResult_A : assert (u_port.ended == u_port.ends && result.valid == u_port.there_q);
      Order_A : assert (alike && (!result.valid || result.id == x_id_t'(u_port.result_q.id)));
      Hart_A :
      assert (alike && u_port.of_hart &&
              (!result.valid || !u_port.result_q.mine || result.hartid == u_port.hart_q));
      Register_A :
      assert (alike && u_port.of_instr && (!result.valid || !u_port.result_q.mine ||
              result.rd == u_port.instr_q[11:7] && result.we == u_port.writeback_q));
      Data_A : assert (!ended_q || result.data == data_q);
      Stays_A : assert (!waits_q || result == was_q);
      Awake_A : assert (alike && u_port.awake == u_port.under_way);
      Busy_A : assert (alike && u_port.busy == under_way_q);
    end
  end

endmodule
