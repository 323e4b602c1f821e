// SPDX-License-Identifier: Apache-2.0
//
// The core's instruction bus (OBI): words of the memory, granted at once and there a cycle later,
// but for the gaps.

module soc_instr_bus
  import soc_pkg::*;
(
  input logic clk_i,
  input logic rst_ni,

  input logic [ 6:0] gap_percent_i,
  input logic [31:0] seed_i,

  input  logic        req_i,
  output logic        gnt_o,
  input  logic [31:0] addr_i,
  output logic        rvalid_o,
  output logic [31:0] rdata_o,
  output logic        err_o      // nothing to execute there
);

  logic no_grant, no_answer;
  logic pending_q;
  answer_t answer_q;

  soc_gaps u_gaps (
    .clk_i,
    .rst_ni,
    .percent_i  (gap_percent_i),
    .seed_i     (seed_i),
    .no_grant_o (no_grant),
    .no_answer_o(no_answer)
  );

  assign gnt_o = req_i && !no_grant && (!pending_q || rvalid_o);
  assign rvalid_o = pending_q && !no_answer;
  assign {rdata_o, err_o} = answer_q;

  function automatic answer_t fetched(logic [31:0] address);
    if (address[31:28] != HomeRam || !ram_has(address)) return '{rdata: '0, err: 1'b1};
    return '{rdata: ram_read(address), err: 1'b0};
  endfunction

  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) begin
      pending_q <= 1'b0;
      answer_q  <= '0;
    end else begin
      if (gnt_o) answer_q <= fetched(addr_i);
      pending_q <= gnt_o || (pending_q && !rvalid_o);
    end
  end

endmodule
