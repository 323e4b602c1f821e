// SPDX-License-Identifier: Apache-2.0
//
// Rules of the coprocessor's port (CV-X-IF 1.0), for host and chip. A breach ends the simulation. What
// the chip counts there (INSTRS, CYCLES, BEATS) is counted a second time, from the port and from its
// accesses on the memory bus, which have the identifiers 12 to 15.

module cop_monitor
  import tb_pkg::*;
(
  input logic clk_i,
  input logic rst_ni,

  input x_host_t   host_i,
  input x_commit_t commit_i,
  input x_chip_t   chip_i,
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

  localparam int unsigned Depth = 2 ** XIdBits;

  // -----------------------------------------------------------------------------------------------
  // Held until taken
  // -----------------------------------------------------------------------------------------------
  logic issues, gives, refused, answers;

  assign issues  = host_i.issue_valid && chip_i.issue_ready;
  assign gives   = host_i.register_valid && chip_i.register_ready;
  assign refused = issues && !chip_i.issue_accept && host_i.issue_id == host_i.register_id;
  assign answers = chip_i.result_valid && host_i.result_ready;

  IssueHeld :
  assert property (@(posedge clk_i) disable iff (!rst_ni)
      host_i.issue_valid && !chip_i.issue_ready ##1
      host_i.issue_valid && $stable(
      host_i.issue_id
  ) |-> $stable(
      host_i.issue_instr
  ))
  else $error("CV-X-IF: an instruction changed while it was offered");

  for (genvar i = 0; i < XSources; i++) begin : gen_source
    RegisterHeld :
    assert property (@(posedge clk_i) disable iff (!rst_ni)
        host_i.register_valid && !chip_i.register_ready && host_i.register_rs_valid[i] ##1
        host_i.register_valid && $stable(
        host_i.register_id
    ) |-> host_i.register_rs_valid[i] && $stable(
        host_i.register_rs[i]
    ))
    else $error("CV-X-IF: source %0d changed before it was taken", i);
  end

  ResultHeld :
  assert property (@(posedge clk_i) disable iff (!rst_ni)
      chip_i.result_valid && !host_i.result_ready |=> chip_i.result_valid && $stable(
      {chip_i.result_id, chip_i.result_rd, chip_i.result_we, chip_i.result_data}
  ))
  else $error("CV-X-IF: a result changed before it was taken");

  RefusedPlainly :
  assert property (@(posedge clk_i) disable iff (!rst_ni) issues && !chip_i.issue_accept |->
      !chip_i.issue_writeback && chip_i.issue_register_read == '0 && chip_i.issue_float == '0
  )
  else $error("CV-X-IF: a refused instruction has registers");

  RegistersWait :
  assert property (@(posedge clk_i) disable iff (!rst_ni)
      host_i.issue_valid && host_i.register_valid && host_i.issue_id == host_i.register_id |->
      chip_i.issue_ready || !chip_i.register_ready
  )
  else $error("CV-X-IF: registers were taken before the instruction that they belong to");

  RegistersRead :
  assert property (@(posedge clk_i) disable iff (!rst_ni)
      issues && gives && host_i.issue_id == host_i.register_id |->
      (chip_i.issue_register_read & ~host_i.register_rs_valid) == '0
  )
  else $error("CV-X-IF: an instruction was taken without a source that it reads");

  // -----------------------------------------------------------------------------------------------
  // What is under way, in the order of issue
  // -----------------------------------------------------------------------------------------------
  typedef struct packed {
    logic [XIdBits-1:0] id;
    logic [31:0] instr;
    logic writeback;
    logic [XSources-1:0] reads;
    logic committed;
  } flight_t;

  flight_t flights[Depth];
  int unsigned count;
  logic waits_for_ready;  // the result has been there in the cycle before
  logic ar_waits, aw_waits;  // a request has been there in the cycle before
  int unsigned reads_owed, writes_owed;
  bit owners[$];  // of the write bursts whose data is not complete: 1 for the coprocessor
  logic ours_ar, ours_r, ours_aw, ours_w, ours_b;

  assign ours_ar = arvalid_i && &arid_i[AxiIdBits-1-:2];
  assign ours_r  = rvalid_i && rready_i && &rid_i[AxiIdBits-1-:2];
  assign ours_aw = awvalid_i && &awid_i[AxiIdBits-1-:2];
  assign ours_b  = bvalid_i && bready_i && &bid_i[AxiIdBits-1-:2];
  assign open_o  = 8'(count);
  assign owed_o  = 8'(reads_owed + writes_owed);

  function automatic logic uses_memory(logic [31:0] instr);
    unique case (instr[14:12])
      3'd0: return instr[31:25] inside {[7'd1 : 7'd12]};
      3'd6, 3'd7: return 1'b1;
      default: return 1'b0;
    endcase
  endfunction

  task automatic check_issue();
    for (int unsigned i = 0; i < count; i++)
      if (flights[i].id == host_i.issue_id)
        $error("CV-X-IF: identifier %0d is used twice", host_i.issue_id);
    if (!chip_i.issue_accept) return;
    flights[count] = '{
        id: host_i.issue_id,
        instr: host_i.issue_instr,
        writeback: chip_i.issue_writeback,
        reads: chip_i.issue_register_read,
        committed: 1'b0
    };
    count = count + 1;
  endtask

  task automatic check_register();
    for (int unsigned i = 0; i < count; i++) begin
      if (flights[i].id == host_i.register_id) begin
        if ((flights[i].reads & ~host_i.register_rs_valid) != '0)
          $error("CV-X-IF: registers of identifier %0d were taken incomplete", flights[i].id);
        flights[i].reads = '0;
        return;
      end
    end
    $error("CV-X-IF: registers for identifier %0d, which is not there", host_i.register_id);
  endtask

  // An identifier that is not there is that of a refused instruction: its age counts all the same.
  task automatic check_commit(logic [XIdBits-1:0] newest);
    automatic int unsigned kept = 0;
    for (int unsigned i = 0; i < count; i++) begin
      automatic logic [XIdBits-1:0] age = newest - flights[i].id, of_commit = newest - commit_i.id;
      if (!commit_i.kill && age >= of_commit) flights[i].committed = 1'b1;
      if (!commit_i.kill || age > of_commit || flights[i].committed) begin
        flights[kept] = flights[i];
        kept = kept + 1;
      end
    end
    count = kept;
  endtask

  task automatic check_result();
    automatic flight_t oldest = flights[0];
    if (count == 0) $error("CV-X-IF: a result, identifier %0d, of nothing", chip_i.result_id);
    else if (chip_i.result_id != oldest.id)
      $error("CV-X-IF: result of identifier %0d before that of %0d", chip_i.result_id, oldest.id);
    else if (!oldest.committed)
      $error("CV-X-IF: result of identifier %0d before its commit", oldest.id);
    else if (oldest.reads != '0)
      $error("CV-X-IF: result of identifier %0d before its registers", oldest.id);
    if (chip_i.result_we != oldest.writeback || (oldest.writeback && chip_i.result_rd !=
                                                 oldest.instr[11:7]))
      $error(
          "CV-X-IF: result of 0x%08x has we %0d, rd %0d",
          oldest.instr,
          chip_i.result_we,
          chip_i.result_rd
      );
    if (!silent_i && uses_memory(oldest.instr) && owed_o != '0)
      $error("coprocessor: result of 0x%08x while the memory owes an answer", oldest.instr);
  endtask

  task automatic check_bus();
    automatic logic right = 1'b0;
    for (int unsigned i = 0; i < count; i++)
      right |= flights[i].committed && uses_memory(flights[i].instr);
    if (!silent_i && !right) $error("coprocessor: an access without a committed instruction");
  endtask

  // A behavioural model: state is updated in program order within one clock edge.
  logic [XIdBits-1:0] newest;  // identifier offered last
  /* verilator lint_off BLKSEQ */
  always @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) begin
      count = 0;
      reads_owed = 0;
      writes_owed = 0;
      owners.delete();
      newest = '0;
      waits_for_ready = 1'b0;
      ar_waits = 1'b0;
      aw_waits = 1'b0;
      instrs_o <= '0;
      cycles_o <= '0;
      reads_o  <= '0;
      writes_o <= '0;
    end else begin
      if (count != 0) cycles_o <= cycles_o + 32'd1;
      if (host_i.issue_valid) newest = host_i.issue_id;
      if (issues) check_issue();
      if (gives && !refused) check_register();
      if (commit_i.valid) check_commit(newest);
      if ((ours_ar && !ar_waits) || (ours_aw && !aw_waits)) check_bus();
      ar_waits = arvalid_i && !arready_i;
      aw_waits = awvalid_i && !awready_i;
      if (chip_i.result_valid && !waits_for_ready) check_result();
      waits_for_ready = chip_i.result_valid && !answers;
      if (answers) begin
        for (int unsigned i = 1; i < count; i++) flights[i-1] = flights[i];
        if (count != 0) count = count - 1;
        instrs_o <= instrs_o + 32'd1;
      end

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
