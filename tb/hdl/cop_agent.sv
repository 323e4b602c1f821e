// SPDX-License-Identifier: Apache-2.0
//
// Host of the coprocessor's port (CV-X-IF 1.0): plays a list of instructions that Python has left in
// a file (offers.bin, see memory_dpi.cpp) and writes beside each what became of it. Python sleeps
// from the first offer to the last result. When and how everything is said is up to the list: gaps,
// registers with issue one by one or later, commits early, late or in batches, kills at any moment,
// results that have to wait, identifiers with holes.

module cop_agent
  import tb_pkg::*;
(
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

  localparam int unsigned Depth = 2 ** XIdBits;

  // An instruction from the handshake of issue until nothing more happens to it
  typedef struct {
    logic [15:0]        index;
    logic [XIdBits-1:0] id;
    offer_t             offer;
    logic               registers;  // its register transaction is to come
    logic               killed;
    logic               committed;
    logic               resulted;
  } flight_t;

  flight_t flights[Depth];  // in the order of issue
  int unsigned count;
  logic [15:0] next;  // of the list
  offer_t offer;  // that of `next`, once it is loaded
  logic loaded, offering;
  logic [15:0] quiet;  // cycles since the last offer
  logic [15:0] waited;  // cycles that a result has waited for ready
  logic [XIdBits-1:0] id;  // of the last offer
  x_commit_t commit;  // but for one that comes with the handshake of issue
  logic with_issue, with_issue_kill;

  assign commit_o = with_issue && host_o.issue_valid && issue_ready_i ?
      '{valid: 1'b1, id: host_o.issue_id, kill: with_issue_kill}
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
  function automatic logic is_free(logic [XIdBits-1:0] wanted);
    if (count == 0) return 1'b1;
    return wanted - flights[0].id > id - flights[0].id;
  endfunction

  task automatic drive_registers(offer_t from, logic [XIdBits-1:0] of, logic [XSources-1:0] valid);
    host_o.register_valid <= 1'b1;
    host_o.register_id <= of;
    host_o.register_rs_valid <= valid;
    for (int unsigned i = 0; i < XSources; i++)
      host_o.register_rs[i] <= valid[i] ? from.rs[i] : rubbish();
  endtask

  // -----------------------------------------------------------------------------------------------
  // What has happened in the cycle that ends here
  // -----------------------------------------------------------------------------------------------
  task automatic take_issue();
    offer.issued_at = cycle_i;
    offer.register_read = 4'(chip_i.issue_register_read);
    offer.float_registers = 4'(chip_i.issue_float);
    offer.state[OfferIssued] = 1'b1;
    offer.state[OfferAccepted] = chip_i.issue_accept;
    offer.state[OfferWriteback] = chip_i.issue_writeback;
    flights[count] = '{
        index: next,
        id: host_o.issue_id,
        offer: offer,
        registers: chip_i.issue_accept && chip_i.issue_register_read != '0,
        killed: 1'b0,
        committed: 1'b0,
        resulted: 1'b0
    };
    count = count + 1;
    next = next + 16'd1;
    loaded = 1'b0;
    offering = 1'b0;
    quiet = '0;
    host_o.issue_valid <= 1'b0;
    if (!chip_i.issue_accept) host_o.register_valid <= 1'b0;
  endtask

  task automatic retract();
    offering = 1'b0;
    quiet = '0;
    host_o.issue_valid <= 1'b0;
    if (host_o.register_valid && host_o.register_id == host_o.issue_id)
      host_o.register_valid <= 1'b0;
  endtask

  task automatic take_commit(logic [XIdBits-1:0] of, logic kill);
    automatic int unsigned at = 0;
    while (at < count && flights[at].id != of) at++;
    for (int unsigned i = 0; i < count; i++) begin
      if (kill ? i >= at : i <= at && !flights[i].committed) begin
        flights[i].offer.committed_at = cycle_i;
        flights[i].offer.state[kill?OfferKilled : OfferCommitted] = 1'b1;
        flights[i].committed = 1'b1;
        flights[i].killed = kill;
        if (kill && flights[i].registers) begin
          flights[i].registers = 1'b0;
          if (host_o.register_id == flights[i].id) host_o.register_valid <= 1'b0;
        end
      end
    end
    if (kill && offering) retract();
  endtask

  task automatic take_result();
    for (int unsigned i = 0; i < count; i++) begin
      if (flights[i].id == chip_i.result_id) begin
        if (waited == '0) flights[i].offer.answered_at = cycle_i;
        if (host_o.result_ready) begin
          flights[i].resulted = 1'b1;
          flights[i].offer.resulted_at = cycle_i;
          flights[i].offer.data = chip_i.result_data;
          flights[i].offer.rd = 8'(chip_i.result_rd);
          flights[i].offer.id = 8'(chip_i.result_id);
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
      if (flights[i].killed || (flights[i].committed && (!accepted || flights[i].resulted)))
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
    if (!loaded && next < count_i) begin
      automatic bit [511:0] bits;
      tb_offer_get(32'(next), bits);
      offer  = bits;
      loaded = 1'b1;
    end
    if (loaded && !offering && quiet >= offer.gap && count < Depth - 1 && !(offer.flags[OfferAlone]
        && count != 0) && is_free(
            id + XIdBits'(offer.step)
        )) begin
      offering = 1'b1;
      id = id + XIdBits'(offer.step);
      offer.offered_at = cycle_i + 32'd1;
      host_o.issue_valid <= 1'b1;
      host_o.issue_instr <= offer.word;
      host_o.issue_id <= id;
    end else if (!offering) begin
      host_o.issue_instr <= rubbish();
      if (quiet != '1) quiet = quiet + 16'd1;
    end
    with_issue <= offering && offer.commit_delay == '0 && !any_uncommitted();
    with_issue_kill <= offer.flags[OfferKill];
  endtask

  // The oldest that has something to give comes first: its transaction takes the place of another.
  task automatic say_registers();
    for (int unsigned i = 0; i < count; i++) begin
      automatic logic late = flights[i].offer.flags[OfferLate];
      automatic
      logic [31:0]
      first = late ? flights[i].offer.issued_at + 32'd1 : flights[i].offer.offered_at;
      automatic logic [XSources-1:0] there = arrived(flights[i].offer, cycle_i + 32'd1 - first);
      automatic logic [XSources-1:0] read = flights[i].offer.register_read[XSources-1:0];
      if (flights[i].registers && (!late || (read & ~there) == '0)) begin
        drive_registers(flights[i].offer, flights[i].id, late ? read : there);
        return;
      end
    end
    if (offering && !offer.flags[OfferLate])
      drive_registers(offer, id, arrived(offer, cycle_i + 32'd1 - offer.offered_at));
  endtask

  task automatic say_commit();
    for (int unsigned i = 0; i < count; i++) begin
      if (!flights[i].committed) begin
        if (32'(flights[i].offer.commit_delay) > cycle_i + 32'd1 - flights[i].offer.issued_at)
          return;
        if (flights[i].offer.flags[OfferBatch] && !flights[i].offer.flags[OfferKill] &&
            i + 1 < count && !flights[i+1].offer.flags[OfferKill])
          continue;
        commit <= '{valid: 1'b1, id: flights[i].id, kill: flights[i].offer.flags[OfferKill]};
        return;
      end
    end
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
      {loaded, offering} = '0;
      {with_issue, with_issue_kill} <= '0;
      {next, quiet, waited, id} = '0;
      count = 0;
      host_o   <= '0;
      commit   <= '0;
      played_o <= play_i;
    end else if (play_i != played_o) begin
      automatic logic taken = host_o.register_valid && chip_i.register_ready;
      automatic logic issues = host_o.issue_valid && chip_i.issue_ready;
      automatic x_commit_t said = commit_o;

      commit <= '{valid: 1'b0, id: XIdBits'(rubbish()), kill: rubbish() [7]};
      if (issues) take_issue();
      if (taken) begin
        host_o.register_valid <= 1'b0;
        for (int unsigned i = 0; i < count; i++)
        if (flights[i].id == host_o.register_id) flights[i].registers = 1'b0;
      end
      if (said.valid) take_commit(said.id, said.kill);
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
