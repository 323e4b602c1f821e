// SPDX-License-Identifier: Apache-2.0
//
// What the host sees of a program's generation: OUTCNT, TOKEN and POS, until the next program runs.
// ARGMAX counts a token at once, so that the next one gets its own place; the host must not see it
// before its word is in memory. While tokens are on their way, it sees those that have arrived.

module npu_generated
  import npu_pkg::*;
  import npu_start_pkg::*;
(
  input logic clk_i,  // clock
  input logic rst_ni, // reset, active low

  input logic     start_i,  // pulse: no token is on its way
  input logic     run_i,    // the registers belong to a running program: a level
  input machine_t regs_i,   // machine registers as they are now

  input logic token_sent_i,   // pulse: an ARGMAX is dispatched; at most eight on their way
  input logic token_stored_i, // pulse: memory has acknowledged the word of one

  // One cycle behind the registers; stays when the program has ended
  output generated_t generated_o
);

  localparam int unsigned Most = 8;  // in the queue of the store engine and in the engine
  localparam int unsigned CountW = $clog2(Most + 1);
  logic [CountW-1:0] under_way_q;

  always_ff @(posedge clk_i) begin
    if (!rst_ni) under_way_q <= '0;
    else if (start_i) under_way_q <= '0;
    else under_way_q <= under_way_q + CountW'(token_sent_i) - CountW'(token_stored_i);
  end

  always_ff @(posedge clk_i) begin
    if (!rst_ni) begin
      generated_o <= '0;
    end else if (run_i) begin
      generated_o.token <= regs_i.token;
      generated_o.pos   <= regs_i.pos;
      if (under_way_q == '0) generated_o.outcnt <= regs_i.outcnt;
      else generated_o.outcnt <= generated_o.outcnt + 32'(token_stored_i);
    end
  end

`ifndef SYNTHESIS
  StoredWasSent_A :
  assert property (@(posedge clk_i) disable iff (!rst_ni)
                   token_stored_i |-> under_way_q != '0 && 32'(under_way_q) <= Most)
  else $error("npu_generated: a token is stored while none or too many are on their way");
`endif

endmodule
