// SPDX-License-Identifier: Apache-2.0
//
// The coprocessor's port under watch: a breach of a rule of CV-X-IF 1.0 (cop_rules), by host or chip,
// ends the simulation. What the chip promises beyond them: results come in the order of issue, the
// memory is touched by committed instructions only, and owes nothing at their end. What the chip counts
// there (INSTRS, CYCLES, BEATS) is counted a second time, from the port and from its accesses on the
// memory bus, which have the identifiers 12 to 15.

module cop_monitor
  import tb_pkg::*;
#(
  parameter int unsigned IdWidth = 4,
  parameter bit          Split   = 1'b0  // registers come behind the issue
) (
  input logic clk_i,
  input logic rst_ni,

  input x_host_t   host_i,
  input x_commit_t commit_i,
  input x_chip_t   chip_i,
  input logic      idle_i,    // the host has nothing under way
  input logic      silent_i,  // the memory may withhold answers: nobody waits for them then

  // Memory bus
  input logic                 arvalid_i,
  input logic                 arready_i,
  input logic [AxiIdBits-1:0] arid_i,
  input logic                 rvalid_i,
  input logic                 rready_i,
  input logic [AxiIdBits-1:0] rid_i,
  input logic                 rlast_i,
  input logic                 awvalid_i,
  input logic                 awready_i,
  input logic [AxiIdBits-1:0] awid_i,
  input logic                 wvalid_i,
  input logic                 wready_i,
  input logic                 wlast_i,
  input logic                 bvalid_i,
  input logic                 bready_i,
  input logic [AxiIdBits-1:0] bid_i,

  output logic [31:0] instrs_o,  // results taken
  output logic [31:0] cycles_o,  // with an accepted instruction inside that is not killed
  output logic [31:0] reads_o,   // words that it has received
  output logic [31:0] writes_o,  // words that it has sent
  output logic [ 7:0] open_o,    // instructions under way
  output logic [ 7:0] owed_o     // answers that the memory owes
);

  // -----------------------------------------------------------------------------------------------
  // Rules of the port
  // -----------------------------------------------------------------------------------------------
  logic [CopRules-1:0] broken;
  x_under_way_t under_way;

  cop_rules #(
    .IdWidth(IdWidth),
    .Split  (Split)
  ) u_rules (
    .clk_i,
    .rst_ni,
    .host_i,
    .commit_i,
    .chip_i,
    .idle_i,
    .silent_i,
    .broken_o(broken),
    .under_way_o(under_way)
  );

  for (genvar i = 0; i < CopRules; i++) begin : gen_rule
    localparam cop_rule_e Rule = cop_rule_e'(i);
    Kept :
    assert property (@(posedge clk_i) disable iff (!rst_ni) !broken[i])
    else $error("CV-X-IF: the rule %s is broken", Rule.name());
  end

  // -----------------------------------------------------------------------------------------------
  // Beyond them, and what is counted
  // -----------------------------------------------------------------------------------------------
  logic answers;
  logic waits_for_ready;  // the result has been there in the cycle before
  logic ar_waits, aw_waits;  // a request has been there in the cycle before
  int unsigned reads_owed, writes_owed;
  bit owners[$];  // of the write bursts whose data is not complete: 1 for the coprocessor
  logic ours_ar, ours_r, ours_aw, ours_w, ours_b;

  assign answers = chip_i.result_valid && host_i.result_ready;
  assign ours_ar = arvalid_i && &arid_i[AxiIdBits-1-:2];
  assign ours_r  = rvalid_i && rready_i && &rid_i[AxiIdBits-1-:2];
  assign ours_aw = awvalid_i && &awid_i[AxiIdBits-1-:2];
  assign ours_b  = bvalid_i && bready_i && &bid_i[AxiIdBits-1-:2];
  assign open_o  = under_way.count;
  assign owed_o  = 8'(reads_owed + writes_owed);

  task automatic check_result();
    if (under_way.count != '0 && chip_i.result_id != under_way.oldest_id)
      $error(
          "coprocessor: result of identifier %0d before that of %0d",
          chip_i.result_id,
          under_way.oldest_id
      );
    if (!silent_i && under_way.oldest_on_memory && owed_o != '0)
      $error("coprocessor: result of identifier %0d while the memory owes", chip_i.result_id);
  endtask

  // A behavioural model: state is updated in program order within one clock edge.
  /* verilator lint_off BLKSEQ */
  always @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) begin
      reads_owed  = 0;
      writes_owed = 0;
      owners.delete();
      waits_for_ready = 1'b0;
      ar_waits = 1'b0;
      aw_waits = 1'b0;
      instrs_o <= '0;
      cycles_o <= '0;
      reads_o  <= '0;
      writes_o <= '0;
    end else begin
      if (under_way.count != '0) cycles_o <= cycles_o + 32'd1;
      if (((ours_ar && !ar_waits) || (ours_aw && !aw_waits)) && !silent_i && !under_way.on_memory)
        $error("coprocessor: an access without a committed instruction");
      ar_waits = arvalid_i && !arready_i;
      aw_waits = awvalid_i && !awready_i;
      if (chip_i.result_valid && !waits_for_ready) check_result();
      waits_for_ready = chip_i.result_valid && !answers;
      if (answers) instrs_o <= instrs_o + 32'd1;

      ours_w = wvalid_i && wready_i && owners.size() != 0 && owners[0];
      if (ours_r) reads_o <= reads_o + 32'd1;
      if (ours_w) writes_o <= writes_o + 32'd1;
      if (ours_ar && arready_i) reads_owed = reads_owed + 1;
      if (ours_r && rlast_i) reads_owed = reads_owed - 1;
      if (ours_aw && awready_i) writes_owed = writes_owed + 1;
      if (ours_b) writes_owed = writes_owed - 1;
      if (wvalid_i && wready_i && wlast_i) void'(owners.pop_front());
      if (awvalid_i && awready_i) owners.push_back(&awid_i[AxiIdBits-1-:2]);
    end
  end
  /* verilator lint_on BLKSEQ */

endmodule
