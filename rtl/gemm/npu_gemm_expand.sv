// SPDX-License-Identifier: Apache-2.0
//
// Expands lines of the stream in narrow formats to lines of 64 int8 weights. It stands between the
// FIFO of the stream and the array, combinational from one to the other; what formats need besides,
// the side bytes of groups and the planes of upper bits or positions, is kept here in registers. It
// also counts how far they reach, so that the loader knows what comes next in the share.

module npu_gemm_expand
  import npu_pkg::*;
  import npu_isa_pkg::*;
  import npu_gemm_pkg::*;
#(
  parameter int unsigned Edge = 16,  // tile edge in elements, 16 or 32
  localparam int unsigned TileLines = Edge * Edge / LineBytes,  // lines of weights in a tile
  localparam int unsigned LineIdxW = $clog2(TileLines)  // bits of a line's index
) (
  input logic clk_i,  // clock
  input logic rst_ni, // reset, active low

  input weight_format_t format_i,  // of the operation; a level from before its first line on
  input weight_group_e  group_i,   // rows of K in a group; the same

  // What becomes of data_i in this cycle; at most one of these is high
  input logic                 side_i,    // pulse: it is side bytes of groups
  input logic                 plane_i,   // pulse: it is a line of the plane
  input logic                 tile_i,    // pulse: it completes a tile
  input logic                 column_i,  // with tile_i: the last one of its column of tiles
  input logic  [LineIdxW-1:0] line_i,    // which line of the plane, or of the tile's weights
  input line_t                data_i,    // a line of the share

  // What stands in front of the next tile of the column, with tile_i
  output logic side_due_o,  // side bytes
  output logic plane_due_o, // a plane

  output line_t weights_o  // line line_i of the tile, for data_i that belongs to it
);

  localparam int unsigned PlaneBits = 2 * Edge * Edge;  // the upper two bits of a tile
  localparam int unsigned PlaneLines = PlaneBits / LineBits;
  localparam int unsigned SideRows = LineBytes / Edge;  // groups in a line
  localparam int unsigned RowW = $clog2(SideRows);
  localparam int unsigned QuadBits = 4 * Edge;  // positions of a row of quads

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

  always_ff @(posedge clk_i or negedge rst_ni) begin
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

  side_t side_q;
  scale_t [Edge-1:0] scale;

  always_ff @(posedge clk_i) begin
    if (side_i) side_q <= side_t'(data_i);
  end

  always_comb begin
    for (int unsigned n = 0; n < Edge; n++) scale[n] = scale_of(format_i, side_q[row_q][n]);
  end

  // ---------------------------------------------------------------------------------------------
  // Planes: upper bits in chunks of 128, one for each line of weights; or positions
  // ---------------------------------------------------------------------------------------------
  logic [PlaneLines-1:0][LineBits-1:0] plane_q;
  typedef logic [PlaneBits/128-1:0][127:0] chunks_t;

  chunks_t chunks;
  logic [$clog2(PlaneBits/128)-1:0] chunk_index;
  logic [127:0] chunk;
  logic [QuadBits-1:0] positions;
  logic kept;

  assign kept   = format_i.gather == GatherKept;
  assign chunks = chunks_t'(plane_q);
  assign chunk  = chunks[chunk_index];

  if (Edge == 16) begin : gen_plane
    always_ff @(posedge clk_i) begin
      if (plane_i) plane_q[0] <= data_i;
    end
    // A line of weights is a row of quads.
    assign chunk_index = kept ? {tile_q[0], line_i[1]} : line_i;
    assign positions   = chunk[QuadBits*line_i[0]+:QuadBits];
  end else begin : gen_plane
    always_ff @(posedge clk_i) begin
      if (plane_i) plane_q[line_i[1:0]] <= data_i;
    end
    // Two lines of weights are a row of quads.
    assign chunk_index = kept ? line_i >> 1 : line_i;
    assign positions   = chunk;
  end

  // ---------------------------------------------------------------------------------------------
  // The part of data_i that becomes this line of weights
  // ---------------------------------------------------------------------------------------------
  logic [1:0] quarter;  // of data_i, where the part begins
  typedef logic [3:0][127:0] quarters_t;

  quarters_t quarters;
  logic [255:0] part;
  logic [16*Edge-1:0] bytes_kept;  // pairs of them, a row of quads

  assign quarters = quarters_t'(data_i);
  assign part     = {quarters[{quarter[1], 1'b1}], quarters[quarter]};

  if (Edge == 16) begin : gen_part
    assign quarter    = format_i.parts[1] ? line_i[1:0] : {line_i[0], 1'b0};
    assign bytes_kept = part;
  end else begin : gen_part
    // Both lines of a row of quads take the same bytes.
    always_comb begin
      quarter = {line_i[0], 1'b0};
      if (format_i.parts[1]) quarter = kept ? {line_i[1], 1'b0} : line_i[1:0];
    end
    assign bytes_kept = data_i;
  end

  // ---------------------------------------------------------------------------------------------
  // Lanes
  // ---------------------------------------------------------------------------------------------
  for (genvar l = 0; l < int'(LineBytes); l++) begin : gen_lane
    localparam int unsigned Column = l % Edge;
    logic [1:0] row, upper;  // row in its quad; upper bits
    logic [3:0] position;
    logic [7:0] first, second, code;

    assign row      = (Edge == 16) ? 2'(l / Edge) : {line_i[0], 1'(l / Edge)};
    assign upper    = chunk[2*l+:2];
    assign position = positions[4*Column+:4];
    assign first    = format_i.kept8 ? bytes_kept[16*Column+:8] : {4'b0, part[8*Column+:4]};
    assign second   = format_i.kept8 ? bytes_kept[16*Column+8+:8] : {4'b0, part[8*Column+4+:4]};

    always_comb begin
      unique case (format_i.gather)
        GatherByte:   code = data_i[8*l+:8];
        GatherNibble: code = {upper[1], 2'b0, upper[0], part[4*l+:4]};
        GatherCrumb:  code = {6'b0, part[2*l+:2]} | {4'b0, {2{part[2*l+1]}}, 2'b0};
        default: begin
          code = '0;
          if (position[1:0] == row) code = first;
          if (position[3:2] == row) code = second;
        end
      endcase
    end

    npu_gemm_lane u_lane (
      .kind_i  (format_i.code),
      .scaled_i(format_i.grouped),
      .code_i  (code),
      .scale_i (scale[Column]),
      .weight_o(weights_o[8*l+:8])
    );
  end

`ifndef SYNTHESIS
  // Whether side bytes and plane reach as far as the tile that comes
  logic side_kept_q, plane_kept_q;
  logic [Edge-1:0] bad_scale;

  always_ff @(posedge clk_i or negedge rst_ni) begin
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

  // Together with a shift a factor would be more than 1.
  always_comb begin
    for (int unsigned n = 0; n < Edge; n++) begin
      bad_scale[n] = scale[n].factor > ((scale[n].shift == NoShift) ? 9'd256 : 9'd0);
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
