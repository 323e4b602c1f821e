// SPDX-License-Identifier: Apache-2.0
//
// Gathers the words from SRAM that one output row of a column tile needs: the softmax sum of the
// row, then the words of the second operand that hold valid columns, plane after plane; and hands
// out those of a beat. With many lanes a row lies in registers: it may go in the cycle after its last
// word is taken, and as it goes the first word of the next is. With up to four lanes, which take a
// row word by word, it lies in memories, which have room for the next one.

module npu_gemm_row_words
  import npu_pkg::*;
  import npu_operation_pkg::*;
  import npu_isa_pkg::*;
  import npu_gemm_pkg::*;
#(
  parameter int unsigned Edge = 16,  // tile edge in elements, 16 or 32
  parameter int unsigned Lanes = 16,  // columns in a beat, a power of two up to Edge
  localparam int unsigned ColumnW = $clog2(Edge)  // bits of a column of a tile
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

  input logic enable_i,  // a row is wanted
  input logic more_i,  // the row is not the last one of the column tile
  output logic ready_o,  // all of its words are here
  input logic launch_i,  // the row goes, next row; only with ready_o
  output row_factor_t factor_o,  // of the softmax sum; with ready_o
  input logic [ColumnW-1:0] column_i,  // of the row, the first of the beat
  output post_second_t [Lanes-1:0] second_o  // second operand, if there is one; with ready_o
);

  localparam int unsigned PlaneWords = Edge / 4;  // words of D in a row, of int32
  localparam int unsigned WordW = $clog2(PlaneWords);

  localparam logic [ColumnW-1:0] FirstBits = ColumnW'(Edge - Lanes);  // that column_i may have

  logic use_sums, use_d, both_planes;
  assign use_sums = op_i.requant && op_i.q == GemmQRow;
  assign use_d = op_i.accumulate || op_i.op != GemmOpNone;
  assign both_planes = op_i.accumulate && op_i.requant &&
                       op_i.a_type inside {GemmAInt16, GemmAUint16};

  // ---------------------------------------------------------------------------------------------
  // Places of the words
  // ---------------------------------------------------------------------------------------------
  logic [3:0] d_words, word_q;
  logic have_sum_q, plane_q, want_sum, plane_last, last, row_end, take;

  always_comb begin
    if (op_i.accumulate) d_words = 4'((8'(columns_i) + 8'd3) >> 2);
    else if (op_i.op == GemmOpAdd && is_out16(op_i.out)) d_words = 4'((8'(columns_i) + 8'd7) >> 3);
    else d_words = 4'((8'(columns_i) + 8'd15) >> 4);
  end

  assign want_sum   = use_sums && !have_sum_q;
  assign plane_last = word_q + 4'd1 == d_words;
  assign last       = plane_last && (plane_q || !both_planes);
  assign row_end    = want_sum ? !use_d : last;  // the next word completes the row
  assign take       = word_valid_i && word_ready_o;

  always_ff @(posedge clk_i) begin
    if (!rst_ni) begin
      word_q     <= '0;
      plane_q    <= 1'b0;
      have_sum_q <= 1'b0;
    end else if (take) begin
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

  // What a softmax sum makes of the row's factor, before it waits
  row_factor_t factor;

  npu_recip u_recip (
    .sum_i  (word_i[31:0]),
    .recip_o(factor.mult),
    .msb_o  (factor.msb)
  );

  if (Lanes > 4) begin : gen_registers
    // -------------------------------------------------------------------------------------------
    // A row in registers
    // -------------------------------------------------------------------------------------------
    logic complete_q;
    word_t [1:0][PlaneWords-1:0] d_q;
    row_factor_t factor_q;

    assign word_ready_o = enable_i && (use_sums || use_d) && (!complete_q || (launch_i && more_i));
    assign ready_o      = complete_q || (!use_sums && !use_d);
    assign factor_o     = factor_q;

    always_ff @(posedge clk_i) begin
      if (!rst_ni) begin
        complete_q <= 1'b0;
        d_q        <= '0;
        factor_q   <= '0;
      end else begin
        if (take) complete_q <= row_end;
        else if (launch_i) complete_q <= 1'b0;
        if (take) begin
          if (want_sum) factor_q <= factor;
          else d_q[plane_q][WordW'(word_q)] <= word_i;
        end
      end
    end

    typedef logic [Edge-1:0][31:0] words_t;
    typedef logic [Edge-1:0][15:0] halves_t;
    typedef logic [Edge-1:0][7:0] bytes_t;

    words_t high, low;
    halves_t half;
    bytes_t  bytes;
    assign high  = words_t'(d_q[0]);
    assign low   = words_t'(d_q[1]);
    assign half  = halves_t'(d_q[0][Edge/8-1:0]);
    assign bytes = bytes_t'(d_q[0][Edge/16-1:0]);

    always_comb begin
      for (int unsigned l = 0; l < Lanes; l++) begin
        automatic logic [ColumnW-1:0] c = (column_i & FirstBits) | ColumnW'(l);
        second_o[l] = '{
            partial_high: high[c],
            partial_low: low[c],
            element: is_out16(op_i.out) ? half[c] : 16'($signed(bytes[c]))
        };
      end
    end
  end else begin : gen_memories
    // -------------------------------------------------------------------------------------------
    // Two rows in memories: one is handed out, the other gathered
    // -------------------------------------------------------------------------------------------
    logic in_q, out_q;  // the row that is gathered, and the one that is handed out
    logic [1:0] complete_q;  // rows all of whose words are here
    row_factor_t [1:0] factor_q;
    word_t high_q[2*PlaneWords];
    word_t low_q[2*PlaneWords];

    assign word_ready_o = enable_i && (use_sums || use_d) && !complete_q[in_q] &&
                          (!complete_q[out_q] || more_i);
    assign ready_o = complete_q[out_q] || (!use_sums && !use_d);
    assign factor_o = factor_q[out_q];

    always_ff @(posedge clk_i) begin
      if (!rst_ni) begin
        in_q       <= 1'b0;
        out_q      <= 1'b0;
        complete_q <= '0;
      end else begin
        if (take && row_end) begin
          in_q             <= !in_q;
          complete_q[in_q] <= 1'b1;
        end
        if (launch_i && complete_q[out_q]) begin
          out_q             <= !out_q;
          complete_q[out_q] <= 1'b0;
        end
      end
    end

    always_ff @(posedge clk_i) begin
      if (take && want_sum) factor_q[in_q] <= factor;
      if (take && !want_sum && !plane_q) high_q[{in_q, WordW'(word_q)}] <= word_i;
      if (take && plane_q) low_q[{in_q, WordW'(word_q)}] <= word_i;
    end

    logic [WordW-1:0] place;  // of the word in its plane
    word_t high, low;
    always_comb begin
      if (op_i.accumulate) place = WordW'(32'(column_i) / 4);
      else if (is_out16(op_i.out)) place = WordW'(32'(column_i) / 8);
      else place = WordW'(32'(column_i) / 16);
    end
    assign high = high_q[{out_q, place}];
    assign low  = low_q[{out_q, place}];

    always_comb begin
      for (int unsigned l = 0; l < Lanes; l++) begin
        automatic logic [ColumnW-1:0] c = (column_i & FirstBits) | ColumnW'(l);
        second_o[l] = '{
            partial_high: high[32*32'(c[1:0])+:32],
            partial_low: low[32*32'(c[1:0])+:32],
            element:
            is_out16
            (
              op_i.out
            ) ?
            high[16*32'(c[2:0])+:16]
            : 16'(
            $signed(high[8*32'(c[3:0])+:8])
            )
        };
      end
    end
  end

endmodule
