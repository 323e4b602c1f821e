// SPDX-License-Identifier: Apache-2.0
//
// Reads finished rows of sums out of the accumulators, in the order in which they were finished,
// into a short queue, and gives the bank back when its last row is out.

module npu_gemm_drain
  import npu_pkg::*;
  import npu_operation_pkg::*;
  import npu_isa_pkg::*;
#(
  parameter int unsigned Edge = 16,  // tile edge in elements, 16 or 32
  parameter int unsigned AccRows = 128,  // rows of a bank, a power of two of at least 4
  localparam int unsigned RowW = $clog2(AccRows),  // bits of a row in a bank
  localparam type SumsT = logic [Edge-1:0][31:0]  // a row of int32 sums, one per column of a tile
) (
  input logic clk_i,  // clock
  input logic rst_ni, // reset, active low

  input  logic            op_valid_i,  // stays until op_ready_o
  output logic            op_ready_o,  // high as its last row is read; depends on drain_ready_i
  input  gemm_operation_t op_i,        // stable while op_valid_i

  input  logic                   final_row_i,          // pulse: one more row may be read
  output logic                   drain_valid_o,        // stays until drain_ready_i
  input  logic                   drain_ready_i,        // may depend on drain_bank_o, not on valid
  output logic                   drain_bank_o,         // takes turns; stable while drain_valid_o
  output logic        [RowW-1:0] drain_row_o,          // from 0 on; stable while drain_valid_o
  input  logic signed [    31:0] drain_sum_i  [Edge],  // int32 sums, one cycle after the handshake
  output logic                   bank_free_o,          // pulse: a bank's last row is read

  output logic sums_valid_o,  // stays until sums_ready_i
  input  logic sums_ready_i,  // may depend on sums_valid_o
  output SumsT sums_o         // a row of sums, stable while sums_valid_o
);

  // Four rows would do. Eight are a memory on every target, four would be registers.
  localparam int unsigned QueueDepth = 8;
  localparam int unsigned CreditW = $clog2(QueueDepth + 1);

  logic [RowW+1:0] finished_q;  // rows that may be read
  logic [CreditW-1:0] credit_q;
  logic bank_q, arrive_q;
  dim_t row_q, n_left_q, rows;
  logic fresh_q, read, row_last, n_last;
  SumsT arriving;

  assign rows = (op_i.a_type inside {GemmAInt16, GemmAUint16}) ? dim_t'(op_i.m << 1) : op_i.m;
  assign row_last = row_q + 1'b1 == rows;
  assign n_last = n_left_q <= dim_t'(Edge);
  assign drain_valid_o = !fresh_q && finished_q != '0 && credit_q != '0;
  assign drain_bank_o = bank_q;
  assign drain_row_o = RowW'(row_q);
  assign read = drain_valid_o && drain_ready_i;
  assign bank_free_o = read && row_last;
  assign op_ready_o = read && row_last && n_last;

  always_comb begin
    for (int unsigned n = 0; n < Edge; n++) arriving[n] = drain_sum_i[n];
  end

  always_ff @(posedge clk_i) begin
    if (!rst_ni) begin
      finished_q <= '0;
      credit_q   <= CreditW'(QueueDepth);
      bank_q     <= 1'b0;
      arrive_q   <= 1'b0;
      row_q      <= '0;
      n_left_q   <= '0;
      fresh_q    <= 1'b1;
    end else begin
      finished_q <= finished_q + (RowW + 2)'(final_row_i) - (RowW + 2)'(read);
      credit_q   <= credit_q + CreditW'(sums_valid_o && sums_ready_i) - CreditW'(read);
      arrive_q   <= read;
      if (op_valid_i && fresh_q) begin
        fresh_q  <= 1'b0;
        row_q    <= '0;
        n_left_q <= op_i.n;
      end else if (read) begin
        row_q <= row_last ? '0 : row_q + 1'b1;
        if (row_last) begin
          bank_q   <= !bank_q;
          n_left_q <= n_left_q - dim_t'(Edge);
        end
        if (op_ready_o) fresh_q <= 1'b1;
      end
    end
  end

  npu_fifo #(
    .DataT(SumsT),
    .Depth(QueueDepth)
  ) u_queue (
    .clk_i,
    .rst_ni,
    .valid_i(arrive_q),
    .ready_o(),
    .data_i (arriving),
    .valid_o(sums_valid_o),
    .ready_i(sums_ready_i),
    .data_o (sums_o)
  );

endmodule
