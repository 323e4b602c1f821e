// SPDX-License-Identifier: Apache-2.0
//
// From CVA6's X interface, a draft from before CV-X-IF 1.0, to that standard, by what is on the wires
// alone. What is not obvious:
// - the core offers an instruction for one cycle, with its commit, in a cycle behind one with ready:
//   it waits here for its answer.
// - what it is told then is too early for a refusal: that comes as a result with an exception.
// - its identifiers are places of its scoreboard and begin at 0 whenever that is flushed. Those of the
//   port are counted here.
// - it begins loads behind an instruction that still writes memory: reads of data wait meanwhile. One
//   that is older waits too, and must not read what the instruction writes: NPU_FENCE between them.
// - it issues behind an instruction that may still flush (fence, a write to a CSR, a trap), and
//   commits at once: that is up to the program (firmware/include/npu_cva6.h).

module soc_cva6_xif (
  input logic clk_i,
  input logic rst_ni,

  // The core
  input  cvxif_pkg::cvxif_req_t  req_i,
  output cvxif_pkg::cvxif_resp_t resp_o,
  output logic                   data_stall_o, // no read of data may begin

  // CV-X-IF 1.0, X_ISSUE_REGISTER_SPLIT = 0
  soc_x_if.host x
);

  localparam logic [5:0] IllegalInstruction = 6'd2;

  cvxif_pkg::x_issue_req_t offer, waiting_q;
  logic is_waiting_q;
  logic taken;
  logic [3:0] id_q;  // of the next instruction at the port
  logic [15:0][cvxif_pkg::X_ID_WIDTH-1:0] place_q;  // in the scoreboard, by identifier at the port
  logic [15:0] inside_q;  // accepted, without a result
  logic is_refused_q;
  logic [cvxif_pkg::X_ID_WIDTH-1:0] refused_q;  // its place

  // -----------------------------------------------------------------------------------------------
  // Issue, with operands and commit
  // -----------------------------------------------------------------------------------------------
  assign offer = is_waiting_q ? waiting_q : req_i.x_issue_req;
  assign taken = x.issue_valid && x.issue_ready;
  assign x.issue_valid = req_i.x_issue_valid || is_waiting_q;
  assign x.issue_instr = offer.instr;
  assign x.issue_id = id_q;
  assign x.register_valid = x.issue_valid;
  assign x.register_id = id_q;
  assign x.register_rs = offer.rs;
  assign x.register_rs_valid = offer.rs_valid;
  assign x.commit_valid = req_i.x_commit_valid;
  assign x.commit_id = id_q;
  assign x.commit_kill = req_i.x_commit.x_commit_kill;

  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) begin
      waiting_q <= '0;
      is_waiting_q <= 1'b0;
      id_q <= '0;
      place_q <= '0;
      inside_q <= '0;
      refused_q <= '0;
      is_refused_q <= 1'b0;
    end else begin
      waiting_q <= offer;
      is_waiting_q <= x.issue_valid && !x.issue_ready;
      if (taken) id_q <= id_q + 4'd1;
      if (taken) place_q[id_q] <= offer.id;
      if (x.result_valid && x.result_ready) inside_q[x.result_id] <= 1'b0;
      if (taken) inside_q[id_q] <= x.issue_accept;
      refused_q <= offer.id;
      is_refused_q <= taken && !x.issue_accept;
    end
  end

  assert property (@(posedge clk_i) disable iff (!rst_ni) is_waiting_q |-> !req_i.x_issue_valid);

  // -----------------------------------------------------------------------------------------------
  // Result
  // -----------------------------------------------------------------------------------------------
  assign x.result_ready = req_i.x_result_ready && !is_refused_q;
  assign data_stall_o   = x.issue_valid || inside_q != '0;

  always_comb begin
    resp_o = '0;
    resp_o.x_issue_ready = !x.issue_valid || x.issue_ready;
    resp_o.x_issue_resp.accept = 1'b1;
    resp_o.x_issue_resp.writeback = x.issue_writeback;
    resp_o.x_result_valid = is_refused_q || x.result_valid;
    if (is_refused_q) begin
      resp_o.x_result.id = refused_q;
      resp_o.x_result.exc = 1'b1;
      resp_o.x_result.exccode = IllegalInstruction;
    end else begin
      resp_o.x_result.id   = place_q[x.result_id];
      resp_o.x_result.data = x.result_data;
      resp_o.x_result.rd   = x.result_rd;
      resp_o.x_result.we   = x.result_we;
    end
  end

endmodule
