// SPDX-License-Identifier: Apache-2.0
//
// A queue with a flush: entries leave in the order in which they came, none is lost or doubled. One
// entry, any, is watched: what it carried, and how many are before it.

module formal_fifo #(
  localparam int unsigned Depth  = 3,
  localparam int unsigned CountW = $clog2(Depth + 1)
) (
  input logic clk_i,  // clock
  input logic rst_ni,  // reset, active low
  input logic flush_i,
  input logic valid_i,
  input logic [1:0] data_i,
  input logic ready_i,
  input logic watch_i  // the entry that comes is the one
);

  logic ready, valid, push, pop, begun_q, watched_q;
  logic [1:0] data, watched_data_q;
  logic [CountW-1:0] count, count_q, ahead_q;

  npu_flush_fifo #(
    .DataT(logic [1:0]),
    .Depth(Depth)
  ) u_fifo (
    .clk_i,
    .rst_ni,
    .flush_i,
    .valid_i,
    .ready_o(ready),
    .data_i,
    .valid_o(valid),
    .ready_i,
    .data_o (data),
    .count_o(count)
  );

  assign push = valid_i && ready;
  assign pop  = valid && ready_i;

  initial begun_q = 1'b0;
  always_ff @(posedge clk_i) begin
    begun_q <= 1'b1;
    if (!rst_ni || flush_i) begin
      count_q   <= '0;
      watched_q <= 1'b0;
    end else begin
      count_q <= count_q + CountW'(push) - CountW'(pop);
      if (watched_q) begin
        ahead_q   <= ahead_q - CountW'(pop);
        watched_q <= !(pop && ahead_q == '0);
      end else if (push && watch_i) begin
        ahead_q        <= count_q - CountW'(pop);
        watched_q      <= 1'b1;
        watched_data_q <= data_i;
      end
    end
  end

  always_comb begin
    assume (begun_q || !rst_ni);
    if (begun_q) begin
      Order_A : assert (!(watched_q && valid && ahead_q == '0) || data == watched_data_q);
      Room_A : assert (ready == (count_q != CountW'(Depth)));
      Some_A : assert (valid == (count_q != '0));
      Count_A : assert (count == count_q);
    end
  end

endmodule
