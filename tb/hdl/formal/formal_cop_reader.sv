// SPDX-License-Identifier: Apache-2.0
//
// What a reader of the coprocessor asks memory for, whatever its range is: every burst stays inside
// one block of 128 bytes, hence inside its 4 KiB page, as its master's guard assumes.

module formal_cop_reader
  import npu_cop_pkg::*;
(
  input logic          clk_i,    // clock
  input logic          rst_ni,   // reset, active low
  input cop_range_t    range_i,
  input logic          bytes_i,
  input logic          stop_i,
  input logic          late_i,
  input cop_read_rsp_t read_i,
  input logic          ready_i
);

  cop_read_req_t read;
  logic begun_q;

  npu_cop_reader #(
    .Depth(8)
  ) u_reader (
    .clk_i,
    .rst_ni,
    .range_i,
    .bytes_i,
    .stop_i,
    .late_i,
    .read_o (read),
    .read_i,
    .chunk_o(),
    .ready_i
  );

  initial begun_q = 1'b0;
  always_ff @(posedge clk_i) begun_q <= 1'b1;

  always_comb begin
    assume (begun_q || !rst_ni);
    // Range_A and Offered_A of cop_range_checker
    assume (!range_i.start || range_i.bytes != '0 && range_i.bytes <= CountBits'(1 << 20));
    assume (!read_i.ready || read.valid);
    if (begun_q && rst_ni) begin
      // While there is something to ask for, it is at least a word.
      InBlock_A :
      assert ((!read.valid || {1'b0, read.word[2:0]} + {1'b0, read.len} < 4'd8) &&
              (!u_reader.more_q || u_reader.left_q != '0));
    end
  end

endmodule
