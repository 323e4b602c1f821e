// SPDX-License-Identifier: Apache-2.0
//
// Tells every port at once whether its request goes: it does where no port that comes first wants the
// same bank. Each pair of ports is compared by itself, so that no port waits for what the arbiters of
// the banks find, which say the same.

module npu_sram_ready #(
  parameter int unsigned Ports = 6,  // at least 2
  parameter int unsigned BankW = 4   // bits of a bank's number
) (
  input  logic [Ports-1:0]            valid_i,   // a request, by port
  input  logic [Ports-1:0][BankW-1:0] bank_i,    // of which bank, with valid_i
  input  logic [Ports-1:0]            behind_i,  // those that go last: all below some port, or none
  output logic [Ports-1:0]            ready_o    // it goes
);

  if (Ports < 2) begin : gen_bad_ports
    $fatal(1, "npu_sram_ready: Ports = %0d, must be at least 2", Ports);
  end

  always_comb begin
    ready_o = valid_i;
    for (int unsigned i = 0; i < Ports; i++) begin
      for (int unsigned j = 0; j < Ports; j++) begin
        // Lower numbers first, but for those that go last
        if (j != i && valid_i[j] && bank_i[j] == bank_i[i] &&
            (j < i ? !behind_i[j] || behind_i[i] : !behind_i[j] && behind_i[i])) begin
          ready_o[i] = 1'b0;
        end
      end
    end
  end

endmodule
