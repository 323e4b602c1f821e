// SPDX-License-Identifier: Apache-2.0
//
// A skid buffer: what comes is offered at once or waits, unchanged, and is neither lost nor doubled.

module formal_skid_buffer (
  input logic clk_i,  // clock
  input logic rst_ni,  // reset, active low
  input logic flush_i,
  input logic valid_i,
  input logic [1:0] data_i,
  input logic ready_i
);

  logic ready, valid, begun_q, waits_q;
  logic [1:0] data, waiting_q;

  npu_skid_buffer #(
    .DataT(logic [1:0])
  ) u_skid (
    .clk_i,
    .rst_ni,
    .flush_i,
    .valid_i,
    .ready_o(ready),
    .data_i,
    .valid_o(valid),
    .ready_i,
    .data_o (data)
  );

  // What was taken from the source and not by the sink
  initial begun_q = 1'b0;
  always_ff @(posedge clk_i) begin
    begun_q <= 1'b1;
    if (!rst_ni || flush_i) waits_q <= 1'b0;
    else if (!waits_q) begin
      waits_q   <= valid_i && ready && !(valid && ready_i);
      waiting_q <= data_i;
    end else begin
      waits_q <= !(valid && ready_i);
    end
  end

  always_comb begin
    assume (begun_q || !rst_ni);
    if (begun_q) begin
      Some_A : assert (valid == (waits_q || valid_i));
      Data_A : assert (!valid || data == (waits_q ? waiting_q : data_i));
      Room_A : assert (ready == !waits_q);
    end
  end

endmodule
