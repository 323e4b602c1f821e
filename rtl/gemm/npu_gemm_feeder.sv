// SPDX-License-Identifier: Apache-2.0
//
// Feeds the rows of operand A to the array: for every column tile and every inner tile, all rows. A
// slice of bytes enters once; a slice of 16-bit values enters twice, high bytes then low bytes, as
// two rows of sums. If the array is smaller than a tile, each pass enters once for every part of
// the tile, the inner parts one after the other and for each of them the parts of the columns. A
// tile's rows start when its weights are loaded and, for the first inner tile, when an accumulator
// bank is free. Lanes past the inner dimension are zero, whatever lies there. A depthwise operation
// gives the array the channels of a row instead of lanes, and for each tile three rows more, whose
// sums nobody keeps.

module npu_gemm_feeder
  import npu_pkg::*;
  import npu_sram_pkg::*;
  import npu_operation_pkg::*;
  import npu_isa_pkg::*;
  import npu_gemm_pkg::*;
#(
  parameter int unsigned ArrayDim = 16,  // rows and columns of the array: 4, 8, 16 or 32
  parameter int unsigned Edge = 16,  // tile edge in elements, 16 or 32
  parameter int unsigned AccRows = 128,  // rows of a bank, a power of two of at least 4
  parameter type TagT = logic  // tag_t of npu_gemm_sums: where the sums of a row go
) (
  input logic clk_i,  // clock
  input logic rst_ni, // reset, active low

  input  logic            op_valid_i,  // stays until op_ready_o
  output logic            op_ready_o,  // high as its last row enters the array
  input  gemm_operation_t op_i,        // stable while op_valid_i

  output sram_rd_req_t rd_req_o,  // stays, address stable, until rd_rsp_i.ready
  input  sram_rd_rsp_t rd_rsp_i,  // ready may depend on the request; words in order

  input  logic tile_loaded_i,  // pulse: the last weights of a tile enter; two tiles at most
  output logic tile_used_o,    // pulse: the last row of a tile enters the array
  input  logic bank_free_i,    // pulse: an accumulator bank has been drained

  // To the array, and where the sums go
  output logic row_valid_o,  // a row enters the array; no refusal
  output weight_sel_t row_sel_o,  // weight set and part of the tile
  output logic signed [8:0] row_act_o[ArrayDim],  // int8, uint8, or a byte of 16 bits
  output logic channels_valid_o,  // depthwise: a row's channels enter
  output logic signed [8:0] channels_o[ArrayDim],  // int8 or uint8, of the columns of the tile
  output TagT row_tag_o,  // where its sums go

  // Multiplications on valid lanes of the row in the cycle before, 0 without one
  output logic [11:0] macs_o
);

  localparam int unsigned RowW = $clog2(AccRows);  // bits of a row in a bank
  localparam int unsigned Parts = Edge / ArrayDim;
  localparam int unsigned PartW = (Parts > 1) ? $clog2(Parts) : 1;
  localparam int unsigned SliceWords = 2 * Edge / 16;

  localparam bit Depthwise = Parts == 1;  // an array smaller than a tile has no such operation

  logic fresh_q, start, wide;  // fresh: counters must be loaded from the operation
  logic depthwise;
  assign depthwise = Depthwise && op_i.depthwise;
  assign start = op_valid_i && fresh_q;
  assign wide = op_i.a_type inside {GemmAInt16, GemmAUint16};

  logic slice_valid, slice_done;
  word_t [SliceWords-1:0] slice;

  npu_gemm_operand_a #(
    .Edge     (Edge),
    .Depthwise(Depthwise)
  ) u_operand_a (
    .clk_i,
    .rst_ni,
    .start_i      (start),
    .op_i,
    .slice_valid_o(slice_valid),
    .slice_ready_i(slice_done),
    .slice_o      (slice),
    .rd_req_o,
    .rd_rsp_i
  );

  // ---------------------------------------------------------------------------------------------
  // Order of rows: column tiles, inner tiles, rows, passes, parts of the tile
  // ---------------------------------------------------------------------------------------------
  dim_t k_left_q, n_left_q, m_q;
  logic pass_q;  // 1: low bytes
  logic [2*PartW-1:0] part_q;
  logic [PartW-1:0] part_inner, part_column;
  logic [1:0] loaded_q;  // tiles whose weights are in the array and whose rows are not yet through
  logic [1:0] banks_q;  // free accumulator banks
  logic set_q, bank_q, k_first_q, issue_q;
  logic issue, part_last, m_last, k_last, n_last, tile_end, column_start, column_end, wait_sums;
  logic row_last;  // of sums
  logic [1:0] ahead_q;  // depthwise: 1 to 3 for rows that only those before need

  assign {part_inner, part_column} = part_q;
  assign part_last = part_q == (2 * PartW)'(Parts * Parts - 1);
  assign row_last = m_q + 1'b1 == op_i.m;
  assign m_last = depthwise ? ahead_q == 2'(DepthwiseTaps - 1) : row_last;
  assign k_last = k_left_q <= dim_t'(Edge);
  assign n_last = n_left_q <= dim_t'(Edge);
  assign column_start = k_first_q && m_q == '0 && ahead_q == '0 && !pass_q && part_q == '0;
  // Sums cannot be added to in two consecutive cycles. Where an instruction has a single row of
  // sums and a tile a single part, the next tile would do so.
  assign wait_sums = Parts == 1 && op_i.m == dim_t'(1) && !wide && !k_first_q && issue_q;
  assign issue = slice_valid && loaded_q != '0 && (!column_start || banks_q != '0) && !wait_sums;

  assign slice_done = issue && part_last && (!wide || pass_q);
  assign tile_end = slice_done && m_last;
  assign column_end = tile_end && k_last;
  assign op_ready_o = column_end && n_last;
  assign tile_used_o = tile_end;

  always_ff @(posedge clk_i) begin
    if (!rst_ni) begin
      fresh_q   <= 1'b1;
      k_left_q  <= '0;
      n_left_q  <= '0;
      m_q       <= '0;
      ahead_q   <= '0;
      pass_q    <= 1'b0;
      part_q    <= '0;
      loaded_q  <= '0;
      banks_q   <= 2'd2;
      set_q     <= 1'b0;
      bank_q    <= 1'b0;
      k_first_q <= 1'b1;
      issue_q   <= 1'b0;
    end else begin
      if (start) begin
        fresh_q   <= 1'b0;
        k_left_q  <= op_i.k;
        n_left_q  <= op_i.n;
        m_q       <= '0;
        k_first_q <= 1'b1;
      end else if (op_ready_o) begin
        fresh_q <= 1'b1;
      end

      issue_q <= issue;
      if (issue) begin
        part_q <= part_last ? '0 : part_q + 1'b1;
        if (part_last) pass_q <= wide && !pass_q;
      end
      if (slice_done) begin
        if (m_last) m_q <= '0;
        else if (!depthwise || !row_last) m_q <= m_q + 1'b1;
        if (depthwise && row_last) ahead_q <= ahead_q + 1'b1;
        if (m_last) begin
          set_q     <= !set_q;
          k_first_q <= k_last;
          k_left_q  <= k_last ? op_i.k : k_left_q - dim_t'(Edge);
          if (k_last) begin
            n_left_q <= n_left_q - dim_t'(Edge);
            bank_q   <= !bank_q;
          end
        end
      end

      loaded_q <= loaded_q + {1'b0, tile_loaded_i} - {1'b0, tile_end};
      banks_q  <= banks_q + {1'b0, bank_free_i} - {1'b0, issue && column_start};
    end
  end

  assign row_valid_o = issue && ahead_q == '0;
  assign row_sel_o = '{set: set_q, inner: 2'(part_inner), column: 2'(part_column)};
  assign row_tag_o = '{
          bank: bank_q,
          index: wide ? RowW'({m_q, pass_q}) : RowW'(m_q),
          column: row_sel_o.column,
          first: k_first_q && part_inner == '0,
          last: k_last && part_last
      };

  // ---------------------------------------------------------------------------------------------
  // Lanes
  // ---------------------------------------------------------------------------------------------
  localparam int unsigned LaneW = $clog2(ArrayDim + 1);
  localparam int unsigned TileW = $clog2(Edge + 1);

  logic [TileW-1:0] k_lanes, n_lanes;  // valid ones of the tile
  logic [LaneW-1:0] inner_lanes, column_lanes;  // of the part that the row meets
  logic [LaneW-1:0] inner_q, column_q;
  assign k_lanes = k_last ? TileW'(k_left_q) : TileW'(Edge);
  assign n_lanes = n_last ? TileW'(n_left_q) : TileW'(Edge);

  logic signed [8:0] act[Edge], lane[Edge];  // elements of the slice; what the lanes take
  always_comb begin
    for (int unsigned l = 0; l < Edge; l++) begin
      automatic logic [7:0] plain = slice[l/16][8*(l%16)+:8];
      automatic logic [7:0] low = slice[l/8][16*(l%8)+:8];
      automatic logic [7:0] high = slice[l/8][16*(l%8)+8+:8];
      unique case (op_i.a_type)
        GemmAInt8:   act[l] = {plain[7], plain};
        GemmAUint8:  act[l] = {1'b0, plain};
        GemmAInt16:  act[l] = pass_q ? {1'b0, low} : {high[7], high};
        GemmAUint16: act[l] = {1'b0, pass_q ? low : high};
        default:     act[l] = '0;
      endcase
      lane[l] = (TileW'(l) >= k_lanes || depthwise) ? '0 : act[l];
    end
  end

  if (Parts == 1) begin : gen_whole
    assign row_act_o = lane;
    assign channels_o = act;
    assign channels_valid_o = issue && depthwise;
    assign inner_lanes = depthwise ? LaneW'(DepthwiseTaps) : LaneW'(k_lanes);
    assign column_lanes = LaneW'(n_lanes);
  end else begin : gen_parts
    // Valid lanes of a part of the tile
    function automatic logic [5:0] lanes_of_part(logic [5:0] lanes, logic [PartW-1:0] part);
      logic [5:0] skipped;
      skipped = 6'(ArrayDim) * 6'(part);
      if (lanes <= skipped) return '0;
      return (lanes - skipped >= 6'(ArrayDim)) ? 6'(ArrayDim) : lanes - skipped;
    endfunction

    assign channels_o = '{default: '0};
    assign channels_valid_o = 1'b0;
    for (genvar l = 0; l < int'(ArrayDim); l++) begin : gen_lane
      assign row_act_o[l] = lane[ArrayDim*32'(part_inner)+l];
    end
    assign inner_lanes  = LaneW'(lanes_of_part(6'(k_lanes), part_inner));
    assign column_lanes = LaneW'(lanes_of_part(6'(n_lanes), part_column));
  end

  always_ff @(posedge clk_i) begin
    if (!rst_ni) begin
      inner_q  <= '0;
      column_q <= '0;
    end else begin
      inner_q <= row_valid_o ? inner_lanes : '0;
      if (issue) column_q <= column_lanes;
    end
  end

  assign macs_o = 12'((2 * LaneW)'(inner_q) * (2 * LaneW)'(column_q));

`ifndef SYNTHESIS
  TwoTiles_A :
  assert property (@(posedge clk_i) disable iff (!rst_ni) loaded_q <= 2'd2)
  else $error("npu_gemm_feeder: more tiles loaded than there are weight sets");
  TwoBanks_A :
  assert property (@(posedge clk_i) disable iff (!rst_ni) banks_q <= 2'd2)
  else $error("npu_gemm_feeder: more banks given back than there are");
`endif

endmodule
