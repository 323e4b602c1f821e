// SPDX-License-Identifier: Apache-2.0
//
// CV-X-IF 1.0 between the machine's core and the chip: X_ISSUE_REGISTER_SPLIT = 0, one hart,
// identifiers of four bits.

interface soc_x_if #(
  parameter int unsigned NumRs = 3
);

  logic issue_valid, issue_ready, issue_accept, issue_writeback;
  logic [31:0] issue_instr;
  logic [3:0] issue_id, register_id, commit_id, result_id;
  logic register_valid;
  logic [NumRs-1:0][31:0] register_rs;
  logic [NumRs-1:0] register_rs_valid;
  logic commit_valid, commit_kill;
  logic result_valid, result_ready, result_we;
  logic [ 4:0] result_rd;
  logic [31:0] result_data;

  modport host(
      output issue_valid, issue_instr, issue_id,
      input issue_ready, issue_accept, issue_writeback,
      output register_valid, register_id, register_rs, register_rs_valid,
      output commit_valid, commit_id, commit_kill,
      input result_valid, result_id, result_rd, result_we, result_data,
      output result_ready
  );

endinterface
