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
  logic [Depth-1:0] is_there;  // with the instruction that is issued, unless it is killed
  logic issue, accept, joins, enters;
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
  assign issue = x_req_i.issue.valid && answer.ready;

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
  assign is_there = enters ? {there_q[Depth-2:0], 1'b1} : there_q;

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
  // Commit and kill, of the entries and of the instruction that is offered, which may wait
  // ---------------------------------------------------------------------------------------------
  // A decision that names an instruction that is here counts at once. Of another identifier, or beside
  // one of another, it waits a cycle, and is then about what was here when it came: the offer of that
  // cycle may be the newest entry meanwhile, the oldest entry may have gone. Nothing is issued behind
  // what such a kill takes away.
  typedef struct packed {
    logic valid;
    logic kill;
    id_t  id;
  } decision_t;

  decision_t late_q;  // it has waited
  // In the cycle before there was an offer; it waited, was committed, was killed
  logic offered_q, waits_q, promised_q, doomed_q;
  logic aged_q;  // in the cycle before the oldest one in flight had a result, or ended
  id_t offer_id_q, aged_id_q, commit_id;  // of that offer, of that oldest one, of the decision
  logic waits, kill, named, leads, ended, late, heard, pop;
  logic [Depth:0] present, decided, match, reach, commits, kills;

  assign kills_late = late_q.valid && late_q.kill;

  assign waits      = waits_q && offer_id_q == incoming.id;
  assign present    = {x_req_i.issue.valid && (waits || !late_q.valid), there_q};
  assign decided    = {waits && (promised_q || doomed_q), committed_q};
  assign commit_id  = late_q.valid ? late_q.id : id_t'(x_commit_i.id);
  assign kill       = late_q.valid ? late_q.kill : x_commit_i.kill;
  assign named      = match != '0;
  assign ended      = result_q.valid && id_t'(result_q.id) == id_t'(x_commit_i.id);
  assign leads      = there_q[0] && entries_q[0].id == id_t'(x_commit_i.id);
  // A second decision about one that has ended or ends now is none.
  assign late       = (late_q.valid || !named) && !ended && !(leads && pop);

  always_comb begin
    for (int unsigned i = 0; i <= Depth; i++) begin
      match[i] = present[i] && (i < Depth ? entries_q[i%Depth].id : incoming.id) == commit_id;
    end
  end

  // Others than those that are here are placed by their distance from the oldest one in flight, whose
  // result may wait: between those that are here; behind the newest; or, if the last one that was
  // decided is older than all, between that one and the oldest, because the host decides in the order
  // of issue. Behind the newest, what is nearer to those that were decided was decided long ago.
  id_t decided_id_q, oldest_id, last_id, newest_id, newest_now_id;
  logic aged, first, beyond, near_decided, near_oldest, past;
  logic [Depth:0] older;

  // From `from` on, one comes before the other.
  function automatic logic precedes(id_t from, id_t one, id_t other);
    return (one >= from) == (other >= from) ? one < other : one >= from;
  endfunction

  assign oldest_id = aged_q ? aged_id_q : there_q[0] ? entries_q[0].id :
      offered_q ? offer_id_q : decided_id_q;
  assign newest_id = offered_q ? offer_id_q : last_id;
  assign newest_now_id = x_req_i.issue.valid ? incoming.id : last_id;

  assign aged = precedes(oldest_id, newest_id, decided_id_q);
  assign first = !named && aged && precedes(oldest_id, decided_id_q, late_q.id);
  assign beyond = !named && !first && precedes(oldest_id, newest_id, late_q.id);
  assign near_decided = id_t'(decided_id_q - late_q.id) < id_t'(late_q.id - newest_id);
  assign near_oldest = id_t'(oldest_id - late_q.id) < id_t'(late_q.id - newest_id);
  assign past = beyond && (aged ? near_decided : near_oldest);
  assign heard = (match & decided) == '0 && (late_q.valid ? !past : x_commit_i.valid && named);

  always_comb begin
    last_id = decided_id_q;
    for (int unsigned i = 0; i < Depth; i++) begin
      if (there_q[i]) last_id = entries_q[i].id;
    end
  end

  always_comb begin
    for (int unsigned i = 0; i <= Depth; i++) begin
      older[i] = !first &&
          precedes(oldest_id, i < Depth ? entries_q[i%Depth].id : offer_id_q, late_q.id);
    end
    for (int unsigned i = 0; i <= Depth; i++) begin
      reach[i] = named ? (match >> i) != '0 : older[i];
    end
  end

  assign commits = (heard && !kill) ? present & reach : '0;
  assign kills   = (heard && kill) ? present & ~decided & (~reach | match) : '0;
  assign joins   = issue && !(waits && doomed_q);
  assign enters  = joins && !kills[Depth];

  always_ff @(posedge clk_i) begin
    if (!rst_ni) begin
      late_q       <= '0;
      aged_q       <= 1'b0;
      aged_id_q    <= '0;
      offered_q    <= 1'b0;
      waits_q      <= 1'b0;
      offer_id_q   <= '0;
      promised_q   <= 1'b0;
      doomed_q     <= 1'b0;
      decided_id_q <= '1;
    end else begin
      late_q.valid <= x_commit_i.valid && late;
      late_q.kill <= x_commit_i.kill;
      late_q.id <= id_t'(x_commit_i.id);
      aged_q <= result_q.valid || pop;
      aged_id_q <= result_q.valid ? id_t'(result_q.id) : entries_q[0].id;
      offered_q <= x_req_i.issue.valid;
      waits_q <= x_req_i.issue.valid && !answer.ready;
      offer_id_q <= incoming.id;
      promised_q <= commits[Depth] || (waits && promised_q);
      doomed_q <= kills[Depth] || (waits && doomed_q);
      if (heard && kill && !beyond) decided_id_q <= late_q.valid ? newest_id : newest_now_id;
      else if (heard && !first) decided_id_q <= commit_id;
    end
  end

  logic [Depth-1:0] left, committed;

  // Whoever is behind a killed one is killed, whoever is before a committed one is committed.
  assign left = is_there & ~kills[Depth-1:0];
  assign committed = (joins && (commits[Depth] || (waits && promised_q))) ?
      {there_q[Depth-2:0], 1'b1} : committed_q | commits[Depth-1:0];

  // ---------------------------------------------------------------------------------------------
  // The oldest instruction. Its operands must have been there a cycle ago; a commit that names it may
  // be new.
  // ---------------------------------------------------------------------------------------------
  logic ready_to_go;

  assign ready_to_go = there_q[0] && (committed_q[0] ||
      (leads && x_commit_i.valid && !x_commit_i.kill && !late_q.valid));
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
      there_q     <= left >> pop;
      committed_q <= committed >> pop;
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

  logic [Depth-1:0] under_way;

  always_comb begin
    for (int unsigned i = 0; i < Depth; i++) under_way[i] = there_q[i] && entries_q[i].accepted;
  end

  assign awake_o = result_q.valid || under_way != '0;

  // What is killed a cycle late has been killed since the cycle before.
  always_ff @(posedge clk_i) begin
    if (!rst_ni) busy_o <= 1'b0;
    else busy_o <= result_q.valid || (under_way & ~(late_q.valid ? kills[Depth-1:0] : '0)) != '0;
  end

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
