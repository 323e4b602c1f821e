// SPDX-License-Identifier: Apache-2.0
//
// Whose request a bank takes: of the ports that ask, the first one in turn. Ports with a number
// below that of the port that goes first are behind all others; each grant is made from the
// requests alone and waits for no other bank.

module npu_sram_arbiter #(
  parameter int unsigned Ports = 6  // at least 2
) (
  input  logic [Ports-1:0] asks_i,    // a request of this bank, by port
  input  logic [Ports-1:0] behind_i,  // those that go last: all below some port, or none
  output logic [Ports-1:0] grant_o    // one of those that ask, if any does
);

  if (Ports < 2) begin : gen_bad_ports
    $fatal(1, "npu_sram_arbiter: Ports = %0d, must be at least 2", Ports);
  end

  logic [Ports-1:0] ahead, chosen;

  // The lowest port of those ahead, of all where none of them asks
  assign ahead  = asks_i & ~behind_i;
  assign chosen = (ahead != '0) ? ahead : asks_i;

  always_comb begin
    automatic logic taken = 1'b0;
    for (int unsigned i = 0; i < Ports; i++) begin
      grant_o[i] = chosen[i] && !taken;
      taken |= chosen[i];
    end
  end

endmodule
