// SPDX-License-Identifier: Apache-2.0
//
// Host of the coprocessor's port (CV-X-IF 1.0): plays a list of instructions that Python has left in
// a file (offers.bin, see memory_dpi.cpp) and writes beside each what became of it. Python sleeps
// from the first offer to the last result. When and how everything is said is up to the list: gaps,
// sources one by one, commits early, late, twice or in batches, by identifiers of other coprocessors,
// kills at any moment, offers that are withdrawn, results that have to wait, identifiers with holes.

module cop_agent
  import tb_pkg::*;
#(
  parameter int unsigned IdWidth     = 4,
  parameter int unsigned HartIdWidth = 1,
  parameter bit          Split       = 1'b0  // registers come behind the issue
) (
  input logic        clk_i,
  input logic        rst_ni,
  input logic [31:0] cycle_i,

  input  logic        play_i,    // each change plays the list once
  input  logic [15:0] count_i,   // instructions in the list, at least one
  output logic        played_o,  // play_i again when nothing of the list is under way any more
  output logic [15:0] index_o,   // of the next instruction to offer

  output x_host_t   host_o,
  output x_commit_t commit_o,
  input  x_chip_t   chip_i,
  input  logic      issue_ready_i  // that of chip_i, apart: commit_o may follow from it
);

  localparam int unsigned Depth = IdWidth < 4 ? 2 ** IdWidth : 16;
  localparam bit [XIdBits-1:0] Hart = (33'd1 << HartIdWidth) - 1;

  typedef logic [IdWidth-1:0] id_t;

  // An instruction from the handshake of issue until nothing more happens to it
  typedef struct {
    logic [15:0] index;
    id_t         id;
    offer_t      offer;
    logic        registers;  // its register transaction is to come
    logic        killed;
    logic        committed;
    logic        resulted;
  } flight_t;

  flight_t flights[Depth];  // in the order of issue
  int unsigned count;
  logic [15:0] next;  // of the list
  offer_t offer;  // that of `next`, once it is loaded
  logic loaded, offering;
  logic promised, doomed;  // it was committed or killed before its issue
  logic [15:0] quiet;  // cycles since the last offer
  logic [15:0] waited;  // cycles that a result has waited for ready
  id_t id;  // of the last offer
  id_t decided;  // identifier of the last commit
  id_t ahead;  // how far that is beyond the last offer
  x_commit_t commit;  // but for one that comes with the handshake of issue
  id_t meant;  // the instruction that it is of
  logic with_issue, with_issue_kill;

  assign commit_o = with_issue && host_o.issue_valid && issue_ready_i ?
      '{valid: 1'b1, hartid: Hart, id: host_o.issue_id, kill: with_issue_kill}
      : commit;

  // Bits that stand where nothing is valid
  function automatic logic [31:0] rubbish();
    return {cycle_i[15:0], ~cycle_i[15:0]} ^ 32'ha5c3_1e78;
  endfunction

  function automatic logic [XSources-1:0] arrived(offer_t from, logic [31:0] age);
    for (int unsigned i = 0; i < XSources; i++) arrived[i] = age >= 32'(from.source_delay[i]);
  endfunction

  function automatic logic any_uncommitted();
    for (int unsigned i = 0; i < count; i++) if (!flights[i].committed) return 1'b1;
    return 1'b0;
  endfunction

  // Whether an identifier is younger than all that are in flight
  function automatic logic is_free(id_t wanted);
    if (count == 0) return 1'b1;
    return id_t'(wanted - flights[0].id) > id_t'(id - flights[0].id);
  endfunction

  // The identifier that a commit of an instruction names: if another one is wanted, one that another
  // coprocessor may have, behind the instruction or before it, and that is not decided yet.
  function automatic id_t named(id_t own, offer_t from);
    automatic id_t far = id_t'(from.beside);
    automatic id_t oldest = count == 0 ? id : flights[0].id;
    automatic id_t bound;
    if (from.flags[OfferKill])
      return from.beside < from.step && far < id_t'(own - decided) &&
          id_t'(decided - own) > id_t'(id - own) ? own - far : own;
    for (int unsigned i = 0; i < count; i++)
    if (id_t'(flights[i].id - own) != '0 && id_t'(flights[i].id - own) <= far) return own;
    if (offering && id != own && id_t'(id - own) <= far) return own;
    // Beyond all that are here: none that may be in flight, or was decided not long ago
    bound = id_t'(decided - oldest) > id_t'(own - oldest) ? decided : oldest;
    return id_t'(bound - own - 1'b1) >= id_t'(far + far) ? own + far : own;
  endfunction

  task automatic drive_registers(offer_t from, id_t of, logic [XSources-1:0] valid);
    host_o.register_valid <= 1'b1;
    host_o.register_hartid <= Hart;
    host_o.register_id <= XIdBits'(of);
    host_o.register_rs_valid <= valid;
    for (int unsigned i = 0; i < XSources; i++)
      host_o.register_rs[i] <= valid[i] ? from.rs[i] : rubbish();
  endtask

  // -----------------------------------------------------------------------------------------------
  // What has happened in the cycle that ends here
  // -----------------------------------------------------------------------------------------------
  task automatic take_issue();
    offer.issued_at = cycle_i;
    offer.id = 8'(id);
    offer.register_read = 4'(chip_i.issue_register_read);
    offer.float_registers = 4'(chip_i.issue_float);
    offer.state[OfferIssued] = 1'b1;
    offer.state[OfferAccepted] = chip_i.issue_accept;
    offer.state[OfferWriteback] = chip_i.issue_writeback;
    flights[count] = '{
        index: next,
        id: id,
        offer: offer,
        registers: Split && !doomed,
        killed: doomed,
        committed: promised || doomed,
        resulted: 1'b0
    };
    count = count + 1;
    next = next + 16'd1;
    loaded = 1'b0;
    retract();
  endtask

  // An offer ends, by its handshake or without.
  task automatic retract();
    offering = 1'b0;
    promised = 1'b0;
    doomed   = 1'b0;
    quiet    = '0;
    host_o.issue_valid <= 1'b0;
  endtask

  task automatic take_commit(id_t of, logic kill);
    automatic int unsigned at = 0;
    while (at < count && flights[at].id != of) at++;
    if (at < count && flights[at].committed) return;  // a second time
    if (at < count) flights[at].offer.named = 32'(commit_o.id[7:0]);
    else offer.named = 32'(commit_o.id[7:0]);
    for (int unsigned i = 0; i < count; i++) begin
      if ((kill ? i >= at : i <= at) && !flights[i].committed) begin
        flights[i].offer.committed_at = cycle_i;
        flights[i].offer.state[kill?OfferKilled : OfferCommitted] = 1'b1;
        flights[i].committed = 1'b1;
        flights[i].killed = kill;
        if (kill) flights[i].registers = 1'b0;
      end
    end
    if (offering && !promised && (kill || at == count)) begin
      offer.committed_at = cycle_i;
      promised = !kill;
      doomed = kill;
      if (!kill || offer.flags[OfferStays]) offer.state[kill?OfferKilled : OfferCommitted] = 1'b1;
      else begin
        if (at == count)
          offer.flags[OfferEarly] = 1'b0;  // the next time it is killed behind its issue
        retract();
      end
    end
    decided = id_t'(commit_o.id);
    if (!kill && id_t'(decided - of) > id_t'(id - of)) ahead = decided - id;
  endtask

  task automatic take_result();
    for (int unsigned i = 0; i < count; i++) begin
      if (!flights[i].killed && XIdBits'(flights[i].id) == chip_i.result_id) begin
        if (waited == '0) flights[i].offer.answered_at = cycle_i;
        if (host_o.result_ready) begin
          flights[i].resulted = 1'b1;
          flights[i].offer.resulted_at = cycle_i;
          flights[i].offer.data = chip_i.result_data;
          flights[i].offer.rd = 8'(chip_i.result_rd);
          flights[i].offer.state[OfferResulted] = 1'b1;
          flights[i].offer.state[OfferWritten] = chip_i.result_we;
        end
      end
    end
    waited = host_o.result_ready ? '0 : waited + 16'd1;
  endtask

  // Forget what nothing more happens to.
  task automatic retire();
    automatic int unsigned kept = 0;
    for (int unsigned i = 0; i < count; i++) begin
      automatic logic accepted = flights[i].offer.state[OfferAccepted];
      if (flights[i].killed || (flights[i].committed && !flights[i].registers &&
                                (!accepted || flights[i].resulted)))
        tb_offer_put(32'(flights[i].index), flights[i].offer);
      else begin
        flights[kept] = flights[i];
        kept = kept + 1;
      end
    end
    count = kept;
  endtask

  // -----------------------------------------------------------------------------------------------
  // What is said from here on
  // -----------------------------------------------------------------------------------------------
  task automatic say_issue();
    automatic id_t free;
    if (!loaded && next < count_i) begin
      automatic bit [511:0] bits;
      tb_offer_get(32'(next), bits);
      offer  = bits;
      loaded = 1'b1;
    end
    free = id + (id_t'(offer.step) > ahead ? id_t'(offer.step) : ahead + 1'b1);
    if (offering && !promised && !doomed && offer.withdraw != '0 &&
        cycle_i - offer.offered_at >= 32'(offer.withdraw)) begin
      offer.withdraw = '0;
      if (offer.flags[OfferSwap] && is_free(free)) start(free);
      else retract();
    end else if (loaded && !offering && quiet >= offer.gap && count < Depth - 1 &&
                 !(offer.flags[OfferAlone] && count != 0) && is_free(
            free
        )) begin
      start(free);
    end else if (!offering) begin
      host_o.issue_instr <= rubbish();
      if (quiet != '1) quiet = quiet + 16'd1;
    end
    with_issue <= offering && offer.commit_delay == '0 && !offer.flags[OfferEarly] && !promised &&
        !doomed && !any_uncommitted();
    with_issue_kill <= offer.flags[OfferKill];
  endtask

  task automatic start(id_t as);
    offering = 1'b1;
    id = as;
    ahead = '0;
    offer.offered_at = cycle_i + 32'd1;
    host_o.issue_valid <= 1'b1;
    host_o.issue_instr <= offer.word;
    host_o.issue_hartid <= Hart;
    host_o.issue_id <= XIdBits'(as);
  endtask

  // With the issue, sources come one by one; behind it, all that are read in a transaction of a
  // cycle, that of whichever instruction has them.
  task automatic say_registers();
    host_o.register_valid <= 1'b0;
    if (!Split) begin
      if (offering) drive_registers(offer, id, arrived(offer, cycle_i + 32'd1 - offer.offered_at));
      return;
    end
    for (int unsigned i = 0; i < count; i++) begin
      automatic
      logic [XSources-1:0]
      there = arrived(
          flights[i].offer, cycle_i - flights[i].offer.issued_at
      );
      automatic logic [XSources-1:0] read = flights[i].offer.register_read[XSources-1:0];
      if (flights[i].registers && (read & ~there) == '0) begin
        drive_registers(flights[i].offer, flights[i].id, read);
        flights[i].registers = 1'b0;
        return;
      end
    end
  endtask

  task automatic say_commit();
    automatic logic early = offering && offer.flags[OfferEarly] && !promised && !doomed;
    for (int unsigned i = 0; i < count; i++) begin
      if (!flights[i].committed) begin
        automatic
        logic
        more = i + 1 < count ? !flights[i+1].offer.flags[OfferKill] :
            early && !offer.flags[OfferKill];
        if (32'(flights[i].offer.commit_delay) > cycle_i + 32'd1 - flights[i].offer.issued_at) begin
          early = 1'b0;
          break;
        end
        if (flights[i].offer.flags[OfferBatch] && !flights[i].offer.flags[OfferKill] && more)
          continue;
        decide(flights[i].id, named(flights[i].id, flights[i].offer),
               flights[i].offer.flags[OfferKill]);
        return;
      end
    end
    if (early && 32'(offer.commit_delay) <= cycle_i + 32'd1 - offer.offered_at) begin
      decide(id, named(id, offer), offer.flags[OfferKill]);
      return;
    end
    for (int unsigned i = 0; i < count; i++) begin
      if (flights[i].committed && flights[i].offer.state[OfferAccepted] &&
          flights[i].offer.flags[OfferRepeat] && !commit_o.valid) begin
        automatic id_t far = id_t'(flights[i].offer.beside);
        if (IdWidth < 4 || id_t'(flights[i].id - far - id) <= far) far = '0;  // too small a circle
        flights[i].offer.flags[OfferRepeat] = 1'b0;
        decide(flights[i].id, flights[i].id - far, 1'b0);
        return;
      end
    end
  endtask

  task automatic decide(id_t own, id_t as, logic kill);
    commit <= '{valid: 1'b1, hartid: Hart, id: XIdBits'(as), kill: kill};
    meant = own;
  endtask

  task automatic say_ready();
    for (int unsigned i = 0; i < count; i++) begin
      if (flights[i].offer.state[OfferAccepted] && !flights[i].resulted) begin
        host_o.result_ready <= waited >= 16'(flights[i].offer.hold);
        return;
      end
    end
    host_o.result_ready <= 1'b1;
  endtask

  // A behavioural model: state is updated in program order within one clock edge.
  /* verilator lint_off BLKSEQ */
  always @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) begin
      {loaded, offering, promised, doomed} = '0;
      {with_issue, with_issue_kill} <= '0;
      {next, quiet, waited, id, ahead, meant} = '0;
      decided = '1;
      count = 0;
      host_o   <= '0;
      commit   <= '0;
      played_o <= play_i;
    end else if (play_i != played_o) begin
      automatic logic issues = host_o.issue_valid && chip_i.issue_ready;
      automatic x_commit_t said = commit_o;

      if (with_issue && issues) meant = id;
      commit <= '{valid: 1'b0, hartid: '0, id: XIdBits'(id_t'(rubbish())), kill: rubbish() [7]};
      if (issues) take_issue();
      if (said.valid) take_commit(meant, said.kill);
      if (chip_i.result_valid) take_result();
      retire();

      say_issue();
      say_registers();
      say_commit();
      say_ready();
      if (next == count_i && count == 0) begin
        next = '0;
        played_o <= play_i;
      end
    end
  end
  /* verilator lint_on BLKSEQ */

  assign index_o = next;

endmodule
