// SPDX-License-Identifier: Apache-2.0
//
// The coprocessor's port where operands come behind the issue, in any order: what formal_cop_issue
// does not show of it.

module formal_cop_split
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

  logic live, mine;
  cop_op_t op;

  cop_followed #(
    .Split(1'b1)
  ) u_port (
    .clk_i,
    .rst_ni,
    .x_req_i,
    .x_commit_i,
    .refuse_i,
    .end_i,
    .mark_i
  );

  assign live = u_port.begun_q && rst_ni;
  assign op   = u_port.op;
  assign mine = u_port.mine;

  always_comb begin
    if (live) begin
      Taken_A : assert (u_port.rsp.operands_ready);
      Committed_A : assert (u_port.alike && (!op.valid || u_port.may_go));
      NotBefore_A : assert (u_port.alike && u_port.of_wait && (!op.valid || !mine || u_port.had_q));
      Executes_A :
      assert (u_port.alike && u_port.of_wait &&
              (!u_port.told || !mine || !u_port.had_q || op.valid));
      Operands_A :
      assert (u_port.alike && u_port.of_operands && (!op.valid || !mine || op.rs == u_port.rs_q));
      Order_A :
      assert (u_port.alike &&
              (!u_port.result.valid || u_port.result.id == x_id_t'(u_port.result_q.id)));
    end
  end

endmodule
