// SPDX-License-Identifier: Apache-2.0
//
// One SRAM bank: a simple dual-port memory of 16-byte words, one read and one write per cycle.
// A read of the word that is written in the same cycle returns the old value.

module npu_sram_bank #(
  parameter int unsigned Rows = 1024  // words of the bank, a power of two from 16 to 4096
) (
  input  logic                              clk_i,      // clock
  input  logic                              rd_en_i,    // read the word rd_row_i
  input  logic           [$clog2(Rows)-1:0] rd_row_i,   // index of the word, with rd_en_i
  output npu_pkg::word_t                    rd_data_o,  // one cycle after rd_en_i, until the next
  input  logic                              wr_en_i,    // write; reads of later cycles see it
  input  logic           [$clog2(Rows)-1:0] wr_row_i,   // index of the word, with wr_en_i
  input  npu_pkg::word_t                    wr_data_i   // all 16 bytes, with wr_en_i
);

  npu_pkg::word_t mem_q[Rows];

  always_ff @(posedge clk_i) begin
    if (rd_en_i) rd_data_o <= mem_q[rd_row_i];
    if (wr_en_i) mem_q[wr_row_i] <= wr_data_i;
  end

endmodule
