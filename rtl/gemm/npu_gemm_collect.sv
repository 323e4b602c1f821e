// SPDX-License-Identifier: Apache-2.0
//
// Brings together what one output row of a column tile needs, each part from its own queue: the row
// of sums (two of them for a 16-bit operand A), the requantisation parameters, the words of the
// second operand, and where the result goes. The row leaves in beats of as many columns as
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
  output logic  param_ready_o,  // does not depend on param_valid_i
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
  output logic beat_valid_o,  // stays until beat_ready_i
  input logic beat_ready_i,  // may depend on beat_valid_o
  output beat_ctrl_t beat_ctrl_o,  // place and work; done follows beat_ready_i
  output post_column_t [Lanes-1:0] beat_columns_o,  // sums and what belongs to each
  output post_second_t [Lanes-1:0] beat_second_o  // second operand, if there is one
);

  localparam int unsigned ChannelLines = Edge * 8 / LineBytes;
  localparam int unsigned ColumnW = $clog2(Edge);

  if ((Lanes & (Lanes - 1)) != 0 || Lanes < 1 || Lanes > Edge) begin : gen_bad_lanes
    $fatal(1, "npu_gemm_collect: Lanes = %0d, must be a power of two up to %0d", Lanes, Edge);
  end

  typedef enum logic [2:0] {
    StIdle,
    StTable,
    StTensor,
    StChannel,
    StRows
  } state_e;

  state_e state_q, first_state, column_state;
  logic [2:0] line_q;
  dim_t n_left_q, m_q;  // columns behind the column tile; rows in front of this one
  sram_addr_t c_row_q, c_column_q;
  logic wide, raw_planes, both_planes, use_sums;

  // Columns of a column tile, where so many are left
  function automatic logic [5:0] tile_columns(dim_t n_left);
    return (n_left >= dim_t'(Edge)) ? 6'(Edge) : 6'(n_left);
  endfunction

  assign wide = op_i.a_type inside {GemmAInt16, GemmAUint16};
  // Unrequantised sums of a 16-bit operand A are two planes of rows; otherwise they are combined.
  assign raw_planes  = wide && !op_i.requant;
  assign both_planes = wide && op_i.requant;
  assign use_sums    = op_i.requant && op_i.q == GemmQRow;

  assign column_state = (op_i.requant && op_i.q == GemmQChannel) ? StChannel : StRows;
  always_comb begin
    if (op_i.activation) first_state = StTable;
    else if (op_i.requant && op_i.q == GemmQTensor) first_state = StTensor;
    else first_state = column_state;
  end

  // ---------------------------------------------------------------------------------------------
  // Parameters
  // ---------------------------------------------------------------------------------------------
  logic param_take, table_ready;
  logic [1:0] word_q;  // of a line of the table
  assign param_ready_o = (table_ready && word_q == 2'd3) || state_q == StTensor ||
                         state_q == StChannel;
  assign param_take = param_valid_i && param_ready_o;
  assign table_ready = state_q == StTable && !pipe_busy_i;
  assign table_write_o = param_valid_i && table_ready;
  assign table_word_o = {line_q[1:0], word_q};
  assign table_data_o = param_i[WordBits*32'(word_q)+:WordBits];

  always_ff @(posedge clk_i) begin
    if (!rst_ni) word_q <= '0;
    else if (table_write_o) word_q <= word_q + 1'b1;
  end

  logic [Edge-1:0][31:0] bias_q;
  logic [Edge-1:0][15:0] mult_q;
  logic [Edge-1:0][ 5:0] shift_q;

  always_ff @(posedge clk_i) begin
    if (param_take && state_q == StChannel) begin
      for (int unsigned c = 0; c < LineBytes / 8; c++) begin
        bias_q[(LineBytes/8)*32'(line_q)+c]  <= param_i[64*c+:32];
        mult_q[(LineBytes/8)*32'(line_q)+c]  <= param_i[64*c+32+:16];
        shift_q[(LineBytes/8)*32'(line_q)+c] <= param_i[64*c+48+:6];
      end
    end else if (param_take && state_q == StTensor) begin
      for (int unsigned c = 0; c < Edge; c++) begin
        mult_q[c]  <= param_i[15:0];
        shift_q[c] <= param_i[21:16];
      end
    end else if (state_q == StIdle) begin
      for (int unsigned c = 0; c < Edge; c++) begin
        mult_q[c]  <= op_i.mult;
        shift_q[c] <= op_i.shift;
      end
    end
  end

  // ---------------------------------------------------------------------------------------------
  // Words from SRAM: the softmax sum and the second operand
  // ---------------------------------------------------------------------------------------------
  logic [5:0] columns_q;  // of the column tile
  logic words_ready, launch, tile_last;
  row_factor_t factor;
  logic [ColumnW-1:0] column;  // of the row, the first of the beat

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
    .enable_i (state_q == StRows),
    .more_i   (!tile_last),
    .ready_o  (words_ready),
    .launch_i (launch),
    .factor_o (factor),
    .column_i (column),
    .second_o (beat_second_o)
  );

  // ---------------------------------------------------------------------------------------------
  // Sums
  // ---------------------------------------------------------------------------------------------
  SumsT high_q;
  logic have_high_q, sums_complete, plane_q, row_last, column_last;
  logic [5:0] columns_left;
  logic beat_last;

  assign sums_complete = sums_valid_i && (have_high_q || !both_planes);
  assign beat_valid_o  = state_q == StRows && sums_complete && words_ready;
  assign columns_left  = columns_q - 6'(column);
  assign launch        = beat_valid_o && beat_ready_i && beat_last;
  assign sums_ready_o  = state_q == StRows && ((both_planes && !have_high_q) || launch);

  assign row_last      = !raw_planes || plane_q;
  assign tile_last     = row_last && m_q + 1'b1 == op_i.m;
  assign column_last   = launch && tile_last;
  assign op_ready_o    = column_last && n_left_q == '0;

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
      state_q     <= StIdle;
      line_q      <= '0;
      n_left_q    <= '0;
      columns_q   <= '0;
      m_q         <= '0;
      c_row_q     <= '0;
      c_column_q  <= '0;
      high_q      <= '0;
      have_high_q <= 1'b0;
      plane_q     <= 1'b0;
    end else begin
      unique case (state_q)
        StIdle: begin
          line_q     <= '0;
          n_left_q   <= op_i.n - dim_t'(tile_columns(op_i.n));
          columns_q  <= tile_columns(op_i.n);
          m_q        <= '0;
          c_row_q    <= op_i.c;
          c_column_q <= '0;
          if (op_valid_i) state_q <= first_state;
        end
        StTable, StTensor, StChannel:
        if (param_take) begin
          line_q <= line_q + 3'd1;
          if (state_q == StTable && line_q == 3'd3) begin
            line_q  <= '0;
            state_q <= (op_i.requant && op_i.q == GemmQTensor) ? StTensor : column_state;
          end else if (state_q == StTensor || (state_q == StChannel &&
                                               line_q == 3'(ChannelLines - 1))) begin
            line_q  <= '0;
            state_q <= (state_q == StTensor) ? column_state : StRows;
          end
        end
        StRows: begin
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
            state_q    <= op_ready_o ? StIdle : column_state;
          end
        end
        default: state_q <= StIdle;
      endcase
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
    for (int unsigned l = 0; l < Lanes; l++) begin
      automatic logic [ColumnW-1:0] c = column | ColumnW'(l);
      beat_columns_o[l] = '{
          high: both_planes ? high_q[c] : sums_i[c],
          low: sums_i[c],
          bias: op_i.bias ? bias_q[c] : '0,
          mult: use_sums ? factor.mult : mult_q[c],
          shift: use_sums ? 6'd16 + {1'b0, factor.msb} : shift_q[c]
      };
    end
  end

endmodule
