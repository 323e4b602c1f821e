// SPDX-License-Identifier: Apache-2.0
//
// Watches the coprocessor's port and says in each cycle which rules of CV-X-IF 1.0 were broken in the
// one before, by host or chip. It knows nothing of the design: from what was said on the port it
// follows what is under way and what has become of it.

module cop_rules
  import tb_pkg::*;
#(
  parameter int unsigned IdWidth  = 4,
  parameter bit          Split    = 1'b0,    // registers come behind the issue
  parameter int unsigned Patience = 500_000  // cycles within which a result must come
) (
  input logic clk_i,
  input logic rst_ni,

  input x_host_t   host_i,
  input x_commit_t commit_i,
  input x_chip_t   chip_i,
  input logic      idle_i,    // the host has nothing under way
  input logic      silent_i,  // the memory may withhold answers: nobody waits for them then

  output logic [CopRules-1:0] broken_o,
  output x_under_way_t under_way_o
);

  localparam int unsigned Most = 32;  // instructions that are remembered
  localparam int unsigned Soon = 8;  // cycles within which an idle chip answers

  typedef logic [IdWidth-1:0] id_t;

  // From the handshake of issue until nothing more may happen to it
  typedef struct {
    id_t                 id;
    logic [XIdBits-1:0]  hartid;
    logic [31:0]         instr;
    logic                accepted;
    logic                writeback;
    logic [XSources-1:0] reads;
    logic                registered;  // its register transaction has been
    logic                committed;
  } flight_t;

  // What was under way: why nothing more may happen to it
  typedef struct {
    id_t       id;
    cop_rule_e why;
  } gone_t;

  flight_t flights[$];  // in the order of issue
  gone_t gone[$];
  logic [CopRules-1:0] broken;
  x_host_t was;  // in the cycle before; valid only if it was not taken
  x_commit_t was_commit;
  x_chip_t was_chip;
  logic offered, same;  // there is an offer; it is that of the cycle before
  logic promised, doomed;  // the offer was committed or killed while it waited
  logic one_hart;  // `hart` is known
  logic [XIdBits-1:0] hart;
  id_t newest, decided, ahead;  // offered last, decided last, how far that is beyond the newest
  int unsigned waited, answer_waited;

  assign broken_o = broken;

  function automatic logic uses_memory(logic [31:0] instr);
    unique case (instr[14:12])
      3'd0: return instr[31:25] inside {[7'd1 : 7'd12]};
      3'd6, 3'd7: return 1'b1;
      default: return 1'b0;
    endcase
  endfunction

  task automatic check(cop_rule_e rule, logic holds);
    if (!holds) broken[rule] = 1'b1;
  endtask

  task automatic bury(id_t id, cop_rule_e why);
    gone.push_back('{id, why});
    if (gone.size() > Most) void'(gone.pop_front());
  endtask

  function automatic int place(logic [XIdBits-1:0] id);
    foreach (flights[i]) if (XIdBits'(flights[i].id) == id) return i;
    return -1;
  endfunction

  // -----------------------------------------------------------------------------------------------
  // Issue, and registers
  // -----------------------------------------------------------------------------------------------
  task automatic check_hart(logic valid, logic [XIdBits-1:0] hartid);
    if (!valid) return;
    if (!one_hart) hart = hartid;
    one_hart = 1'b1;
    check(OneHart, hartid == hart);
  endtask

  task automatic check_offer();
    automatic id_t id = id_t'(host_i.issue_id);
    if (same) begin
      check(IssueStable, host_i.issue_instr == was.issue_instr);
      return;
    end
    {promised, doomed} = '0;
    if (place(host_i.issue_id) >= 0) check(IdUnique, 1'b0);
    else if (flights.size() != 0)
      check(IdIncreases, id_t'(id - flights[0].id) > id_t'(newest - flights[0].id));
    check(CommitNotAhead, ahead == '0 || id_t'(id - newest) > ahead);
    ahead  = '0;
    newest = id;
    gone   = gone.find with (item.id != id);
  endtask

  task automatic check_answer();
    check(AcceptsOwn, !chip_i.issue_accept || host_i.issue_instr[6:0] inside {7'h0b, 7'h2b});
    check(RefusedWritesNothing, chip_i.issue_accept || !chip_i.issue_writeback);
    check(RefusedReadsNothing,
          chip_i.issue_accept || (chip_i.issue_register_read == '0 && chip_i.issue_float == '0));
    if (!Split)
      check(OperandsAwaited, (chip_i.issue_register_read & ~host_i.register_rs_valid) == '0);
    if (doomed) bury(newest, WaitingIsKilled);
    else
      flights.push_back('{newest, host_i.issue_hartid, host_i.issue_instr, chip_i.issue_accept,
                        chip_i.issue_writeback, chip_i.issue_register_read, !Split, promised});
  endtask

  task automatic check_registers_with_issue();
    automatic logic there = (chip_i.issue_register_read & ~host_i.register_rs_valid) == '0;
    check(RegisterWithIssue,
          host_i.register_valid == host_i.issue_valid &&
          (!offered || host_i.register_id == host_i.issue_id));
    check(ReadyTogether, !offered || chip_i.register_ready == chip_i.issue_ready);
    for (int unsigned i = 0; i < XSources; i++) begin
      if (same && was.register_rs_valid[i]) begin
        check(SourcesKept, host_i.register_rs_valid[i]);
        check(SourcesStable,
              !host_i.register_rs_valid[i] || host_i.register_rs[i] == was.register_rs[i]);
      end
    end
    answer_waited = offered && !chip_i.issue_ready && flights.size() == 0 && there ?
        answer_waited + 1 : 0;
    check(OthersNotAwaited, answer_waited < Soon);
  endtask

  task automatic check_registers_behind_issue();
    automatic int at = place(host_i.register_id);
    check(RegisterAlwaysReady, chip_i.register_ready);
    if (!host_i.register_valid) return;
    if (at < 0) check(RegisterBehindIssue, 1'b0);
    else begin
      check(RegisterOnce, !flights[at].registered);
      check(RegisterComplete, host_i.register_rs_valid == flights[at].reads);
      flights[at].registered = 1'b1;
    end
  endtask

  // -----------------------------------------------------------------------------------------------
  // Commit, by place or by age
  // -----------------------------------------------------------------------------------------------
  // Commit so many of the oldest, or kill all but so many; `also`: the offer that waits as well.
  task automatic decide(int unsigned many, logic kill, logic also);
    foreach (flights[i]) if (!kill && i < many) flights[i].committed = 1'b1;
    while (kill && flights.size() > many && !flights[$].committed) begin
      bury(flights[$].id, ResultOfKilled);
      void'(flights.pop_back());
    end
    if (also && kill) doomed = 1'b1;
    if (also && !kill) promised = 1'b1;
  endtask

  task automatic check_commit(logic waits);
    automatic id_t id = id_t'(commit_i.id);
    automatic int  at = place(commit_i.id);
    check(CommitPulse,
          was_commit != commit_i || (offered && !same && host_i.issue_id == commit_i.id));
    if (at >= 0) begin
      check(CommitFinal, !flights[at].committed || !commit_i.kill);
      if (flights[at].committed) return;
      decide(commit_i.kill ? at : at + 1, commit_i.kill, commit_i.kill && waits);
      decided = commit_i.kill ? newest : id;
    end else if (offered && XIdBits'(newest) == commit_i.id) begin
      check(CommitFinal, !promised || !commit_i.kill);
      check(KillFinal, !doomed || commit_i.kill);
      if (promised || doomed) return;
      decide(flights.size(), commit_i.kill, waits);
      decided = id;
    end else check_foreign_commit(waits, id);
  endtask

  // Of an identifier that is not here: how many are older?
  task automatic check_foreign_commit(logic waits, id_t id);
    automatic int unsigned many = flights.size(), older = 0;
    automatic id_t  oldest = many != 0 ? flights[0].id : waits ? newest : decided;
    automatic id_t  last = waits ? newest : many != 0 ? flights[$].id : decided;
    automatic logic aged = id_t'(decided - oldest) > id_t'(last - oldest);  // older than all
    automatic logic first = aged && id_t'(id - oldest) > id_t'(decided - oldest);
    automatic logic beyond = !first && id_t'(id - oldest) > id_t'(last - oldest);
    if (beyond && id_t'((aged ? decided : oldest) - id) < id_t'(id - last)) return;  // long ago
    foreach (flights[i])
      if (!first && id_t'(flights[i].id - oldest) < id_t'(id - oldest)) older = i + 1;
    decide(older, commit_i.kill, waits && !promised && !doomed && (beyond ^ commit_i.kill));
    if (beyond && id_t'(id - last) > id_t'(newest - last)) ahead = id - newest;
    if (commit_i.kill && !beyond) decided = newest;
    else if (!first) decided = id;
  endtask

  // -----------------------------------------------------------------------------------------------
  // Result
  // -----------------------------------------------------------------------------------------------
  function automatic logic [2*XIdBits+37:0] told(x_chip_t chip);
    return {chip.result_hartid, chip.result_id, chip.result_rd, chip.result_we, chip.result_data};
  endfunction

  task automatic check_result();
    automatic int at = place(chip_i.result_id);
    if (at < 0 || !flights[at].accepted) begin
      automatic cop_rule_e why = ResultOfAccepted;
      foreach (gone[i]) if (XIdBits'(gone[i].id) == chip_i.result_id) why = gone[i].why;
      check(why, 1'b0);
      return;
    end
    check(ResultAfterCommit, flights[at].committed);
    check(ResultAfterRegister, flights[at].registered);
    check(ResultWriteback, chip_i.result_we == flights[at].writeback);
    check(ResultRegister, !chip_i.result_we || chip_i.result_rd == flights[at].instr[11:7]);
    check(ResultHart, chip_i.result_hartid == flights[at].hartid);
  endtask

  task automatic retire();
    automatic int at = place(chip_i.result_id);
    if (chip_i.result_valid && host_i.result_ready && at >= 0) begin
      bury(flights[at].id, ResultOnce);
      flights.delete(at);
    end
    for (int i = flights.size() - 1; i >= 0; i--)  // refused ones
      if (!flights[i].accepted && flights[i].committed && flights[i].registered) flights.delete(i);
    foreach (flights[i])
      if (idle_i) check(flights[i].committed ? ResultOfEach : EveryIssueDecided, 1'b0);
  endtask

  task automatic tell();
    under_way_o <= '0;
    for (int i = flights.size() - 1; i >= 0; i--) begin
      if (flights[i].accepted) begin
        under_way_o.oldest_id <= XIdBits'(flights[i].id);
        under_way_o.oldest_on_memory <= uses_memory(flights[i].instr);
        if (flights[i].committed && uses_memory(flights[i].instr)) under_way_o.on_memory <= 1'b1;
      end
    end
    under_way_o.count <= 8'(flights.sum() with (int'(item.accepted)));
  endtask

  // A behavioural model: state is updated in program order within one clock edge.
  /* verilator lint_off BLKSEQ */
  always @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) begin
      flights.delete();
      gone.delete();
      broken = '0;
      {was, was_commit, was_chip} = '0;
      {promised, doomed, one_hart, ahead} = '0;
      {newest, decided} = '1;
      waited = 0;
      answer_waited = 0;
      under_way_o <= '0;
    end else begin
      automatic logic issues = host_i.issue_valid && chip_i.issue_ready;
      broken = '0;
      offered = host_i.issue_valid;
      same = offered && was.issue_valid && host_i.issue_id == was.issue_id &&
          host_i.issue_hartid == was.issue_hartid;
      check_hart(offered, host_i.issue_hartid);
      check_hart(host_i.register_valid, host_i.register_hartid);
      check_hart(commit_i.valid, commit_i.hartid);
      if (offered) check_offer();
      if (Split) check_registers_behind_issue();
      else check_registers_with_issue();
      if (issues) check_answer();
      if (commit_i.valid) check_commit(offered && !issues);

      if (was_chip.result_valid) begin
        check(ResultHeld, chip_i.result_valid);
        check(ResultStable, !chip_i.result_valid || told(chip_i) == told(was_chip));
      end else if (chip_i.result_valid) check_result();
      waited = flights.size() != 0 && flights[0].accepted && flights[0].committed &&
          flights[0].registered && !chip_i.result_valid && !silent_i ? waited + 1 : 0;
      check(ResultComes, waited < Patience);
      retire();
      tell();

      was = host_i;
      was.issue_valid = offered && !issues;
      was_commit = commit_i;
      was_chip = chip_i;
      was_chip.result_valid = chip_i.result_valid && !host_i.result_ready;
    end
  end
  /* verilator lint_on BLKSEQ */

endmodule
