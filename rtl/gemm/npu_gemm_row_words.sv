// SPDX-License-Identifier: Apache-2.0
//
// Gathers the words from SRAM that one output row of a column tile needs: the softmax sum of the
// row, then the words of the second operand that hold valid columns, plane after plane. The row may
// go in the cycle after its last word is taken, and as it goes the first word of the next is.

module npu_gemm_row_words
  import npu_pkg::*;
  import npu_operation_pkg::*;
  import npu_isa_pkg::*;
  import npu_gemm_pkg::*;
#(
  parameter int unsigned Edge = 16,  // tile edge in elements, 16 or 32
  localparam int unsigned DWords = Edge / 2  // words of D in a row: two planes of int32
) (
  input logic clk_i,  // clock
  input logic rst_ni, // reset, active low

  // Stable while enable_i
  input gemm_operation_t op_i,
  // Columns of the tile that count, 1 to Edge
  input logic [5:0] columns_i,

  input  logic  word_valid_i,  // stays until word_ready_o
  output logic  word_ready_o,  // does not depend on word_valid_i
  input  word_t word_i,        // in the order of npu_gemm_operand_d

  input  logic               enable_i,  // a row is wanted
  input  logic               more_i,    // the row is not the last one of the column tile
  output logic               ready_o,   // all of its words are here
  input  logic               launch_i,  // the row goes, next row; only with ready_o
  output logic  [      31:0] sum_o,     // softmax sum; with ready_o
  output word_t [DWords-1:0] d_o        // words of D, if there is one; with ready_o
);

  logic use_sums, use_d, both_planes;
  assign use_sums = op_i.requant && op_i.q == GemmQRow;
  assign use_d = op_i.accumulate || op_i.op != GemmOpNone;
  assign both_planes = op_i.accumulate && op_i.requant &&
                       op_i.a_type inside {GemmAInt16, GemmAUint16};

  logic [3:0] d_words, word_q;
  logic complete_q, have_sum_q, plane_q, want_sum, plane_last, last, row_end, take;
  word_t [DWords-1:0] d_q;
  logic [31:0] sum_q;

  always_comb begin
    if (op_i.accumulate) d_words = 4'((8'(columns_i) + 8'd3) >> 2);
    else if (op_i.op == GemmOpAdd && is_out16(op_i.out)) d_words = 4'((8'(columns_i) + 8'd7) >> 3);
    else d_words = 4'((8'(columns_i) + 8'd15) >> 4);
  end

  assign want_sum     = use_sums && !have_sum_q;
  assign plane_last   = word_q + 4'd1 == d_words;
  assign last         = plane_last && (plane_q || !both_planes);
  assign row_end      = want_sum ? !use_d : last;  // the next word completes the row

  assign word_ready_o = enable_i && (use_sums || use_d) && (!complete_q || (launch_i && more_i));
  assign take         = word_valid_i && word_ready_o;
  assign ready_o      = complete_q || (!use_sums && !use_d);
  assign sum_o        = sum_q;
  assign d_o          = d_q;

  always_ff @(posedge clk_i) begin
    if (!rst_ni) begin
      complete_q <= 1'b0;
      word_q     <= '0;
      plane_q    <= 1'b0;
      have_sum_q <= 1'b0;
      d_q        <= '0;
      sum_q      <= '0;
    end else begin
      if (take) complete_q <= row_end;
      else if (launch_i) complete_q <= 1'b0;
      if (take) begin
        if (want_sum) sum_q <= word_i[31:0];
        else begin
          for (int unsigned w = 0; w < DWords; w++) begin
            if (32'(word_q) + (plane_q ? Edge / 4 : 0) == w) d_q[w] <= word_i;
          end
        end
        if (row_end) begin
          word_q     <= '0;
          plane_q    <= 1'b0;
          have_sum_q <= 1'b0;
        end else if (want_sum) have_sum_q <= 1'b1;
        else if (!plane_last) word_q <= word_q + 4'd1;
        else begin
          word_q  <= '0;
          plane_q <= 1'b1;
        end
      end
    end
  end

endmodule
