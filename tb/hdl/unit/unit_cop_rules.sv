// SPDX-License-Identifier: Apache-2.0
//
// Bench of the rules of the coprocessor's port: Python says both sides of it, cycle by cycle, and sees
// which rules are broken, with operands that come with the issue and behind it.

module unit_cop_rules;
  import tb_pkg::*;

  logic clk = 1'b0;
  logic rst_n = 1'b0;

  always #5 clk = ~clk;

  logic split = 1'b0;
  logic idle = 1'b0;
  logic issue_valid = 1'b0;
  logic [31:0] issue_instr = '0;
  logic [31:0] issue_hartid = '0;
  logic [31:0] issue_id = '0;
  logic issue_ready = 1'b0;
  logic issue_accept = 1'b0;
  logic issue_writeback = 1'b0;
  logic [2:0] issue_register_read = '0;
  logic register_valid = 1'b0;
  logic [31:0] register_hartid = '0;
  logic [31:0] register_id = '0;
  logic [31:0] register_rs1 = '0;
  logic [2:0] register_rs_valid = '0;
  logic register_ready = 1'b0;
  logic commit_valid = 1'b0;
  logic [31:0] commit_hartid = '0;
  logic [31:0] commit_id = '0;
  logic commit_kill = 1'b0;
  logic result_valid = 1'b0;
  logic result_ready = 1'b0;
  logic [31:0] result_hartid = '0;
  logic [31:0] result_id = '0;
  logic [4:0] result_rd = '0;
  logic result_we = 1'b0;
  logic [31:0] result_data = '0;
  logic [CopRules-1:0] broken;

  x_host_t host;
  x_commit_t commit;
  x_chip_t chip;
  logic [1:0][CopRules-1:0] found;

  assign host = '{
          issue_valid: issue_valid,
          issue_instr: issue_instr,
          issue_hartid: issue_hartid,
          issue_id: issue_id,
          register_valid: register_valid,
          register_hartid: register_hartid,
          register_id: register_id,
          register_rs: {32'd0, 32'd0, register_rs1},
          register_rs_valid: register_rs_valid,
          result_ready: result_ready
      };
  assign commit = '{
          valid: commit_valid,
          hartid: commit_hartid,
          id: commit_id,
          kill: commit_kill
      };
  assign chip = '{
          issue_ready: issue_ready,
          issue_accept: issue_accept,
          issue_writeback: issue_writeback,
          issue_register_read: issue_register_read,
          issue_float: '0,
          register_ready: register_ready,
          result_valid: result_valid,
          result_hartid: result_hartid,
          result_id: result_id,
          result_rd: result_rd,
          result_we: result_we,
          result_data: result_data
      };
  assign broken = found[split];

  for (genvar i = 0; i < 2; i++) begin : gen_mode
    cop_rules #(
      .Split(i == 1),
      .Patience(40)
    ) u_rules (
      .clk_i(clk),
      .rst_ni(rst_n),
      .host_i(host),
      .commit_i(commit),
      .chip_i(chip),
      .idle_i(idle),
      .silent_i(1'b0),
      .broken_o(found[i]),
      .under_way_o()
    );
  end

endmodule
