// SPDX-License-Identifier: Apache-2.0
//
// Random cycles in which a bus of the core waits: drawn anew each cycle, one for grants and one for
// answers.

module soc_gaps
  import tb_pkg::*;
(
  input logic clk_i,
  input logic rst_ni,

  input logic [ 6:0] percent_i,  // of all cycles
  input logic [31:0] seed_i,

  output logic no_grant_o,
  output logic no_answer_o
);

  logic [31:0] random_q;

  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) random_q <= seed_i;
    else random_q <= next_random(random_q);
  end

  assign no_grant_o  = happens(percent_i, random_q[11:0]);
  assign no_answer_o = happens(percent_i, random_q[27:16]);

endmodule
