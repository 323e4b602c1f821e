// SPDX-License-Identifier: Apache-2.0
//
// Cuts the path of ready between two that hand data over, without a cycle between them: what comes
// goes straight on, and where it is not taken it waits in the one place here. Whoever gives sees from a
// register whether that place is free.

module npu_skid_buffer #(
  parameter type DataT = logic  // what is handed over, any type
) (
  input logic clk_i,   // clock
  input logic rst_ni,  // reset, active low
  input logic flush_i, // drops what waits, and what comes in the same cycle and is not taken

  input  logic valid_i,  // may be withdrawn before ready_o
  output logic ready_o,  // nothing waits; depends on neither valid_i nor ready_i
  input  DataT data_i,   // counts where valid_i and ready_o meet

  output logic valid_o,  // something comes, or waits
  input  logic ready_i,  // takes it; may depend on valid_o
  output DataT data_o    // with valid_o: what waits, else what comes
);

  logic waits_q;
  DataT data_q;

  assign ready_o = !waits_q;
  assign valid_o = waits_q || valid_i;
  assign data_o  = waits_q ? data_q : data_i;

  always_ff @(posedge clk_i) begin
    if (!rst_ni) waits_q <= 1'b0;
    else if (flush_i) waits_q <= 1'b0;
    else waits_q <= valid_o && !ready_i;
  end

  // What is not taken stays the same while it waits here.
  always_ff @(posedge clk_i) begin
    if (!waits_q) data_q <= data_i;
  end

endmodule
