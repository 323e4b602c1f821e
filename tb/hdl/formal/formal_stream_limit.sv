// SPDX-License-Identifier: Apache-2.0
//
// How many bursts the stream may have under way: what the host sets, else as many as the bus takes at
// most, and never fewer than three, whatever was learned.

module formal_stream_limit #(
  localparam int unsigned Most = 16
) (
  input logic       clk_i,      // clock
  input logic       rst_ni,     // reset, active low
  input logic [4:0] setting_i,
  input logic [8:0] latency_i,
  input logic       wants_i,
  input logic       held_i,
  input logic       mine_i,
  input logic       word_i,
  input logic       load_i
);

  logic [4:0] limit, setting_q, limit_q;
  logic begun_q, live_q, load_q;
  logic [8:0] latency_q;

  npu_stream_limit #(
    .Most(5'(Most))
  ) u_limit (
    .clk_i,
    .rst_ni,
    .setting_i,
    .latency_i,
    .wants_i,
    .held_i,
    .mine_i,
    .word_i,
    .load_i,
    .limit_o(limit)
  );

  initial begun_q = 1'b0;
  always_ff @(posedge clk_i) begin
    begun_q   <= 1'b1;
    live_q    <= begun_q && rst_ni;
    setting_q <= setting_i;
    latency_q <= latency_i;
    load_q    <= load_i;
    limit_q   <= limit;
  end

  always_comb begin
    assume (begun_q || !rst_ni);
    assume (!held_i || wants_i);
    assume (!mine_i || word_i);
    if (begun_q && live_q) begin
      AsSet_A : assert (setting_q == '0 || limit == setting_q);
      InBounds_A : assert (setting_q != '0 || limit >= 5'd3 && limit <= 5'(Most));
      // One more burst covers 32 cycles more: enough for the latency wherever the bus has as many.
      Covers_A :
      assert (setting_q != '0 || limit == 5'(Most) ||
              10'(limit) * 10'd32 >= 10'(latency_q) + 10'd40);
    end
  end

endmodule
