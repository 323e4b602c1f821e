// SPDX-License-Identifier: Apache-2.0
//
// From the core's X interface, a draft from before CV-X-IF 1.0, to that standard. What is not
// obvious, each measured on the core:
// - its third operand comes from bits 31:27 and misses what the instruction before wrote. The one
//   that the standard means, x[rd], is taken from the register file as soon as no older instruction is
//   on its way to write it; the issue waits for it. The other two are right at issue.
// - an instruction that is accepted while the execute stage stalls loses its write-back, hence issue
//   only when that is ready.
// - it announces the end of refused instructions as well, CSR instructions among them, by a commit
//   that kills.
// - a load or store behind an instruction that waits for its result is sent to the memory again and
//   again: it would see old data, overtake the instruction, and have the result lost, which is taken
//   only with wb_ready. Hence the data bus stalls meanwhile.

module soc_cv32e40x_xif (
  input logic clk_i,
  input logic rst_ni,

  // The core
  if_xif.coproc_compressed compressed_if,
  if_xif.coproc_issue issue_if,
  if_xif.coproc_commit commit_if,
  if_xif.coproc_mem mem_if,
  if_xif.coproc_result result_if,
  input logic ex_ready_i,  // the execute stage takes an instruction
  input logic wb_ready_i,  // the write-back stage is done in this cycle
  output logic data_stall_o,  // no access to memory may begin
  output logic [4:0] third_o,  // number of a register
  input logic [31:0] third_value_i,  // its value in the register file
  input logic third_owed_i,  // an instruction in execute or write-back will write it

  // CV-X-IF 1.0, X_ISSUE_REGISTER_SPLIT = 0
  soc_x_if.host x
);

  logic accepted;
  logic [15:0] inside_q;  // accepted, not committed; by identifier

  // -----------------------------------------------------------------------------------------------
  // Issue, and operands with it
  // -----------------------------------------------------------------------------------------------
  assign x.issue_valid = issue_if.issue_valid && ex_ready_i;
  assign x.issue_instr = issue_if.issue_req.instr;
  assign x.issue_id = issue_if.issue_req.id;
  assign issue_if.issue_ready = x.issue_ready && ex_ready_i;
  assign accepted = x.issue_valid && x.issue_ready && x.issue_accept;
  assign third_o = issue_if.issue_req.instr[11:7];
  assign x.register_valid = x.issue_valid;
  assign x.register_id = x.issue_id;
  assign x.register_rs = {third_value_i, issue_if.issue_req.rs[1], issue_if.issue_req.rs[0]};
  assign x.register_rs_valid = {!third_owed_i, 2'b11};

  always_comb begin
    issue_if.issue_resp = '0;
    issue_if.issue_resp.accept = x.issue_accept;
    issue_if.issue_resp.writeback = x.issue_writeback;
  end

  // -----------------------------------------------------------------------------------------------
  // Commit and result
  // -----------------------------------------------------------------------------------------------
  // The end of a refused instruction is no kill here, where that would be one of all that follow.
  assign x.commit_valid = commit_if.commit_valid;
  assign x.commit_id = commit_if.commit.id;
  assign x.commit_kill = commit_if.commit.commit_kill && inside_q[x.commit_id];

  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) begin
      inside_q <= '0;
    end else begin
      if (x.commit_valid) inside_q[x.commit_id] <= 1'b0;
      if (accepted) inside_q[x.issue_id] <= 1'b1;
    end
  end

  assign result_if.result_valid = x.result_valid;
  assign x.result_ready = result_if.result_ready && wb_ready_i;
  assign data_stall_o = result_if.result_ready && !x.result_valid;

  always_comb begin
    result_if.result = '0;
    result_if.result.id = x.result_id;
    result_if.result.rd = x.result_rd;
    result_if.result.we = x.result_we;
    result_if.result.data = x.result_data;
  end

  // No compressed instructions, no memory accesses through the core
  assign compressed_if.compressed_ready = 1'b1;
  assign compressed_if.compressed_resp = '0;
  assign mem_if.mem_valid = 1'b0;
  assign mem_if.mem_req = '0;

endmodule
