// SPDX-License-Identifier: Apache-2.0
//
// A memory with one write and one read port and a register behind the reads: what every target has
// as a block, macro or primitive. A row is not read in the cycle in which it is written: what comes
// differs between targets. Who holds a memory asserts it; synthesis is told.

module npu_memory #(
  parameter type DataT = logic,  // what a row is, packed
  parameter int unsigned Rows = 16  // rows, at least 2
) (
  input logic clk_i,  // clock

  input  logic                    rd_en_i,   // read the row rd_row_i
  input  logic [$clog2(Rows)-1:0] rd_row_i,  // index of the row, with rd_en_i
  output DataT                    rd_data_o, // one cycle after rd_en_i, until the next

  input logic                    wr_en_i,   // write; reads of later cycles see it
  input logic [$clog2(Rows)-1:0] wr_row_i,  // index of the row, with wr_en_i
  input DataT                    wr_data_i  // all of the row, with wr_en_i
);

  (* no_rw_check *) DataT mem_q[Rows];

  always_ff @(posedge clk_i) begin
    if (rd_en_i) rd_data_o <= mem_q[rd_row_i];
    if (wr_en_i) mem_q[wr_row_i] <= wr_data_i;
  end

endmodule
