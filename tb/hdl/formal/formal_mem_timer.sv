// SPDX-License-Identifier: Apache-2.0
//
// The patience with the memory: a wait expires when it has lasted as long as its limit says, and not
// before; with the limit 0 never.

module formal_mem_timer (
  input logic        clk_i,      // clock
  input logic        rst_ni,     // reset, active low
  input logic        waiting_i,
  input logic [23:0] limit_i
);

  logic expired, begun_q;
  logic [23:0] limit_q;
  logic [23:0] left_q;  // cycles that the wait may last still; 0 of a limit that is none

  npu_mem_timer u_timer (
    .clk_i,
    .rst_ni,
    .waiting_i,
    .limit_i  (limit_q),
    .expired_o(expired)
  );

  initial begun_q = 1'b0;
  always_ff @(posedge clk_i) begin
    begun_q <= 1'b1;
    limit_q <= begun_q ? limit_q : limit_i;
    if (!rst_ni || !waiting_i) left_q <= begun_q ? limit_q : limit_i;
    else if (left_q != '0) left_q <= left_q - 1'b1;
  end

  always_comb begin
    assume (begun_q || !rst_ni);
    assume (limit_q < 24'd9);  // as long as it takes to see it
    if (begun_q) begin
      InTime_A : assert (!(waiting_i && limit_q != '0 && left_q == '0) || expired);
      NotEarly_A : assert (!expired || waiting_i && limit_q != '0 && left_q == '0);
    end
  end

endmodule
