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
  input npu_axi_pkg::axi_req_t req_i,
  input npu_axi_pkg::axi_rsp_t rsp_i,

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
  assign ours_ar = req_i.rd.arvalid && &req_i.rd.arid[AxiIdBits-1-:2];
  assign ours_r  = rsp_i.rd.rvalid && req_i.rd.rready && &rsp_i.rd.rid[AxiIdBits-1-:2];
  assign ours_aw = req_i.wr.awvalid && &req_i.wr.awid[AxiIdBits-1-:2];
  assign ours_b  = rsp_i.wr.bvalid && req_i.wr.bready && &rsp_i.wr.bid[AxiIdBits-1-:2];
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
      ar_waits = req_i.rd.arvalid && !rsp_i.rd.arready;
      aw_waits = req_i.wr.awvalid && !rsp_i.wr.awready;
      if (chip_i.result_valid && !waits_for_ready) check_result();
      waits_for_ready = chip_i.result_valid && !answers;
      if (answers) instrs_o <= instrs_o + 32'd1;

      ours_w = req_i.wr.wvalid && rsp_i.wr.wready && owners.size() != 0 && owners[0];
      if (ours_r) reads_o <= reads_o + 32'd1;
      if (ours_w) writes_o <= writes_o + 32'd1;
      if (ours_ar && rsp_i.rd.arready) reads_owed = reads_owed + 1;
      if (ours_r && rsp_i.rd.rlast) reads_owed = reads_owed - 1;
      if (ours_aw && rsp_i.wr.awready) writes_owed = writes_owed + 1;
      if (ours_b) writes_owed = writes_owed - 1;
      if (req_i.wr.wvalid && rsp_i.wr.wready && req_i.wr.wlast) void'(owners.pop_front());
      if (req_i.wr.awvalid && rsp_i.wr.awready) owners.push_back(&req_i.wr.awid[AxiIdBits-1-:2]);
    end
  end
  /* verilator lint_on BLKSEQ */

endmodule
