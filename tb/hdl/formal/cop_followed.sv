// SPDX-License-Identifier: Apache-2.0
//
// The block of the coprocessor's port, and beside it what is under way there as CV-X-IF 1.0 has it, for
// formal_cop_issue and formal_cop_split, which look in here: a list of what was issued, in order, with
// what the host has decided. It knows of the block what it answers and when an instruction ends. One
// instruction that was accepted, any, is told apart, and what it came with is kept.

module cop_followed
  import npu_cop_pkg::*;
#(
  parameter bit Split = 1'b0
) (
  input logic      clk_i,       // clock
  input logic      rst_ni,      // reset, active low
  input x_req_t    x_req_i,
  input x_commit_t x_commit_i,
  input logic      refuse_i,
  input cop_end_t  end_i,
  input logic      mark_i       // with an issue: this one is told apart, unless another one is
);

  localparam int unsigned IdWidth = 3;
  localparam int unsigned Depth = 3;
  localparam int unsigned CountW = $clog2(Depth + 1);

  typedef logic [IdWidth-1:0] id_t;
  typedef logic [CountW-1:0] count_t;

  typedef struct packed {
    id_t  id;
    logic accepted;
    logic mine;      // it is told apart
  } flight_t;

  x_req_t req;
  cop_end_t ending;
  x_rsp_t rsp;
  x_result_t result;
  cop_op_t op;
  logic ended, room, awake, busy;

  // Data only passes through, so that one bit of a word tells of all.
  always_comb begin
    req = x_req_i;
    for (int unsigned r = 0; r < 3; r++) req.operands.rs[r] = {32{x_req_i.operands.rs[r][0]}};
    ending      = end_i;
    ending.data = {32{end_i.data[0]}};
  end

  npu_cop_issue #(
    .NumRs(3),
    .IdWidth(IdWidth),
    .HartIdWidth(1),
    .Split(Split),
    .Depth(Depth)
  ) u_issue (
    .clk_i,
    .rst_ni,
    .x_req_i   (req),
    .x_commit_i,
    .x_rsp_o   (rsp),
    .x_result_o(result),
    .refuse_i,
    .op_o      (op),
    .end_i     (ending),
    .ended_o   (ended),
    .room_o    (room),
    .awake_o   (awake),
    .busy_o    (busy),
    .taken_o   ()
  );

  // -----------------------------------------------------------------------------------------------
  // What is under way
  // -----------------------------------------------------------------------------------------------
  flight_t [Depth-1:0] flights_q, flights;  // oldest first; with the issue of this cycle
  count_t
      count_q, count, committed_q, committed, place;  // so many; of them, committed; one's place
  flight_t result_q;  // of the result that waits, if there is one
  logic there_q;  // there is
  logic waits_q, promised_q, doomed_q;  // the offer of the cycle before: was committed, killed
  logic offered, issues, same, promised, doomed, ends, marks, marked_q;
  logic here, leads, gone, keeps, under_way, mine_inside;
  id_t newest_q, id, named, oldest;  // offered last, offered, decided, oldest one in flight
  logic [Depth-1:0] flies;  // in flight: a refused one is not any more, once it is committed

  assign offered = x_req_i.issue.valid;
  assign issues  = offered && rsp.issue.ready;
  assign id      = id_t'(x_req_i.issue.id);
  assign named   = id_t'(x_commit_i.id);
  assign same    = waits_q && id == newest_q;  // one that waits is the newest
  assign ends    = op.valid && end_i.ready && room;
  assign marks   = issues && rsp.issue.accept && !(same && doomed_q) && mark_i && !marked_q;

  always_comb begin
    oldest = newest_q;
    for (int unsigned i = 0; i < Depth; i++) begin
      flies[i] = count_t'(i) < count_q && (flights_q[i].accepted || count_t'(i) >= committed_q);
    end
    for (int unsigned i = Depth; i > 0; i--) if (flies[i-1]) oldest = flights_q[i-1].id;
    if (there_q) oldest = result_q.id;
  end

  always_comb begin
    flights   = flights_q;
    count     = count_q;
    committed = committed_q;
    promised  = offered && same && promised_q;
    doomed    = offered && same && doomed_q;
    keeps     = 1'b1;

    // IdUnique, IdIncreases
    if (offered && !same && (there_q || flies != '0) &&
        id_t'(id - oldest) <= id_t'(newest_q - oldest))
      keeps = 1'b0;

    // The answer to what was killed while it waited means nothing.
    if (issues && !doomed && count != count_t'(Depth)) begin
      for (int unsigned i = 0; i < Depth; i++) begin
        if (count_t'(i) == count) flights[i] = '{id, rsp.issue.accept, marks};
      end
      count = count + 1'b1;
      if (promised) committed = count;
    end

    here  = 1'b0;
    place = '0;
    for (int unsigned i = 0; i < Depth; i++) begin
      if (count_t'(i) < count && (flies[i] || count_t'(i) >= count_q) &&
          flights[i].id == named) begin
        here  = 1'b1;
        place = count_t'(i);
      end
    end
    if (x_commit_i.valid && here) begin
      if (place < committed) begin
        if (x_commit_i.kill) keeps = 1'b0;  // CommitFinal
      end else if (x_commit_i.kill) begin
        count  = place;
        doomed = offered && !issues;
      end else begin
        committed = place + 1'b1;
      end
    end else if (x_commit_i.valid && offered && id == named) begin
      if (promised && x_commit_i.kill) keeps = 1'b0;  // CommitFinal
      if (doomed && !x_commit_i.kill) keeps = 1'b0;  // KillFinal
      if (!doomed && !x_commit_i.kill) committed = count;
      promised = !x_commit_i.kill;
      doomed   = x_commit_i.kill;
    end else if (x_commit_i.valid) begin
      // Of others only one whose result waits is named, for a second time: CommitFinal.
      keeps = keeps && there_q && result_q.id == named && !x_commit_i.kill;
    end

    // A refused one is under way until it is the oldest, and named by its commit, or committed before.
    leads = x_commit_i.valid && here && place == '0;
    gone  = count_q != '0 && !flights_q[0].accepted && committed != '0 &&
        (committed_q != '0 || leads);

    under_way = there_q;
    mine_inside = 1'b0;
    for (int unsigned i = 0; i < Depth; i++) begin
      if (count_t'(i) < count_q && flights_q[i].mine) mine_inside = 1'b1;
      if (count_t'(i) < count_q && flights_q[i].accepted) under_way = 1'b1;
    end
  end

  always_ff @(posedge clk_i) begin
    if (!rst_ni) begin
      flights_q   <= '0;
      count_q     <= '0;
      committed_q <= '0;
      result_q    <= '0;
      there_q     <= 1'b0;
      waits_q     <= 1'b0;
      promised_q  <= 1'b0;
      doomed_q    <= 1'b0;
      marked_q    <= 1'b0;
      newest_q    <= '1;
    end else begin
      flights_q   <= (gone || ends) ? flights >> $bits(flight_t) : flights;
      count_q     <= count - count_t'(gone || ends);
      committed_q <= committed - count_t'(gone || ends);
      if (x_req_i.result_ready) there_q <= 1'b0;
      if (ends) there_q <= 1'b1;
      if (ends) result_q <= flights[0];
      waits_q    <= offered && !issues;
      promised_q <= promised;
      doomed_q   <= doomed;
      if (marks) marked_q <= 1'b1;
      if (offered) newest_q <= id;
    end
  end

  // The oldest one: by now it may be executed; already before this cycle; it is told apart.
  logic may_go, told, mine;
  assign may_go = count_q != '0 && flights_q[0].accepted && committed != '0;
  assign told   = count_q != '0 && flights_q[0].accepted && committed_q != '0;
  assign mine   = count_q != '0 && flights_q[0].mine;

  // -----------------------------------------------------------------------------------------------
  // What the one that is told apart came with
  // -----------------------------------------------------------------------------------------------
  logic [31:0] instr_q;
  x_hartid_t hart_q;
  logic writeback_q, had_q;  // it has had its operands
  logic [2:0] reads_q;
  x_sources_t rs_q;  // 0 where it reads none
  logic delivers;

  always_comb begin
    delivers = 1'b0;
    for (int unsigned i = 0; i < Depth; i++) begin
      if (count_t'(i) < count_q && flights_q[i].mine && x_req_i.operands.valid &&
          id_t'(x_req_i.operands.id) == flights_q[i].id)
        delivers = Split && !had_q;
    end
  end

  always_ff @(posedge clk_i) begin
    if (marks) begin
      instr_q     <= x_req_i.issue.instr;
      hart_q      <= x_req_i.issue.hartid;
      writeback_q <= rsp.issue.writeback;
      reads_q     <= rsp.issue.register_read;
      had_q       <= !Split;
    end
    if (delivers) had_q <= 1'b1;
    for (int unsigned r = 0; r < 3; r++) begin
      if (marks) rs_q[r] <= (!Split && rsp.issue.register_read[r]) ? req.operands.rs[r] : '0;
      if (delivers && reads_q[r]) rs_q[r] <= req.operands.rs[r];
    end
  end

  // -----------------------------------------------------------------------------------------------
  // How the block has it, part of what is proved: the search alone finds it slowly, or not
  // -----------------------------------------------------------------------------------------------
  logic ordered, rises, alike, of_hart, of_instr, of_wait, of_operands;
  count_t index;
  id_t last;

  always_comb begin
    // Identifiers rise from the oldest one on, up to the newest.
    last = oldest;
    rises = there_q;
    ordered = committed_q <= count_q && count_q <= count_t'(Depth) &&
        !(waits_q && promised_q && committed_q != count_q);
    for (int unsigned i = 0; i < Depth; i++) begin
      if (flies[i]) begin
        if (rises && id_t'(flights_q[i].id - oldest) <= id_t'(last - oldest)) ordered = 1'b0;
        rises = 1'b1;
        last  = flights_q[i].id;
        if (id_t'(last - oldest) > id_t'(newest_q - oldest) || (waits_q && last == newest_q))
          ordered = 1'b0;
      end
    end

    alike = ordered && !u_issue.u_decide.late_q.valid && u_issue.u_decide.waits_q == waits_q &&
        (!waits_q || (u_issue.u_decide.offer_id_q == newest_q &&
         u_issue.u_decide.promised_q == promised_q && u_issue.u_decide.doomed_q == doomed_q)) &&
        u_issue.result_q.valid == there_q &&
        (!there_q || u_issue.result_q.id == x_id_t'(result_q.id));
    for (int unsigned i = 0; i < Depth; i++) begin
      if (u_issue.there_q[i] != (count_t'(i) < count_q) ||
          u_issue.committed_q[i] != (count_t'(i) < committed_q) ||
          (u_issue.there_q[i] && (u_issue.names_q[i].id != flights_q[i].id ||
           u_issue.names_q[i].accepted != flights_q[i].accepted)))
        alike = 1'b0;
    end

    of_hart = !there_q || !result_q.mine || u_issue.result_q.hartid == hart_q;
    of_instr = !there_q || !result_q.mine ||
        (u_issue.result_q.rd == instr_q[11:7] && u_issue.result_q.we == writeback_q);
    of_wait = 1'b1;
    of_operands = 1'b1;
    index = '0;
    if (32'(u_issue.second_q) >= Depth - 1) alike = 1'b0;
    for (int unsigned i = 0; i < Depth; i++) begin
      index = count_t'(u_issue.second_q) + count_t'(i) - 1'b1;
      if (index >= count_t'(Depth - 1)) index = index - count_t'(Depth - 1);
      if (count_t'(i) < count_q && flights_q[i].mine) begin
        if (i == 0) begin
          of_hart = x_hartid_t'(u_issue.oldest_q.hartid) == hart_q;
          of_instr = u_issue.oldest_q.instr == instr_q &&
              u_issue.oldest_q.decoded.writeback == writeback_q;
          of_wait = u_issue.oldest_q.decoded.register_read == reads_q &&
              u_issue.oldest_q.waits == !had_q;
          of_operands = of_wait && u_issue.oldest_q.rs == rs_q;
        end else begin
          of_hart = x_hartid_t'(u_issue.places_q[index].hartid) == hart_q;
          of_instr = u_issue.places_q[index].instr == instr_q &&
              u_issue.places_q[index].decoded.writeback == writeback_q;
          of_wait = u_issue.places_q[index].decoded.register_read == reads_q &&
              u_issue.places_q[index].waits == !had_q;
          of_operands = of_wait && u_issue.places_q[index].rs == rs_q;
        end
      end
    end
  end

  // What is assumed
  logic begun_q, fits;
  x_id_t wide;
  initial begun_q = 1'b0;
  always_ff @(posedge clk_i) begun_q <= 1'b1;
  assign wide = x_req_i.issue.id | x_req_i.operands.id | x_commit_i.id;
  assign fits = wide >> IdWidth == '0 && x_req_i.issue.hartid >> 1 == '0;

  always_comb begin
    assume (begun_q || !rst_ni);
    assume (fits);  // IdsFit_A of the block
    assume (!rst_ni || keeps);
  end

endmodule
