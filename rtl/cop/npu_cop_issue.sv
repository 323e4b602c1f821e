// SPDX-License-Identifier: Apache-2.0
//
// The port's handshakes: a short queue of the instructions that are not yet done, and the result
// that waits for the host. The queue holds refused instructions as well, because a commit that names
// one of them speaks of its neighbours too; they leave it with their commit. What the host commits is
// a prefix of the queue and what it kills a suffix, so two rows of bits say it all, ones from the
// oldest entry on. Behind an instruction that uses memory nothing is issued until it has ended: it
// may fail, and the next one is refused then.

module npu_cop_issue
  import npu_cop_pkg::*;
  import npu_cop_isa_pkg::*;
#(
  parameter int unsigned NumRs = 3,  // operands that the host delivers: 2 or 3
  parameter int unsigned Depth = 4   // instructions in the queue, at least 2
) (
  input logic clk_i,  // clock
  input logic rst_ni, // reset, active low

  // Port
  input x_req_t x_req_i,  // keeps the rules of CV-X-IF
  output x_rsp_t x_rsp_o,  // issue and operands are answered in the same cycle
  output x_result_t x_result_o,  // in the order of issue

  input logic refuse_i,  // a level: accept no instruction

  // Execution
  output cop_op_t op_o,  // the oldest instruction; valid may come with the commit
  // Of op_o, with its valid, on which it may depend; not done while room_o is low
  input cop_end_t end_i,
  output logic room_o,  // a level: the result register takes a result; depends on result_ready

  output logic busy_o,  // a level: an instruction that was accepted and not killed is not done
  output logic taken_o  // pulse: the host takes a result
);

  typedef struct packed {
    x_id_t            id;
    logic             accepted;
    logic             on_memory;  // it is accepted and uses memory
    logic [31:0]      instr;
    cop_decoded_t     decoded;
    cop_unit_e        cop_unit;
    logic [2:0]       wanted;     // operands that have not come
    logic [2:0][31:0] rs;
  } entry_t;

  entry_t entries_q[Depth];  // oldest first
  entry_t next[Depth + 1];  // with the instruction that is issued in this cycle, and its operands
  entry_t incoming;
  logic [Depth-1:0] there_q, committed_q;  // entries in use, and those that are committed
  logic issue, pop;
  cop_decoded_t decoded;
  logic accept;

  // ---------------------------------------------------------------------------------------------
  // Issue
  // ---------------------------------------------------------------------------------------------
  logic uses_memory;
  x_issue_rsp_t answer;

  npu_cop_decode #(
    .NumRs(NumRs)
  ) u_decode (
    .instr_i  (x_req_i.issue.instr),
    .refuse_i,
    .decoded_o(decoded),
    .accept_o (accept)
  );

  always_comb begin
    uses_memory = 1'b0;
    for (int unsigned i = 0; i < Depth; i++) begin
      if (there_q[i] && entries_q[i].on_memory) uses_memory = 1'b1;
    end
  end

  assign answer = '{
          ready: !there_q[Depth-1] && !uses_memory,
          accept: accept,
          writeback: accept && decoded.writeback,
          register_read: accept ? decoded.register_read : '0,
          is_float: accept ? decoded.is_float : '0
      };
  assign issue = x_req_i.issue.valid && answer.ready;
  assign incoming = '{
          id: x_req_i.issue.id,
          accepted: accept,
          on_memory: accept && decoded.element_bytes != '0,
          instr: x_req_i.issue.instr,
          decoded: decoded,
          cop_unit: unit_of(decoded.op),
          wanted: accept ? decoded.register_read : '0,
          rs: '0
      };

  // ---------------------------------------------------------------------------------------------
  // Operands, for the newest instruction of their number; nobody waits for those of others
  // ---------------------------------------------------------------------------------------------
  logic [Depth:0] is_there, named;
  logic operands_ready;

  assign is_there = issue ? {there_q, 1'b1} : {1'b0, there_q};

  always_comb begin
    for (int unsigned i = 0; i <= Depth; i++) begin
      next[i] = (i < Depth && there_q[i%Depth]) ? entries_q[i%Depth] : incoming;
      named[i] = x_req_i.operands.valid && is_there[i] && next[i].accepted &&
                 next[i].id == x_req_i.operands.id;
      for (int unsigned r = 0; r < 3; r++) begin
        if (named[i] && next[i].wanted[r] && x_req_i.operands.rs_valid[r]) begin
          next[i].rs[r]     = x_req_i.operands.rs[r];
          next[i].wanted[r] = 1'b0;
        end
      end
    end
  end

  // Those of an instruction that waits for its issue wait with it.
  always_comb begin
    operands_ready = !x_req_i.issue.valid || answer.ready ||
                     x_req_i.operands.id != x_req_i.issue.id;
    for (int unsigned i = 0; i <= Depth; i++) begin
      if (named[i] && next[i].wanted != '0) operands_ready = 1'b0;
    end
  end

  // ---------------------------------------------------------------------------------------------
  // Commit and kill
  // ---------------------------------------------------------------------------------------------
  logic by_issue;
  logic [Depth-1:0] hit, reach, committed, left;  // reach: up to the youngest that is named

  assign by_issue = issue && x_req_i.issue.id == x_req_i.commit.id;

  always_comb begin
    for (int unsigned i = 0; i < Depth; i++) begin
      hit[i] = x_req_i.commit.valid && !committed_q[i] && is_there[i] &&
               (there_q[i] ? entries_q[i].id == x_req_i.commit.id : by_issue);
    end
    for (int unsigned i = 0; i < Depth; i++) reach[i] = (hit >> i) != '0;
  end

  assign left = (reach[0] && x_req_i.commit.kill) ? reach >> 1 : is_there[Depth-1:0];
  assign committed = x_req_i.commit.kill ? committed_q : committed_q | reach;

  // ---------------------------------------------------------------------------------------------
  // The oldest instruction. Its operands must have been there a cycle ago, its commit may be new.
  // ---------------------------------------------------------------------------------------------
  x_result_t result_q;
  logic ready_to_go;

  assign ready_to_go = there_q[0] && committed[0];
  assign op_o.valid = ready_to_go && entries_q[0].accepted && entries_q[0].wanted == '0;
  assign op_o.instr = entries_q[0].instr;
  assign op_o.decoded = entries_q[0].decoded;
  assign op_o.cop_unit = entries_q[0].cop_unit;
  assign op_o.rs = entries_q[0].rs;
  assign room_o = !result_q.valid || x_req_i.result_ready;
  assign pop = ready_to_go && (!entries_q[0].accepted || end_i.done);

  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) begin
      there_q     <= '0;
      committed_q <= '0;
      for (int unsigned i = 0; i < Depth; i++) entries_q[i] <= '0;
    end else begin
      there_q     <= left >> pop;
      committed_q <= committed >> pop;
      for (int unsigned i = 0; i < Depth; i++) entries_q[i] <= pop ? next[i+1] : next[i];
    end
  end

  // ---------------------------------------------------------------------------------------------
  // Result
  // ---------------------------------------------------------------------------------------------
  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) begin
      result_q <= '0;
    end else if (end_i.done) begin
      result_q.valid <= 1'b1;
      result_q.id    <= entries_q[0].id;
      result_q.rd    <= entries_q[0].instr[11:7];
      result_q.we    <= entries_q[0].decoded.writeback;
      result_q.data  <= entries_q[0].decoded.writeback ? end_i.data : '0;
    end else if (x_req_i.result_ready) begin
      result_q.valid <= 1'b0;
    end
  end

  assign x_rsp_o = '{issue: answer, operands_ready: operands_ready};
  assign x_result_o = result_q;
  assign taken_o = result_q.valid && x_req_i.result_ready;

  always_comb begin
    busy_o = result_q.valid;
    for (int unsigned i = 0; i < Depth; i++) begin
      if (there_q[i] && entries_q[i].accepted) busy_o = 1'b1;
    end
  end

`ifndef SYNTHESIS
  OnlyWhenAsked_A :
  assert property (@(posedge clk_i) disable iff (!rst_ni) end_i.done |-> op_o.valid && room_o)
  else $error("npu_cop_issue: an instruction ends that is not there, or without room");
  CommittedAreThere_A :
  assert property (@(posedge clk_i) disable iff (!rst_ni) (committed_q & ~there_q) == '0)
  else $error("npu_cop_issue: more instructions are committed than there are");
  ResultStable_A :
  assert property (@(posedge clk_i) disable iff (!rst_ni)
                   result_q.valid && !x_req_i.result_ready |=> $stable(
      result_q
  ))
  else $error("npu_cop_issue: a result changed before it was taken");
`endif

endmodule
