// SPDX-License-Identifier: Apache-2.0
//
// A queue with two readers, one of which sees a push at once: each gets every entry, in order, and
// there is no push without room behind the slower one. One entry is watched.

module formal_multicast_fifo (
  input logic clk_i,  // clock
  input logic rst_ni,  // reset, active low
  input logic valid_i,
  input logic [1:0] data_i,
  input logic [1:0] ready_i,
  input logic watch_i  // the entry that comes is the one
);

  localparam int unsigned Depth = 4;

  logic ready, push, begun_q;
  logic valid[2], taken[2];
  logic [1:0] data[2];
  logic [1:0] watched_q, watched_data_q;
  logic [2:0] count_q[2], ahead_q[2];

  npu_multicast_fifo #(
    .DataT(logic [1:0]),
    .Depth(Depth),
    .NumReaders(2),
    .Through(2'b10)
  ) u_fifo (
    .clk_i,
    .rst_ni,
    .valid_i,
    .ready_o(ready),
    .data_i,
    .valid_o(valid),
    .ready_i(taken),
    .data_o (data)
  );

  assign taken = '{ready_i[0], ready_i[1]};
  assign push  = valid_i && ready;

  initial begun_q = 1'b0;
  always_ff @(posedge clk_i) begin
    begun_q <= 1'b1;
    for (int r = 0; r < 2; r++) begin
      if (!rst_ni) begin
        count_q[r]   <= '0;
        watched_q[r] <= 1'b0;
      end else begin
        count_q[r] <= count_q[r] + 3'(push) - 3'(valid[r] && taken[r]);
        if (watched_q[r]) begin
          ahead_q[r]   <= ahead_q[r] - 3'(valid[r] && taken[r]);
          watched_q[r] <= !(valid[r] && taken[r] && ahead_q[r] == '0);
        end else if (push && watch_i && watched_q == '0) begin
          ahead_q[r]     <= count_q[r] - 3'(valid[r] && taken[r]);
          watched_q[r]   <= !(valid[r] && taken[r] && count_q[r] == '0);
          watched_data_q <= data_i;
        end
      end
    end
  end

  always_comb begin
    assume (begun_q || !rst_ni);
    if (begun_q) begin
      Order_A :
      assert (!(watched_q[0] && valid[0] && ahead_q[0] == '0) || data[0] == watched_data_q);
      ThroughOrder_A :
      assert (!(watched_q[1] && valid[1] && ahead_q[1] == '0) || data[1] == watched_data_q);
      Some_A : assert (valid[0] == (count_q[0] != '0));
      ThroughSome_A : assert (valid[1] == (count_q[1] != '0 || push));
      Room_A : assert (count_q[0] <= 3'(Depth) && count_q[1] <= 3'(Depth));
    end
  end

endmodule
