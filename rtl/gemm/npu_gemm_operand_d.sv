// SPDX-License-Identifier: Apache-2.0
//
// Reads what post-processing needs from SRAM for each row of a column tile: the softmax sum of the
// row, the second operand D, or the partial sums to continue. Words come out in the order in which
// the rows are processed: for every row the softmax sum first, then the words of D that hold valid
// columns, for partial sums of a 16-bit operand A the high plane before the low one. Places are found
// a cycle before they are asked for.

module npu_gemm_operand_d
  import npu_pkg::*;
  import npu_sram_pkg::*;
  import npu_operation_pkg::*;
  import npu_isa_pkg::*;
  import npu_gemm_pkg::*;
#(
  parameter int unsigned Edge = 16  // tile edge in elements, 16 or 32
) (
  input logic clk_i,  // clock
  input logic rst_ni, // reset, active low

  input  logic            op_valid_i,  // stays until op_ready_o
  output logic            op_ready_o,  // high as its last word is asked for, or at once
  input  gemm_operation_t op_i,        // stable while op_valid_i

  output logic  word_valid_o,  // stays until word_ready_i
  input  logic  word_ready_i,  // may depend on word_valid_o
  output word_t word_o,        // stable while word_valid_o

  output sram_rd_req_t rd_req_o,  // stays, address stable, until rd_rsp_i.ready
  input  sram_rd_rsp_t rd_rsp_i   // ready may depend on the request; words in order
);

  logic wide, use_sums, use_d;
  logic [3:0] tile_words;  // words of D per row of a full column tile
  assign wide     = op_i.a_type inside {GemmAInt16, GemmAUint16};
  assign use_sums = op_i.requant && op_i.q == GemmQRow;
  assign use_d    = op_i.accumulate || op_i.op != GemmOpNone;

  always_comb begin
    if (op_i.accumulate) tile_words = 4'(Edge / 4);
    else if (op_i.op == GemmOpAdd && is_out16(op_i.out)) tile_words = 4'(Edge / 8);
    else tile_words = 4'(Edge / 16);
  end

  // Words of the current column tile that hold valid columns
  logic [3:0] words;
  dim_t n_left_q;
  logic [5:0] columns;
  always_comb begin
    columns = (n_left_q >= dim_t'(Edge)) ? 6'(Edge) : 6'(n_left_q);
    if (op_i.accumulate) words = 4'((8'(columns) + 8'd3) >> 2);
    else if (tile_words == 4'(Edge / 8)) words = 4'((8'(columns) + 8'd7) >> 3);
    else words = 4'((8'(columns) + 8'd15) >> 4);
  end

  logic fresh_q, plane_q, sums_done_q;
  dim_t m_q;
  logic [3:0] word_q;
  sram_addr_t column_q;  // words of the column tiles before this one
  sram_addr_t row_q;  // m * pitch
  sram_addr_t low_q;  // words from the high plane to the low one
  logic addr_valid, addr_ready, step, now_sums, group_last, row_last, column_last;

  assign addr_valid = op_valid_i && !fresh_q;
  assign step = addr_valid && addr_ready;
  assign now_sums = use_sums && !sums_done_q;
  assign group_last = now_sums ? !use_d : word_q + 4'd1 == words;  // of a plane's words
  assign row_last = group_last && (plane_q || !(wide && op_i.accumulate));
  assign column_last = row_last && m_q + 1'b1 == op_i.m;
  // Nothing to read: the operation passes by.
  assign op_ready_o = op_valid_i && ((!use_sums && !use_d) ||
                                       (step && column_last && n_left_q <= dim_t'(Edge)));

  always_ff @(posedge clk_i) begin
    if (!rst_ni) begin
      fresh_q     <= 1'b1;
      plane_q     <= 1'b0;
      sums_done_q <= 1'b0;
      m_q         <= '0;
      word_q      <= '0;
      column_q    <= '0;
      row_q       <= '0;
      n_left_q    <= '0;
      low_q       <= '0;
    end else if (op_ready_o) begin
      fresh_q <= 1'b1;
    end else if (op_valid_i && fresh_q) begin
      fresh_q     <= 1'b0;
      plane_q     <= 1'b0;
      sums_done_q <= 1'b0;
      m_q         <= '0;
      word_q      <= '0;
      column_q    <= '0;
      row_q       <= '0;
      n_left_q    <= op_i.n;
      low_q       <= op_i.m * op_i.d_pitch;
    end else if (step) begin
      if (now_sums) sums_done_q <= 1'b1;
      else word_q <= word_q + 4'd1;
      if (group_last) begin
        word_q  <= '0;
        plane_q <= !plane_q;
      end
      if (row_last) begin
        plane_q     <= 1'b0;
        sums_done_q <= 1'b0;
        m_q         <= m_q + 1'b1;
        row_q       <= row_q + op_i.d_pitch;
      end
      if (column_last) begin
        m_q      <= '0;
        row_q    <= '0;
        column_q <= column_q + sram_addr_t'(tile_words);
        n_left_q <= n_left_q - dim_t'(Edge);
      end
    end
  end

  sram_addr_t addr;
  always_comb begin
    if (now_sums) addr = op_i.sums + m_q;
    else begin
      addr = op_i.d + row_q + column_q + sram_addr_t'(word_q);
      if (plane_q) addr = addr + low_q;
    end
  end

  logic asked_valid, asked_ready;
  sram_addr_t asked;

  npu_fifo #(
    .DataT(sram_addr_t),
    .Depth(2)
  ) u_asked (
    .clk_i,
    .rst_ni,
    .valid_i(addr_valid),
    .ready_o(addr_ready),
    .data_i (addr),
    .valid_o(asked_valid),
    .ready_i(asked_ready),
    .data_o (asked)
  );

  npu_sram_reader u_reader (
    .clk_i,
    .rst_ni,
    .addr_valid_i(asked_valid),
    .addr_ready_o(asked_ready),
    .addr_i      (asked),
    .data_valid_o(word_valid_o),
    .data_ready_i(word_ready_i),
    .data_o      (word_o),
    .rd_req_o,
    .rd_rsp_i
  );

endmodule
