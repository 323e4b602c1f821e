// SPDX-License-Identifier: Apache-2.0
//
// The rules of valid/ready for each reader of a multicast FIFO. It shows what it stores: that valid
// stays is what can go wrong.

module multicast_checker #(
  parameter int unsigned NumReaders = 2  // of the FIFO
) (
  input logic clk_i,  // clock
  input logic rst_ni, // reset, active low

  input logic valid_i[NumReaders],  // of each reader
  input logic ready_i[NumReaders]   // of each reader
);

  for (genvar r = 0; r < int'(NumReaders); r++) begin : gen_reader
    stream_checker u_check (
      .clk_i,
      .rst_ni,
      .valid_i(valid_i[r]),
      .ready_i(ready_i[r]),
      .data_i (1'b0)
    );
  end

endmodule
