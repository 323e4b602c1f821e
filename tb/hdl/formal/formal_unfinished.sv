// SPDX-License-Identifier: Apache-2.0
//
// The count of unfinished instructions: a barrier opens exactly when none of its engines has more
// left than it says, and an engine is busy while it has any. One engine is watched.

module formal_unfinished
  import npu_pkg::*;
(
  input logic                  clk_i,           // clock
  input logic                  rst_ni,          // reset, active low
  input logic [NumEngines-1:0] start_i,
  input logic [NumEngines-1:0] done_i,
  input logic [           2:0] barrier_most_i,
  input logic [           2:0] engine_i         // which one, any
);

  localparam int unsigned Queued = 15;  // instructions that an engine has at most

  logic ok, begun_q;
  logic [2:0] engine_q;
  logic [NumEngines-1:0] busy, mask;
  logic [4:0] left_q;

  assign mask = NumEngines'(1) << engine_q;

  npu_unfinished u_unfinished (
    .clk_i,
    .rst_ni,
    .start_i,
    .done_i,
    .barrier_mask_i(mask),
    .barrier_most_i,
    .barrier_ok_o  (ok),
    .busy_o        (busy)
  );

  initial begun_q = 1'b0;
  always_ff @(posedge clk_i) begin
    begun_q  <= 1'b1;
    engine_q <= begun_q ? engine_q : engine_i;
    if (!rst_ni) left_q <= '0;
    else left_q <= left_q + 5'(start_i[engine_q]) - 5'(done_i[engine_q]);
  end

  always_comb begin
    assume (begun_q || !rst_ni);
    assume (engine_q < 3'(NumEngines));
    assume (!done_i[engine_q] || left_q != '0);  // DoneWhenBusy_A of the block
    assume (!start_i[engine_q] || left_q < 5'(Queued));
    if (begun_q) begin
      Opens_A : assert (ok == (left_q <= 5'(barrier_most_i)));
      Busy_A : assert (busy[engine_q] == (left_q != '0));
    end
  end

endmodule
