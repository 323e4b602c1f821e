// SPDX-License-Identifier: Apache-2.0
//
// Reset synchroniser: the chip's reset begins when it likes and ends with the clock. Behind it every
// register is reset by a clock edge and none by the reset itself, so a reset that ends near an edge
// ends for all registers in the same cycle. The only flip-flops with an asynchronous reset are here.

module npu_reset_sync #(
  parameter int unsigned Stages = 2  // flip-flops in a row, at least 2
) (
  input  logic clk_i,   // clock
  input  logic rst_ni,  // reset, active low, asynchronous
  output logic rst_no   // low at once, high Stages edges after rst_ni
);

  if (Stages < 2) begin : gen_bad_stages
    $fatal(1, "npu_reset_sync: Stages = %0d, must be at least 2", Stages);
  end

  logic [Stages-1:0] stages_q;

  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) stages_q <= '0;
    else stages_q <= {stages_q[Stages-2:0], 1'b1};
  end

  assign rst_no = rst_ni && stages_q[Stages-1];  // low before the first edge, too

endmodule
