// SPDX-License-Identifier: Apache-2.0
//
// Counts the unfinished instructions of every engine. A barrier waits until those of its mask are
// down to its number.

module npu_unfinished
  import npu_pkg::*;
(
  input logic clk_i,  // clock
  input logic rst_ni, // reset, active low

  input logic [NumEngines-1:0] start_i,  // an instruction goes to the engine's queue
  input logic [NumEngines-1:0] done_i,   // the engine has finished one

  input  logic [NumEngines-1:0] barrier_mask_i,  // engines to wait for
  input  logic [           2:0] barrier_most_i,  // instructions that each of them may have left
  output logic                  barrier_ok_o,    // none has more; without this cycle's changes
  output logic [NumEngines-1:0] busy_o           // the engine has unfinished instructions
);

  localparam int unsigned CountW = 5;
  logic [CountW-1:0] count_q[NumEngines];

  always_comb begin
    barrier_ok_o = 1'b1;
    for (int unsigned e = 0; e < NumEngines; e++) begin
      busy_o[e] = count_q[e] != '0;
      if (barrier_mask_i[e] && count_q[e] > CountW'(barrier_most_i)) barrier_ok_o = 1'b0;
    end
  end

  always_ff @(posedge clk_i) begin
    if (!rst_ni) begin
      for (int unsigned e = 0; e < NumEngines; e++) count_q[e] <= '0;
    end else begin
      for (int unsigned e = 0; e < NumEngines; e++) begin
        count_q[e] <= count_q[e] + CountW'(start_i[e]) - CountW'(done_i[e]);
      end
    end
  end

`ifndef SYNTHESIS
  for (genvar e = 0; e < int'(NumEngines); e++) begin : gen_check
    DoneWhenBusy_A :
    assert property (@(posedge clk_i) disable iff (!rst_ni) done_i[e] |-> count_q[e] != '0)
    else $error("npu_unfinished: engine %0d finished an instruction that it never had", e);
  end
`endif

endmodule
