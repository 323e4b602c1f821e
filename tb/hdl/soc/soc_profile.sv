// SPDX-License-Identifier: Apache-2.0
//
// Where a program's cycles go, with +profile=1: profile.txt in the run's folder gets a line of address,
// how often the instruction there has retired, and cycles. A cycle belongs to the instruction that
// retires next, those behind the last one to the last one, so that all lines sum up to the run.

module soc_profile (
  input logic clk_i,
  input logic rst_ni,

  input logic        retired_i,  // an instruction, in this cycle
  input logic [31:0] pc_i        // its address
);

  string run_dir;
  bit profile;
  longint unsigned retired[logic [31:0]];
  longint unsigned cycles[logic [31:0]];
  longint unsigned waited;  // cycles since an instruction has retired
  logic [31:0] last;

  initial begin
    if (!$value$plusargs("profile=%b", profile)) profile = 1'b0;
    if (!$value$plusargs("run_dir=%s", run_dir)) $fatal(1, "+run_dir=<folder> is missing");
  end

  // A behavioural model: counts are in program order.
  /* verilator lint_off BLKSEQ */
  always @(posedge clk_i) begin
    if (profile && rst_ni) begin
      waited = waited + 1;
      if (retired_i) begin
        retired[pc_i] = retired[pc_i] + 1;
        cycles[pc_i] = cycles[pc_i] + waited;
        waited = 0;
        last = pc_i;
      end
    end
  end

  final begin
    if (profile) begin
      int file;
      file = $fopen({run_dir, "/profile.txt"}, "w");
      cycles[last] = cycles[last] + waited;
      foreach (cycles[pc]) $fwrite(file, "%0d %0d %0d\n", pc, retired[pc], cycles[pc]);
      $fclose(file);
    end
  end
  /* verilator lint_on BLKSEQ */

endmodule
