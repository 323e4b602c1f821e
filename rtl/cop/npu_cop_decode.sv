// SPDX-License-Identifier: Apache-2.0
//
// Looks an instruction word up in the generated table and says whether this coprocessor takes it: a
// host that delivers two operands cannot name a count in x[rd], and while a fault stands everything
// is refused where the host has asked for that.

module npu_cop_decode
  import npu_cop_isa_pkg::*;
#(
  parameter int unsigned NumRs = 3  // operands that the host delivers: 2 or 3
) (
  input logic [31:0] instr_i,  // instruction word
  input logic        refuse_i, // a level: no instruction is taken

  // In the same cycle
  output cop_decoded_t decoded_o,  // what it is, taken or not
  output logic         accept_o    // it is taken
);

  assign decoded_o = decode(instr_i);
  assign accept_o  = decoded_o.legal && !refuse_i && (NumRs > 2 || !decoded_o.register_read[2]);

endmodule
