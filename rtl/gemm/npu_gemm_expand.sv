// SPDX-License-Identifier: Apache-2.0
//
// Expands lines of the stream in narrow formats to lines of 64 int8 weights. It stands between the
// FIFO of the stream and the array, combinational from one to the other; with fewer lanes than that
// a line takes turns, and the weights come a cycle later. What formats need besides, the side bytes
// of groups and the planes of upper bits or positions, is kept here in registers. It also counts how
// far they reach, so that the loader knows what comes next in the share.

module npu_gemm_expand
  import npu_pkg::*;
  import npu_isa_pkg::*;
  import npu_gemm_pkg::*;
#(
  parameter int unsigned Edge = 16,  // tile edge in elements, 16 or 32
  // Weights that are expanded in a cycle, strips of a tile: a power of two from Edge to 64
  parameter int unsigned Lanes = LineBytes,
  localparam int unsigned Turns = LineBytes / Lanes,  // cycles for a line of weights
  localparam int unsigned TurnW = (Turns > 1) ? $clog2(Turns) : 1,  // bits of a turn
  localparam int unsigned TileLines = Edge * Edge / LineBytes,  // lines of weights in a tile
  localparam int unsigned LineIdxW = $clog2(TileLines)  // bits of a line's index
) (
  input logic clk_i,  // clock
  input logic rst_ni, // reset, active low

  input weight_format_t next_i,    // format of the operation; a level one cycle ahead of format_i
  input weight_format_t format_i,  // the same, from the first line on
  input weight_group_e  group_i,   // rows of K in a group; the same

  // What becomes of data_i in this cycle; at most one of these is high
  input logic                 side_i,    // pulse: it is side bytes of groups
  input logic                 plane_i,   // pulse: it is a line of the plane
  input logic                 tile_i,    // pulse: it completes a tile
  input logic                 column_i,  // with tile_i: the last one of its column of tiles
  input logic  [LineIdxW-1:0] line_i,    // which line of the plane, or of the tile's weights
  input logic  [   TurnW-1:0] turn_i,    // which part of the line of weights, 0 if Turns is 1
  input line_t                data_i,    // a line of the share

  // What stands in front of the next tile of the column, with tile_i
  output logic side_due_o,  // side bytes
  output logic plane_due_o, // a plane

  // Line line_i of the tile, for data_i that belongs to it; where Turns is more than 1, part turn_i of
  // it, over and over, a cycle later
  output line_t weights_o
);

  if ((Lanes & (Lanes - 1)) != 0 || Lanes < Edge || Lanes > LineBytes) begin : gen_bad_lanes
    $fatal(1, "npu_gemm_expand: Lanes = %0d, must be a power of two from %0d to 64", Lanes, Edge);
  end

  localparam int unsigned PlaneBits = 2 * Edge * Edge;  // the upper two bits of a tile
  localparam int unsigned PlaneLines = PlaneBits / LineBits;
  localparam int unsigned SideRows = LineBytes / Edge;  // groups in a line
  localparam int unsigned RowW = $clog2(SideRows);
  localparam int unsigned QuadBits = 4 * Edge;  // positions of a row of quads
  localparam int unsigned PositionLines = 8 * QuadBits / LineBits;

  // ---------------------------------------------------------------------------------------------
  // How far the registers reach, in tiles of the column
  // ---------------------------------------------------------------------------------------------
  logic [2:0] tile_q;  // tiles since the column began, modulo the longest group
  logic [2:0] group_tiles;  // tiles of a group, minus 1
  logic [RowW-1:0] row_q;  // group in the line of side bytes
  logic group_ends;

  always_comb begin
    unique case (group_i)
      WeightGroupG128: group_tiles = 3'(128 / Edge - 1);
      WeightGroupG64:  group_tiles = 3'(64 / Edge - 1);
      WeightGroupG32:  group_tiles = 3'(32 / Edge - 1);
      default:         group_tiles = '0;
    endcase
  end

  // Positions of two tiles of 16 are a line; a tile of 32 has two lines of its own.
  assign group_ends  = (tile_q & group_tiles) == group_tiles;
  assign side_due_o  = format_i.grouped && group_ends && row_q == '1;
  assign plane_due_o = format_i.plane && (format_i.grouped || Edge != 16 || tile_q[0]);

  always_ff @(posedge clk_i) begin
    if (!rst_ni) begin
      tile_q <= '0;
      row_q  <= '0;
    end else if (tile_i) begin
      tile_q <= column_i ? '0 : tile_q + 1'b1;
      if (column_i) row_q <= '0;
      else if (group_ends) row_q <= row_q + 1'b1;
    end
  end

  // ---------------------------------------------------------------------------------------------
  // Side bytes
  // ---------------------------------------------------------------------------------------------
  typedef logic [SideRows-1:0][Edge-1:0][7:0] side_t;

  // The first row is in use at once, the others wait for their groups.
  side_t side, side_q, arrived;
  logic   [RowW-1:0] next_row;
  scale_t [Edge-1:0] scale_q;

  assign next_row = side_i ? '0 : row_q + 1'b1;
  assign arrived  = side_t'(data_i);

  always_comb begin
    side    = side_q;
    side[0] = arrived[0];
  end

  always_ff @(posedge clk_i) begin
    if (side_i) side_q <= arrived;
    if (side_i || (tile_i && group_ends) || !next_i.grouped) begin
      for (int unsigned n = 0; n < Edge; n++) scale_q[n] <= scale_of(next_i, side[next_row][n]);
    end
  end

  // ---------------------------------------------------------------------------------------------
  // Planes: upper bits, 128 for each line of weights; or positions, in the first lines of a plane
  // ---------------------------------------------------------------------------------------------
  typedef logic [TileLines-1:0][127:0] upper_t;
  typedef logic [7:0][QuadBits-1:0] positions_t;

  logic [PlaneLines-1:0][LineBits-1:0] plane_q;
  upper_t upper_rows;
  positions_t position_rows;
  logic [127:0] upper;
  logic [QuadBits-1:0] positions;
  logic [2:0] quad_row;

  assign upper_rows    = upper_t'(plane_q);
  assign upper         = upper_rows[line_i];
  assign position_rows = positions_t'(plane_q[PositionLines-1:0]);
  assign positions     = position_rows[quad_row];

  // ---------------------------------------------------------------------------------------------
  // The parts of data_i that become this line of weights
  // ---------------------------------------------------------------------------------------------
  typedef logic [3:0][127:0] quarters_t;
  typedef logic [1:0][255:0] halves_t;

  quarters_t quarters;
  halves_t halves;
  logic [127:0] crumbs;
  logic [255:0] nibbles;
  logic kept;
  logic [8*Edge-1:0] nibbles_kept;  // pairs of them, a row of quads
  logic [16*Edge-1:0] bytes_kept;  // the same
  logic [Edge-1:0][1:0][7:0] pair;

  assign quarters = quarters_t'(data_i);
  assign halves   = halves_t'(data_i);
  assign crumbs   = quarters[line_i[1:0]];
  assign nibbles  = halves[line_i[0]];
  assign kept     = format_i.gather == GatherKept;

  if (Edge == 16) begin : gen_kept
    // A line of weights is a row of quads.
    always_ff @(posedge clk_i) begin
      if (plane_i) plane_q[0] <= data_i;
    end
    assign quad_row     = {tile_q[0], line_i};
    assign nibbles_kept = crumbs;
    assign bytes_kept   = nibbles;
  end else begin : gen_kept
    // Two lines of weights are a row of quads, and take the same bytes.
    always_ff @(posedge clk_i) begin
      if (plane_i) plane_q[line_i[1:0]] <= data_i;
    end
    assign quad_row     = line_i[3:1];
    assign nibbles_kept = halves[line_i[1]];
    assign bytes_kept   = data_i;
  end

  always_comb begin
    for (int unsigned n = 0; n < Edge; n++) begin
      for (int unsigned i = 0; i < 2; i++) begin
        pair[n][i] = {4'b0, nibbles_kept[8*n+4*i+:4]};
        if (format_i.kept8) pair[n][i] = bytes_kept[16*n+8*i+:8];
      end
    end
  end

  logic [Edge-1:0] odd;  // lowest bits of factors
  always_comb begin
    for (int unsigned n = 0; n < Edge; n++) odd[n] = scale_q[n][0] && !format_i.code[2];
  end

  // ---------------------------------------------------------------------------------------------
  // Lanes
  // ---------------------------------------------------------------------------------------------
  // What this turn has of the line
  logic [  TurnW-1:0] turn;
  logic [8*Lanes-1:0] turn_bytes;
  logic [4*Lanes-1:0] turn_nibbles;
  logic [2*Lanes-1:0] turn_crumbs, turn_upper;
  logic [Lanes-1:0][7:0] weights;

  assign turn         = (Turns > 1) ? turn_i : '0;
  assign turn_bytes   = data_i[8*Lanes*32'(turn)+:8*Lanes];
  assign turn_nibbles = nibbles[4*Lanes*32'(turn)+:4*Lanes];
  assign turn_crumbs  = crumbs[2*Lanes*32'(turn)+:2*Lanes];
  assign turn_upper   = upper[2*Lanes*32'(turn)+:2*Lanes];

  for (genvar l = 0; l < int'(Lanes); l++) begin : gen_lane
    localparam int unsigned Column = l % Edge;
    logic [1:0] strip, row;  // in the line, in its quad
    logic [3:0] position;
    logic takes_first, takes_second;
    logic [7:0] whole, code;  // a byte, or a nibble with its upper bits; any element
    logic signed [7:0] v_d, v;
    logic [8:0] factor_d, factor;
    logic signed [15:0] product;

    assign strip        = 2'(32'(turn) * (Lanes / Edge)) | 2'(l / Edge);
    assign row          = (Edge == 16) ? strip : {line_i[0], strip[0]};
    assign position     = positions[4*Column+:4];
    assign takes_second = kept && position[3:2] == row;
    assign takes_first  = kept && position[1:0] == row && !takes_second;

    always_comb begin
      whole = {turn_upper[2*l+1], 2'b0, turn_upper[2*l], turn_nibbles[4*l+:4]};
      if (format_i.gather == GatherByte) whole = turn_bytes[8*l+:8];
      unique case (format_i.gather)
        GatherCrumb: code = {whole[7:4], {3{turn_crumbs[2*l+1]}}, turn_crumbs[2*l]};
        GatherKept:  code = '0;
        default:     code = whole;
      endcase
      if (takes_first) code |= pair[Column][0];
      if (takes_second) code |= pair[Column][1];
    end

    npu_gemm_lane u_lane (
      .kind_i  (format_i.code),
      .code_i  (code),
      .whole_i (whole),
      .scale_i (scale_q[Column]),
      .odd_i   (odd[Column]),
      .v_o     (v_d),
      .factor_o(factor_d)
    );

    if (Turns == 1) begin : gen_at_once
      assign {v, factor} = {v_d, factor_d};
    end else begin : gen_later
      always_ff @(posedge clk_i) {v, factor} <= {v_d, factor_d};
    end

    // Divided by 2^8, rounded half up
    assign product    = 16'($signed({1'b0, factor})) * 16'(v);
    assign weights[l] = product[15:8] + 8'(product[7]);
  end

  assign weights_o = {Turns{weights}};

`ifndef SYNTHESIS
  // Whether side bytes and plane reach as far as the tile that comes
  logic side_kept_q, plane_kept_q;
  logic [Edge-1:0] bad_scale;

  always_ff @(posedge clk_i) begin
    if (!rst_ni) begin
      side_kept_q  <= 1'b0;
      plane_kept_q <= 1'b0;
    end else begin
      if (side_i) side_kept_q <= 1'b1;
      else if (tile_i && (column_i || side_due_o)) side_kept_q <= 1'b0;
      if (plane_i) plane_kept_q <= 1'b1;
      else if (tile_i && (column_i || plane_due_o)) plane_kept_q <= 1'b0;
    end
  end

  // No factor is more than 1, no shift more than an exponent of 30 and a block's of 15.
  always_comb begin
    for (int unsigned n = 0; n < Edge; n++) begin
      bad_scale[n] = scale_q[n] > ((format_i.code inside {CodeM3, CodeM2}) ? 9'd45 : 9'd256);
    end
  end

  OnePiece_A :
  assert property (@(posedge clk_i) disable iff (!rst_ni) $onehot0({side_i, plane_i, tile_i}))
  else $error("npu_gemm_expand: a line of the share is two things at once");
  SideBeforeTile_A :
  assert property (@(posedge clk_i) disable iff (!rst_ni)
                   tile_i && format_i.grouped |-> side_kept_q)
  else $error("npu_gemm_expand: a tile is expanded without the side bytes of its group");
  SideOnce_A :
  assert property (@(posedge clk_i) disable iff (!rst_ni)
                   side_i |-> format_i.grouped && !side_kept_q)
  else $error("npu_gemm_expand: side bytes come while those before them are still needed");
  PlaneBeforeTile_A :
  assert property (@(posedge clk_i) disable iff (!rst_ni) tile_i && format_i.plane |-> plane_kept_q)
  else $error("npu_gemm_expand: a tile is expanded without its plane");
  PlaneOnce_A :
  assert property (@(posedge clk_i) disable iff (!rst_ni)
                   plane_i |-> format_i.plane && (line_i == '0) == !plane_kept_q)
  else $error("npu_gemm_expand: a plane comes while the one before it is still needed");
  WholeTiles_A :
  assert property (@(posedge clk_i) disable iff (!rst_ni)
                   tile_i && format_i.grouped |-> Edge == 16 || group_i != WeightGroupG16)
  else $error("npu_gemm_expand: a group is shorter than a tile");
  Factor_A :
  assert property (@(posedge clk_i) disable iff (!rst_ni)
                   tile_i && format_i.grouped |-> !(|bad_scale))
  else $error("npu_gemm_expand: weights are multiplied by more than 1");
`endif

endmodule
