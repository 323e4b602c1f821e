// SPDX-License-Identifier: Apache-2.0
//
// What the host commits and kills, of the instructions in the queue and of the one that is offered,
// which may wait, and what is left of the queue.
//
// A decision that names an instruction that is here counts at once. Of another identifier, or beside
// one of another, it waits a cycle, and is then about what was here when it came: the offer of that
// cycle may be the newest entry meanwhile, the oldest entry may have gone. Nothing is issued behind
// what such a kill takes away.

module npu_cop_decide #(
  parameter int unsigned IdWidth = 4,  // X_ID_WIDTH: bits of an identifier, 3 to 32
  parameter int unsigned Depth   = 4   // instructions in the queue, at least 2
) (
  input logic clk_i,  // clock
  input logic rst_ni, // reset, active low

  // What the host says
  input logic commit_valid_i,  // pulse: a decision
  input logic commit_kill_i,  // with it: the one that it names and all newer ones are killed
  input logic [IdWidth-1:0] commit_id_i,  // with it: the instruction; need not be here

  // The instruction that is offered
  input logic offer_i,  // a level: there is one
  input logic [IdWidth-1:0] offer_id_i,  // with offer_i
  input logic issue_i,  // it is issued in this cycle, with offer_i

  // The queue
  input logic [Depth-1:0] there_i,  // entries in use, the oldest one lowest
  input logic [Depth-1:0] under_way_i,  // those that were accepted
  input logic [Depth-1:0] committed_i,  // those that are committed
  input logic [Depth-1:0][IdWidth-1:0] ids_i,  // of entries in use
  input logic pop_i,  // the oldest one leaves in this cycle
  input logic result_i,  // a level: the result of one that has left waits for the host
  input logic [IdWidth-1:0] result_id_i,  // with result_i

  // In this cycle
  output logic leads_o,  // the oldest entry is committed by the host's word of this cycle
  output logic kills_late_o,  // a kill that has waited is heard: nothing is issued

  // In the next cycle, with the instruction that is issued
  output logic [Depth-1:0] there_o,  // entries in use
  output logic [Depth-1:0] committed_o,  // those that are committed

  // A level: in the cycle before, an instruction that was accepted and not killed then was inside, or a
  // result
  output logic busy_o
);

  typedef logic [IdWidth-1:0] id_t;

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
  logic waits, kill, named, leads, ended, late, heard, joins, enters;
  logic [Depth:0] present, decided, match, reach, commits, kills;
  logic [Depth-1:0] in_flight, left, committed, late_kills;

  // With its commit a refused one has ended, and its identifier is free, although it takes its place
  // until it is the oldest.
  assign in_flight = there_i & (under_way_i | ~committed_i);
  assign waits     = waits_q && offer_id_q == offer_id_i;
  assign present   = {offer_i && (waits || !late_q.valid), in_flight};
  assign decided   = {waits && (promised_q || doomed_q), committed_i};
  assign commit_id = late_q.valid ? late_q.id : commit_id_i;
  assign kill      = late_q.valid ? late_q.kill : commit_kill_i;
  assign named     = match != '0;
  assign ended     = result_i && result_id_i == commit_id_i;
  assign leads     = in_flight[0] && ids_i[0] == commit_id_i;
  // A second decision about one that has ended or ends now is none.
  assign late      = (late_q.valid || !named) && !ended && !(leads && pop_i);

  always_comb begin
    for (int unsigned i = 0; i <= Depth; i++) begin
      match[i] = present[i] && (i < Depth ? ids_i[i%Depth] : offer_id_i) == commit_id;
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

  assign oldest_id = aged_q ? aged_id_q : there_i[0] ? ids_i[0] :
      offered_q ? offer_id_q : decided_id_q;
  assign newest_id = offered_q ? offer_id_q : last_id;
  assign newest_now_id = offer_i ? offer_id_i : last_id;

  assign aged = precedes(oldest_id, newest_id, decided_id_q);
  assign first = !named && aged && precedes(oldest_id, decided_id_q, late_q.id);
  assign beyond = !named && !first && precedes(oldest_id, newest_id, late_q.id);
  assign near_decided = id_t'(decided_id_q - late_q.id) < id_t'(late_q.id - newest_id);
  assign near_oldest = id_t'(oldest_id - late_q.id) < id_t'(late_q.id - newest_id);
  assign past = beyond && (aged ? near_decided : near_oldest);
  assign heard = (match & decided) == '0 && (late_q.valid ? !past : commit_valid_i && named);

  always_comb begin
    last_id = decided_id_q;
    for (int unsigned i = 0; i < Depth; i++) begin
      if (there_i[i]) last_id = ids_i[i];
    end
  end

  always_comb begin
    for (int unsigned i = 0; i <= Depth; i++) begin
      older[i] = !first && precedes(oldest_id, i < Depth ? ids_i[i%Depth] : offer_id_q, late_q.id);
    end
    for (int unsigned i = 0; i <= Depth; i++) begin
      reach[i] = named ? (match >> i) != '0 : older[i];
    end
  end

  assign commits = (heard && !kill) ? present & reach : '0;
  assign kills = (heard && kill) ? present & ~decided & (~reach | match) : '0;
  assign joins = issue_i && !(waits && doomed_q);
  assign enters = joins && !kills[Depth];

  assign kills_late_o = late_q.valid && late_q.kill;
  assign leads_o = leads && commit_valid_i && !commit_kill_i && !late_q.valid;

  // Whoever is behind a killed one is killed, whoever is before a committed one is committed.
  assign left = (enters ? {there_i[Depth-2:0], 1'b1} : there_i) & ~kills[Depth-1:0];
  assign committed    = (joins && (commits[Depth] || (waits && promised_q))) ?
      {there_i[Depth-2:0], 1'b1} : committed_i | commits[Depth-1:0];
  assign there_o = left >> pop_i;
  assign committed_o = committed >> pop_i;

  // What is killed a cycle late has been killed since the cycle before.
  assign late_kills = late_q.valid ? kills[Depth-1:0] : '0;

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
      busy_o       <= 1'b0;
    end else begin
      late_q.valid <= commit_valid_i && late;
      late_q.kill <= commit_kill_i;
      late_q.id <= commit_id_i;
      aged_q <= result_i || pop_i;
      aged_id_q <= result_i ? result_id_i : ids_i[0];
      offered_q <= offer_i;
      busy_o <= result_i || (under_way_i & ~late_kills) != '0;
      waits_q <= offer_i && !issue_i;
      offer_id_q <= offer_id_i;
      promised_q <= commits[Depth] || (waits && promised_q);
      doomed_q <= kills[Depth] || (waits && doomed_q);
      if (heard && kill && !beyond) decided_id_q <= late_q.valid ? newest_id : newest_now_id;
      else if (heard && !first) decided_id_q <= commit_id;
    end
  end

endmodule
