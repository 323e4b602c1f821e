// SPDX-License-Identifier: Apache-2.0
//
// The port's handshakes: a short queue of the instructions that are not yet done, and the result
// that waits for the host. The queue holds refused instructions as well, because a commit that names
// one of them speaks of its neighbours too; they leave it with their commit. What the host commits is
// a prefix of the queue and what it kills a suffix, so two rows of bits say it all, ones from the
// oldest entry on; npu_cop_decide finds them. Behind an instruction that uses memory nothing is issued
// until it has ended: it may fail, and the next one is refused then.

module npu_cop_issue
  import npu_cop_pkg::*;
  import npu_cop_isa_pkg::*;
#(
  parameter int unsigned NumRs = 3,  // X_NUM_RS: operands that the host delivers, 2 or 3
  parameter int unsigned IdWidth = 4,  // X_ID_WIDTH: bits of an identifier, 3 to 32
  parameter int unsigned HartIdWidth = 1,  // X_HARTID_WIDTH: bits of a hart's number, 1 to 32
  parameter bit Split = 1'b0,  // X_ISSUE_REGISTER_SPLIT: operands come behind the issue
  parameter int unsigned Depth = 4  // instructions in the queue, at least 2
) (
  input logic clk_i,  // clock
  input logic rst_ni, // reset, active low

  // Port
  input x_req_t x_req_i,  // keeps the rules of CV-X-IF
  input x_commit_t x_commit_i,  // likewise; may depend on the answer to the issue
  output x_rsp_t x_rsp_o,  // issue and operands are answered in the same cycle
  output x_result_t x_result_o,  // in the order of issue

  input logic refuse_i,  // a level: accept no instruction

  // Execution
  output cop_op_t op_o,  // the oldest instruction; valid may come with the commit
  // Of op_o, with its valid, on which it may depend; not done while room_o is low
  input cop_end_t end_i,
  output logic room_o,  // a level: the result register takes a result; depends on result_ready

  output logic awake_o,  // a level: an instruction that was accepted is inside, or a result
  output logic busy_o,   // likewise a cycle later, without those that were killed meanwhile
  output logic taken_o   // pulse: the host takes a result
);

  typedef logic [IdWidth-1:0] id_t;
  typedef logic [HartIdWidth-1:0] hartid_t;

  typedef struct packed {
    id_t              id;
    hartid_t          hartid;
    logic             accepted;
    logic             on_memory;  // it is accepted and uses memory
    logic [31:0]      instr;
    cop_decoded_t     decoded;
    cop_unit_e        cop_unit;
    logic             waits;      // its operands have not come
    logic [2:0][31:0] rs;
  } entry_t;

  entry_t entries_q[Depth];  // oldest first
  entry_t next[Depth + 1];  // with the instruction that is issued in this cycle, and its operands
  entry_t incoming;
  logic [Depth-1:0] there_q, committed_q;  // entries in use, and those that are committed
  logic accept;
  x_result_t result_q;
  cop_decoded_t decoded;

  // ---------------------------------------------------------------------------------------------
  // Issue
  // ---------------------------------------------------------------------------------------------
  logic uses_memory, complete, kills_late;
  logic [2:0] needed;
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

  // Operands that come with the issue are waited for, those alone that the instruction needs.
  assign needed = accept ? decoded.register_read : '0;
  assign complete = needed == '0 ||
      (x_req_i.operands.valid && x_req_i.operands.id == x_req_i.issue.id &&
       (needed & ~x_req_i.operands.rs_valid) == '0);

  assign answer = '{
          ready: !there_q[Depth-1] && !uses_memory && !kills_late && (Split || complete),
          accept: accept,
          writeback: accept && decoded.writeback,
          register_read: needed,
          is_float: accept ? decoded.is_float : '0
      };

  always_comb begin
    incoming = '{
        id: id_t'(x_req_i.issue.id),
        hartid: hartid_t'(x_req_i.issue.hartid),
        accepted: accept,
        on_memory: accept && decoded.element_bytes != '0,
        instr: x_req_i.issue.instr,
        decoded: decoded,
        cop_unit: unit_of(decoded.op),
        waits: Split && accept,  // also for none: CV-X-IF has no result before them
        rs: '0
    };
    for (int unsigned r = 0; r < 3; r++) begin
      if (!Split && needed[r]) incoming.rs[r] = x_req_i.operands.rs[r];
    end
  end

  // ---------------------------------------------------------------------------------------------
  // The queue, with operands that come behind the issue, in any order
  // ---------------------------------------------------------------------------------------------
  always_comb begin
    for (int unsigned i = 0; i <= Depth; i++) begin
      next[i] = (i < Depth && there_q[i%Depth]) ? entries_q[i%Depth] : incoming;
      if (Split && i < Depth && there_q[i%Depth] && entries_q[i%Depth].waits &&
          x_req_i.operands.valid && entries_q[i%Depth].id == id_t'(x_req_i.operands.id)) begin
        next[i].waits = 1'b0;
        for (int unsigned r = 0; r < 3; r++) begin
          if (entries_q[i%Depth].decoded.register_read[r]) begin
            next[i].rs[r] = x_req_i.operands.rs[r];
          end
        end
      end
    end
  end

  // ---------------------------------------------------------------------------------------------
  // Commit and kill
  // ---------------------------------------------------------------------------------------------
  logic leads, pop;
  logic [Depth-1:0] under_way, there, committed;
  id_t [Depth-1:0] ids;

  always_comb begin
    for (int unsigned i = 0; i < Depth; i++) begin
      ids[i]       = entries_q[i].id;
      under_way[i] = there_q[i] && entries_q[i].accepted;
    end
  end

  npu_cop_decide #(
    .IdWidth(IdWidth),
    .Depth  (Depth)
  ) u_decide (
    .clk_i,
    .rst_ni,
    .commit_valid_i(x_commit_i.valid),
    .commit_kill_i (x_commit_i.kill),
    .commit_id_i   (id_t'(x_commit_i.id)),
    .offer_i       (x_req_i.issue.valid),
    .offer_id_i    (incoming.id),
    .issue_i       (x_req_i.issue.valid && answer.ready),
    .there_i       (there_q),
    .under_way_i   (under_way),
    .committed_i   (committed_q),
    .ids_i         (ids),
    .pop_i         (pop),
    .result_i      (result_q.valid),
    .result_id_i   (id_t'(result_q.id)),
    .leads_o       (leads),
    .kills_late_o  (kills_late),
    .there_o       (there),
    .committed_o   (committed),
    .busy_o
  );

  // ---------------------------------------------------------------------------------------------
  // The oldest instruction. Its operands must have been there a cycle ago; a commit that names it may
  // be new.
  // ---------------------------------------------------------------------------------------------
  logic ready_to_go;

  assign ready_to_go = there_q[0] && (committed_q[0] || leads);
  assign op_o.valid = ready_to_go && entries_q[0].accepted && !entries_q[0].waits;
  assign op_o.instr = entries_q[0].instr;
  assign op_o.decoded = entries_q[0].decoded;
  assign op_o.cop_unit = entries_q[0].cop_unit;
  assign op_o.rs = entries_q[0].rs;
  assign room_o = !result_q.valid || x_req_i.result_ready;
  assign pop = ready_to_go && (!entries_q[0].accepted || end_i.done);

  always_ff @(posedge clk_i) begin
    if (!rst_ni) begin
      there_q     <= '0;
      committed_q <= '0;
      for (int unsigned i = 0; i < Depth; i++) entries_q[i] <= '0;
    end else begin
      there_q     <= there;
      committed_q <= committed;
      for (int unsigned i = 0; i < Depth; i++) entries_q[i] <= pop ? next[i+1] : next[i];
    end
  end

  // ---------------------------------------------------------------------------------------------
  // Result
  // ---------------------------------------------------------------------------------------------
  always_ff @(posedge clk_i) begin
    if (!rst_ni) begin
      result_q <= '0;
    end else if (end_i.done) begin
      result_q.valid <= 1'b1;
      result_q.id    <= x_id_t'(entries_q[0].id);
      result_q.hartid <= x_hartid_t'(entries_q[0].hartid);
      result_q.rd    <= entries_q[0].instr[11:7];
      result_q.we    <= entries_q[0].decoded.writeback;
      result_q.data  <= entries_q[0].decoded.writeback ? end_i.data : '0;
    end else if (x_req_i.result_ready) begin
      result_q.valid <= 1'b0;
    end
  end

  assign x_rsp_o = '{issue: answer, operands_ready: Split || answer.ready};
  assign x_result_o = result_q;
  assign taken_o = result_q.valid && x_req_i.result_ready;

  assign awake_o = result_q.valid || under_way != '0;

`ifndef SYNTHESIS
  x_id_t wide;
  assign wide =
      (x_req_i.issue.id | x_req_i.operands.id | x_commit_i.id) >> (IdWidth - 1) >> 1 |
      (x_req_i.issue.hartid | x_req_i.operands.hartid | x_commit_i.hartid) >>
      (HartIdWidth - 1) >> 1;
  IdsFit_A :
  assert property (@(posedge clk_i) disable iff (!rst_ni) wide == '0)
  else $error("npu_cop_issue: an identifier is wider than IdWidth or HartIdWidth");
  OnlyWhenAsked_A :
  assert property (@(posedge clk_i) disable iff (!rst_ni) end_i.done |-> op_o.valid && room_o)
  else $error("npu_cop_issue: an instruction ends that is not there, or without room");
  NoHoles_A :
  assert property (@(posedge clk_i) disable iff (!rst_ni)
                   (there_q & (there_q + 1'b1)) == '0 && (committed_q & (committed_q + 1'b1)) == '0)
  else $error("npu_cop_issue: entries or committed ones are not the oldest ones");
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
