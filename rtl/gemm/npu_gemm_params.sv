// SPDX-License-Identifier: Apache-2.0
//
// What rows of sums need besides themselves and words from SRAM, and come from the share of the
// stream: the activation table, which goes on to post-processing, and the parameters of the tensor or
// of the channels of a column tile. Says when rows may go. Lines wait in a queue. With many lanes
// those of a column tile leave it for registers; up to four lanes look parameters up in the queue,
// which drops them with the last row of the tile.

module npu_gemm_params
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

  input logic            op_valid_i,  // stays until its last row goes
  input gemm_operation_t op_i,        // stable while op_valid_i

  input  logic  param_valid_i,  // stays until param_ready_o
  output logic  param_ready_o,  // room for one more; depends on no input
  input  line_t param_i,        // a line of table or parameters, in order of use

  // Activation table, written while no row is under way
  input logic pipe_busy_i,  // a row is in post-processing; from registers
  output logic table_write_o,  // a word of the table; no refusal
  output logic [3:0] table_word_o,  // which of its 16 words, in order; with table_write_o
  output word_t table_data_o,  // 16 entries, the first in the lowest byte; with table_write_o

  output logic idle_o,  // no operation, or the first cycle of one
  output logic rows_o,  // rows of a column tile may go: its parameters are here
  input logic launch_i,  // pulse: a row of the column tile goes; only with rows_o
  input logic tile_last_i,  // it is the last row of the column tile; with launch_i
  input logic op_last_i,  // the column tile is the last one of the operation; with launch_i
  input logic [ColumnW-1:0] column_i,  // of the tile, the first of the beat; 0 in front of a row
  // Of each channel of the beat, where channels have their own; with rows_o
  output column_factor_t [Lanes-1:0] factors_o,
  output factor_t common_o  // else of all, from prefix or tensor, one for raw sums; with rows_o
);

  localparam int unsigned QueueLines = 8;
  localparam int unsigned Channels = LineBytes / 8;  // in a line
  localparam int unsigned TileLines = Edge / Channels;  // of the channels of a column tile
  localparam int unsigned PartW = $clog2(TileLines);
  localparam logic [ColumnW-1:0] FirstBits = ColumnW'(Edge - Lanes);  // that column_i may have

  typedef enum logic [2:0] {
    StIdle,
    StTable,
    StTensor,
    StChannel,
    StRows
  } state_e;

  state_e state_q, first_state, column_state;
  logic channel, take, table_ready;
  logic [1:0] line_q, word_q;  // of the table, of a line of it
  logic line_valid, line_ready;
  logic  column_last;  // the last row of a column tile goes
  line_t line;  // the oldest one
  logic  channels_here;  // in StChannel: the column tile's are all here

  assign column_last = launch_i && tile_last_i;

  assign idle_o = state_q == StIdle;
  assign rows_o = state_q == StRows;

  assign channel = op_i.requant && op_i.q == GemmQChannel;
  assign column_state = channel ? StChannel : StRows;
  always_comb begin
    if (op_i.activation) first_state = StTable;
    else if (op_i.requant && op_i.q == GemmQTensor) first_state = StTensor;
    else first_state = column_state;
  end

  assign table_ready = state_q == StTable && !pipe_busy_i;
  assign line_ready = (table_ready && word_q == 2'd3) || state_q == StTensor;
  assign take = line_valid && line_ready;
  assign table_write_o = line_valid && table_ready;
  assign table_word_o = {line_q, word_q};
  assign table_data_o = line[WordBits*32'(word_q)+:WordBits];

  always_ff @(posedge clk_i) begin
    if (!rst_ni) begin
      state_q <= StIdle;
      line_q  <= '0;
      word_q  <= '0;
    end else begin
      if (table_write_o) {line_q, word_q} <= {line_q, word_q} + 4'd1;
      unique case (state_q)
        StIdle: if (op_valid_i) state_q <= first_state;
        StTable:
        if (take && line_q == 2'd3) begin
          state_q <= (op_i.requant && op_i.q == GemmQTensor) ? StTensor : column_state;
        end
        StTensor: if (take) state_q <= column_state;
        StChannel: if (channels_here) state_q <= StRows;
        StRows: if (column_last) state_q <= op_last_i ? StIdle : column_state;
        default: state_q <= StIdle;
      endcase
    end
  end

  always_ff @(posedge clk_i) begin
    // Raw sums have zero there: they are multiplied by one.
    if (state_q == StIdle) begin
      common_o <= '{shift: op_i.shift, mult: op_i.requant ? op_i.mult : 16'd1};
    end
    if (state_q == StTensor) common_o <= factor_t'(line[$bits(factor_t)-1:0]);
  end

  if (Lanes > 4) begin : gen_registers
    column_factor_t [Edge-1:0] columns_q;
    logic [PartW-1:0] part_q;  // of the tile's columns
    logic channels_take;

    assign channels_take = line_valid && state_q == StChannel;
    assign channels_here = channels_take && part_q == '1;

    npu_fifo #(
      .DataT(line_t),
      .Depth(QueueLines)
    ) u_lines (
      .clk_i,
      .rst_ni,
      .valid_i(param_valid_i),
      .ready_o(param_ready_o),
      .data_i (param_i),
      .valid_o(line_valid),
      .ready_i(line_ready || state_q == StChannel),
      .data_o (line)
    );

    always_ff @(posedge clk_i) begin
      if (!rst_ni) part_q <= '0;
      else if (channels_take) part_q <= part_q + 1'b1;
    end

    always_ff @(posedge clk_i) begin
      if (channels_take) begin
        for (int unsigned c = 0; c < Channels; c++) begin
          columns_q[Channels*32'(part_q)+c] <= column_factor_t'(line[64*c+:$bits(column_factor_t)]);
        end
      end
    end

    always_comb begin
      for (int unsigned l = 0; l < Lanes; l++) begin
        factors_o[l] = columns_q[(column_i&FirstBits)|ColumnW'(l)];
      end
    end
  end else begin : gen_queue
    localparam int unsigned PtrW = $clog2(QueueLines);
    typedef logic [Channels-1:0][63:0] records_t;

    logic [PtrW:0] count;
    logic drop_q;  // the channels of a column tile go, a cycle after its last row
    records_t records;

    npu_window_fifo #(
      .DataT(line_t),
      .Depth(QueueLines)
    ) u_lines (
      .clk_i,
      .rst_ni,
      .valid_i(param_valid_i),
      .ready_o(param_ready_o),
      .data_i (param_i),
      .valid_o(line_valid),
      .count_o(count),
      .at_i   (PtrW'(column_i / ColumnW'(Channels))),
      .data_o (line),
      .drop_i (drop_q ? (PtrW + 1)'(TileLines) : (PtrW + 1)'(take))
    );

    assign channels_here = state_q == StChannel && !drop_q && count >= (PtrW + 1)'(TileLines);
    assign records       = records_t'(line);

    always_ff @(posedge clk_i) begin
      if (!rst_ni) drop_q <= 1'b0;
      else drop_q <= channel && column_last;
    end

    always_comb begin
      for (int unsigned l = 0; l < Lanes; l++) begin
        automatic logic [ColumnW-1:0] c = (column_i & FirstBits) | ColumnW'(l);
        factors_o[l] = column_factor_t'(records[c%ColumnW'(Channels)]);
      end
    end
  end

endmodule
