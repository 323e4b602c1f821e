// SPDX-License-Identifier: Apache-2.0
//
// Accumulators: two banks of rows of int32 sums, as wide as a tile. The sums of the first inner
// part replace a row, those of later parts are added to it; an array smaller than a tile does so
// for one part of the columns at a time. While one bank accumulates the current column tile, the
// other is drained; the drain reads a bank whenever accumulation leaves its read port free.

module npu_accumulator #(
  parameter int unsigned ArrayDim = 16,  // rows and columns of the array: 4, 8, 16 or 32
  parameter int unsigned Edge = 16,  // tile edge in elements, 16 or 32
  parameter int unsigned Rows = 128,  // rows of a bank, a power of two of at least 4
  localparam int unsigned RowW = $clog2(Rows),  // bits of a row in a bank
  parameter type TagT = logic  // tag_t of npu_gemm_sums: where the sums of a row go
) (
  input logic clk_i,  // clock
  input logic rst_ni, // reset, active low

  // Announced one cycle ahead of the sums, so that the old row is there in time. No part
  // of a row is added to in two consecutive cycles.
  input logic next_valid_i,  // sums come in the next cycle; no refusal
  input TagT  next_tag_i,    // where they belong

  input logic signed [31:0] psum_i[ArrayDim],  // int32 sums, one cycle after next_valid_i

  output logic final_row_o,  // pulse: a row may be drained; two cycles after its next_tag_i.last

  input  logic                   drain_valid_i,       // only for rows that final_row_o told of
  output logic                   drain_ready_o,       // low while sums are added to this bank
  input  logic                   drain_bank_i,        // bank to read
  input  logic        [RowW-1:0] drain_row_i,         // row of the bank
  output logic signed [    31:0] drain_sum_o  [Edge]  // for the cycle after the handshake only
);

  localparam int unsigned Parts = Edge / ArrayDim;
  localparam int unsigned PartW = (Parts > 1) ? $clog2(Parts) : 1;

  typedef logic [ArrayDim-1:0][31:0] sums_t;

  logic valid_q, bank_q, first_q, last_q, drain_bank_q;
  logic [RowW-1:0] row_q;
  logic [1:0] column_q;
  sums_t old, sum;
  sums_t [1:0][Parts-1:0] read;  // what was read last, by bank and part
  logic accumulate, drain;

  assign accumulate = next_valid_i && !next_tag_i.first;
  assign drain = drain_valid_i && drain_ready_o;
  assign drain_ready_o = !(accumulate && next_tag_i.bank == drain_bank_i);

  always_comb begin
    old = read[bank_q][PartW'(column_q)];
    for (int unsigned n = 0; n < ArrayDim; n++) begin
      sum[n] = psum_i[n] + (first_q ? 32'd0 : old[n]);
    end
  end

  // Each part is a memory of its own; the drain reads those of a row together.
  for (genvar b = 0; b < 2; b++) begin : gen_bank
    logic [RowW-1:0] read_row;
    assign read_row = (accumulate && next_tag_i.bank == 1'(b)) ? next_tag_i.index : drain_row_i;

    for (genvar p = 0; p < int'(Parts); p++) begin : gen_part
      logic read_old, read_final, write;
      assign read_old   = accumulate && next_tag_i.bank == 1'(b) && next_tag_i.column == 2'(p);
      assign read_final = drain && drain_bank_i == 1'(b);
      assign write      = valid_q && bank_q == 1'(b) && column_q == 2'(p);

      npu_memory #(
        .DataT(sums_t),
        .Rows (Rows)
      ) u_memory (
        .clk_i,
        .rd_en_i  (read_old || read_final),
        .rd_row_i (read_row),
        .rd_data_o(read[b][p]),
        .wr_en_i  (write),
        .wr_row_i (row_q),
        .wr_data_i(sum)
      );

`ifndef SYNTHESIS
      NotInWrite_A :
      assert property (@(posedge clk_i) disable iff (!rst_ni)
                       (read_old || read_final) && write |-> read_row != row_q)
      else $error("npu_accumulator: a row is read as it is written");
`endif
    end
  end

  for (genvar n = 0; n < int'(Edge); n++) begin : gen_drain
    assign drain_sum_o[n] = read[drain_bank_q][n/ArrayDim][n%ArrayDim];
  end

  always_ff @(posedge clk_i) begin
    if (!rst_ni) begin
      valid_q      <= 1'b0;
      bank_q       <= 1'b0;
      row_q        <= '0;
      column_q     <= '0;
      first_q      <= 1'b0;
      last_q       <= 1'b0;
      final_row_o  <= 1'b0;
      drain_bank_q <= 1'b0;
    end else begin
      valid_q     <= next_valid_i;
      final_row_o <= valid_q && last_q;
      if (next_valid_i) begin
        bank_q   <= next_tag_i.bank;
        row_q    <= next_tag_i.index;
        column_q <= next_tag_i.column;
        first_q  <= next_tag_i.first;
        last_q   <= next_tag_i.last;
      end
      if (drain_valid_i && drain_ready_o) drain_bank_q <= drain_bank_i;
    end
  end

`ifndef SYNTHESIS
  PartExists_A :
  assert property (@(posedge clk_i) disable iff (!rst_ni) valid_q |-> 32'(column_q) < Parts)
  else $error("npu_accumulator: sums for a part of the columns that a tile does not have");
`endif

endmodule
