// SPDX-License-Identifier: Apache-2.0
//
// A queue whose reader looks at any of its entries and drops several at once: an entry keeps its
// contents and its place behind those that are older. One entry is watched.

module formal_window_fifo (
  input logic clk_i,  // clock
  input logic rst_ni,  // reset, active low
  input logic valid_i,
  input logic [1:0] data_i,
  input logic [1:0] at_i,
  input logic [2:0] drop_i,
  input logic watch_i  // the entry that comes is the one
);

  localparam int unsigned Depth = 4;

  logic ready, valid, begun_q, watched_q;
  logic [1:0] data, watched_data_q;
  logic [2:0] count, count_q, ahead_q;

  npu_window_fifo #(
    .DataT(logic [1:0]),
    .Depth(Depth)
  ) u_fifo (
    .clk_i,
    .rst_ni,
    .valid_i,
    .ready_o(ready),
    .data_i,
    .valid_o(valid),
    .count_o(count),
    .at_i,
    .data_o (data),
    .drop_i
  );

  initial begun_q = 1'b0;
  always_ff @(posedge clk_i) begin
    begun_q <= 1'b1;
    if (!rst_ni) begin
      count_q   <= '0;
      watched_q <= 1'b0;
    end else begin
      count_q <= count_q + 3'(valid_i && ready) - drop_i;
      if (watched_q) begin
        ahead_q   <= ahead_q - drop_i;
        watched_q <= drop_i <= ahead_q;
      end else if (valid_i && ready && watch_i) begin
        ahead_q        <= count_q - drop_i;
        watched_q      <= 1'b1;
        watched_data_q <= data_i;
      end
    end
  end

  always_comb begin
    assume (begun_q || !rst_ni);
    assume (drop_i <= count);  // DropStored_A of the block
    if (begun_q) begin
      Order_A : assert (!(watched_q && 3'(at_i) == ahead_q) || data == watched_data_q);
      Count_A : assert (count == count_q && valid == (count_q != '0));
      Room_A : assert (ready == (count_q != 3'(Depth)));
    end
  end

endmodule
