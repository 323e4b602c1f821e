// SPDX-License-Identifier: Apache-2.0
//
// Brings together what one output row of a column tile needs: the row of sums (two of them for a
// 16-bit operand A), the factors of its columns (npu_gemm_params), the words of the second operand
// (npu_gemm_row_words), and where the result goes. The row leaves in beats of as many columns as
// post-processing has lanes; beats without a valid column are left out.

module npu_gemm_collect
  import npu_pkg::*;
  import npu_operation_pkg::*;
  import npu_isa_pkg::*;
  import npu_gemm_pkg::*;
#(
  parameter int unsigned Edge = 16,  // tile edge in elements, 16 or 32
  parameter int unsigned Lanes = 16,  // columns in a beat, a power of two up to Edge
  localparam type SumsT = logic [Edge-1:0][31:0]  // a row of int32 sums, one per column of a tile
) (
  input logic clk_i,  // clock
  input logic rst_ni, // reset, active low

  input  logic            op_valid_i,  // stays until op_ready_o
  output logic            op_ready_o,  // high as its last beat goes; depends on beat_ready_i
  input  gemm_operation_t op_i,        // stable while op_valid_i

  input  logic  param_valid_i,  // stays until param_ready_o
  output logic  param_ready_o,  // room for one more; depends on no input
  input  line_t param_i,        // a line of table or parameters, stable while param_valid_i

  input  logic sums_valid_i,  // stays until sums_ready_o
  output logic sums_ready_o,  // may depend on sums_valid_i
  input  SumsT sums_i,        // a row of sums, stable while sums_valid_i

  input  logic  word_valid_i,  // stays until word_ready_o
  output logic  word_ready_o,  // depends on op_i and beat_ready_i
  input  word_t word_i,        // in the order of npu_gemm_operand_d, stable while word_valid_i

  // Activation table, written while no row is under way
  input logic pipe_busy_i,  // a row is in post-processing; from registers
  output logic table_write_o,  // a word of the table; no refusal
  output logic [3:0] table_word_o,  // which of its 16 words, in order; with table_write_o
  output word_t table_data_o,  // 16 entries, the first in the lowest byte; with table_write_o

  // One beat of a row, to post-processing. What the operation uses of it is stable while
  // beat_valid_o, but for beat_ctrl_o.done.
  input logic product_i,  // a beat without op MUL must wait; from a register
  output logic beat_valid_o,  // stays until beat_ready_i
  input logic beat_ready_i,  // may depend on beat_valid_o
  output beat_ctrl_t beat_ctrl_o,  // place and work; done follows beat_ready_i
  output post_column_t [Lanes-1:0] beat_columns_o,  // sums and what belongs to each
  output post_second_t [Lanes-1:0] beat_second_o  // second operand, if there is one
);

  localparam int unsigned ColumnW = $clog2(Edge);

  if ((Lanes & (Lanes - 1)) != 0 || Lanes < 1 || Lanes > Edge) begin : gen_bad_lanes
    $fatal(1, "npu_gemm_collect: Lanes = %0d, must be a power of two up to %0d", Lanes, Edge);
  end

  dim_t n_left_q, m_q;  // columns behind the column tile; rows in front of this one
  sram_addr_t c_row_q, c_column_q;
  logic wide, raw_planes, both_planes;

  // Columns of a column tile, where so many are left
  function automatic logic [5:0] tile_columns(dim_t n_left);
    return (n_left >= dim_t'(Edge)) ? 6'(Edge) : 6'(n_left);
  endfunction

  assign wide = op_i.a_type inside {GemmAInt16, GemmAUint16};
  // Unrequantised sums of a 16-bit operand A are two planes of rows; otherwise they are combined.
  assign raw_planes = wide && !op_i.requant;
  assign both_planes = wide && op_i.requant;

  // ---------------------------------------------------------------------------------------------
  // Factors of the columns
  // ---------------------------------------------------------------------------------------------
  logic idle, rows;
  logic launch, tile_last, column_last;  // the last beat of a row goes, of a column tile
  logic [ColumnW-1:0] column;  // of the row, the first of the beat
  column_factor_t [Lanes-1:0] factors;
  factor_t common, of_row;

  npu_gemm_params #(
    .Edge (Edge),
    .Lanes(Lanes)
  ) u_params (
    .clk_i,
    .rst_ni,
    .op_valid_i,
    .op_i,
    .param_valid_i,
    .param_ready_o,
    .param_i,
    .pipe_busy_i,
    .table_write_o,
    .table_word_o,
    .table_data_o,
    .idle_o     (idle),
    .rows_o     (rows),
    .launch_i   (launch),
    .tile_last_i(tile_last),
    .op_last_i  (n_left_q == '0),
    .column_i   (column),
    .factors_o  (factors),
    .common_o   (common)
  );

  // ---------------------------------------------------------------------------------------------
  // Words from SRAM: the softmax sum and the second operand
  // ---------------------------------------------------------------------------------------------
  logic [5:0] columns_q;  // of the column tile
  logic words_ready;
  row_factor_t sum_factor;

  npu_gemm_row_words #(
    .Edge (Edge),
    .Lanes(Lanes)
  ) u_words (
    .clk_i,
    .rst_ni,
    .op_i,
    .columns_i(columns_q),
    .word_valid_i,
    .word_ready_o,
    .word_i,
    .enable_i (rows),
    .more_i   (!tile_last),
    .ready_o  (words_ready),
    .launch_i (launch),
    .factor_o (sum_factor),
    .column_i (column),
    .second_o (beat_second_o)
  );

  // ---------------------------------------------------------------------------------------------
  // Sums
  // ---------------------------------------------------------------------------------------------
  SumsT high_q;
  logic have_high_q, sums_complete, plane_q, row_last;
  logic [5:0] columns_left;
  logic beat_last;

  assign sums_complete = sums_valid_i && (have_high_q || !both_planes);
  assign beat_valid_o  = rows && sums_complete && words_ready &&
                         !(product_i && op_i.op != GemmOpMul);
  assign columns_left = columns_q - 6'(column);
  assign launch = beat_valid_o && beat_ready_i && beat_last;
  assign sums_ready_o = rows && ((both_planes && !have_high_q) || launch);

  assign row_last = !raw_planes || plane_q;
  assign tile_last = row_last && m_q + 1'b1 == op_i.m;
  assign column_last = launch && tile_last;
  assign op_ready_o = column_last && n_left_q == '0;

  logic [3:0] c_tile_words, c_words;
  always_comb begin
    unique case (op_i.out)
      GemmOutInt16: begin
        c_tile_words = 4'(Edge / 8);
        c_words      = 4'((8'(columns_q) + 8'd7) >> 3);
      end
      GemmOutInt32: begin
        c_tile_words = 4'(Edge / 4);
        c_words      = 4'((8'(columns_q) + 8'd3) >> 2);
      end
      default: begin
        c_tile_words = 4'(Edge / 16);
        c_words      = 4'((8'(columns_q) + 8'd15) >> 4);
      end
    endcase
  end

  always_ff @(posedge clk_i) begin
    if (!rst_ni) begin
      n_left_q    <= '0;
      columns_q   <= '0;
      m_q         <= '0;
      c_row_q     <= '0;
      c_column_q  <= '0;
      high_q      <= '0;
      have_high_q <= 1'b0;
      plane_q     <= 1'b0;
    end else begin
      if (idle) begin
        n_left_q   <= op_i.n - dim_t'(tile_columns(op_i.n));
        columns_q  <= tile_columns(op_i.n);
        m_q        <= '0;
        c_row_q    <= op_i.c;
        c_column_q <= '0;
      end
      if (sums_valid_i && sums_ready_o && !launch) begin
        high_q      <= sums_i;
        have_high_q <= 1'b1;
      end
      if (launch) begin
        have_high_q <= 1'b0;
        plane_q     <= raw_planes && !plane_q;
        if (row_last) begin
          m_q     <= m_q + 1'b1;
          c_row_q <= c_row_q + op_i.c_pitch;
        end
      end
      if (column_last) begin
        m_q        <= '0;
        c_row_q    <= op_i.c;
        c_column_q <= c_column_q + sram_addr_t'(c_tile_words);
        n_left_q   <= n_left_q - dim_t'(tile_columns(n_left_q));
        columns_q  <= tile_columns(n_left_q);
      end
    end
  end

  if (Lanes == Edge) begin : gen_one_beat
    assign column    = '0;
    assign beat_last = 1'b1;
  end else begin : gen_beats
    logic [$clog2(Edge/Lanes)-1:0] beat_q;

    assign column    = ColumnW'(32'(beat_q) * Lanes);
    assign beat_last = columns_left <= 6'(Lanes);

    always_ff @(posedge clk_i) begin
      if (!rst_ni) beat_q <= '0;
      else if (beat_valid_o && beat_ready_i) beat_q <= beat_last ? '0 : beat_q + 1'b1;
    end
  end

  // ---------------------------------------------------------------------------------------------
  // The beat
  // ---------------------------------------------------------------------------------------------
  always_comb begin
    beat_ctrl_o = '{
        addr: c_row_q + c_column_q + (plane_q ? op_i.m * op_i.c_pitch : 16'd0),
        words: c_words,
        columns: beat_last ? columns_left : 6'(Lanes),
        last: beat_last,
        done: op_ready_o,
        wide: both_planes,
        requant: op_i.requant,
        relu: op_i.relu,
        accumulate: op_i.accumulate,
        activation: op_i.activation,
        out: op_i.out,
        op: op_i.op,
        argmax: op_i.argmax,
        mul: op_i.mult,
        mul_shift: op_i.shift
    };
    of_row = common;
    if (op_i.q == GemmQRow)
      of_row = '{shift: 6'd16 + {1'b0, sum_factor.msb}, mult: sum_factor.mult};
    for (int unsigned l = 0; l < Lanes; l++) begin
      automatic factor_t factor = (op_i.q == GemmQChannel) ? factors[l].factor : of_row;
      automatic logic [ColumnW-1:0] c = column | ColumnW'(l);
      beat_columns_o[l] = '{
          high: both_planes ? high_q[c] : sums_i[c],
          low: sums_i[c],
          bias: op_i.bias ? factors[l].bias : '0,
          mult: factor.mult,
          shift: factor.shift
      };
    end
  end

endmodule
