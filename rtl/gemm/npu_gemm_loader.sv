// SPDX-License-Identifier: Apache-2.0
//
// Loads the weights of a GEMM into the array, tile after tile, alternating between the two weight
// sets, from the parameter stream (a line per cycle) or from SRAM (32 bytes per cycle). It is the
// one place where a GEMM's share of the stream is taken apart: table, requantisation parameters and
// weights lie in it in the order in which they are needed, and the first two go to post-processing.
// Weights in narrow formats pass through npu_gemm_expand, which also keeps their side bytes and planes.
// Where it has fewer lanes than a line has weights, a line takes turns; int8 passes by.

module npu_gemm_loader
  import npu_pkg::*;
  import npu_sram_pkg::*;
  import npu_operation_pkg::*;
  import npu_stream_pkg::*;
  import npu_isa_pkg::*;
  import npu_gemm_pkg::*;
#(
  parameter int unsigned Edge = 16,  // tile edge in elements, 16 or 32
  parameter bit NarrowFormats = 1'b1,  // with formats of the stream other than int8
  // Narrow weights that are expanded in a cycle, a power of two from Edge to 64
  parameter int unsigned Lanes = LineBytes,
  localparam int unsigned StripsPerLine = LineBytes / Edge,  // strips in a line: 4 or 2
  localparam int unsigned TileLines = Edge / StripsPerLine,  // lines of a tile: 4 or 16
  localparam int unsigned LineIdxW = $clog2(TileLines)  // bits of a line's index
) (
  input logic clk_i,  // clock
  input logic rst_ni, // reset, active low

  input  logic            op_valid_i,  // stays until op_ready_o
  output logic            op_ready_o,  // high as its last weights go to the array
  input  gemm_operation_t op_i,        // stable while op_valid_i

  input  share_line_t share_i,  // lines of the share
  output share_take_t share_o,  // not while parameters find no room
  output logic        wants_o,  // a line has to be there now: a level, does not depend on share_i

  // Operand B, one port for each word of a pair
  output sram_rd_req_t rd_req_o[2],  // stays, address stable, until rd_rsp_i.ready
  input  sram_rd_rsp_t rd_rsp_i[2],  // ready may depend on the request; words in order

  // Parameters for post-processing
  output logic  param_valid_o,  // follows share_i.valid; stays until param_ready_i
  input  logic  param_ready_i,  // does not depend on param_valid_o
  output line_t param_o,        // a line of table or parameters, in order of use

  // Weights for the array
  output weights_t weights_o,      // strips to load
  output logic     tile_loaded_o,  // pulse, with the last weights of a tile
  input  logic     tile_used_i     // pulse: the oldest tile is no longer needed
);

  localparam int unsigned TableLines = 4;
  localparam int unsigned ChannelLines = Edge * 8 / LineBytes;  // 8 bytes per output channel
  localparam int unsigned StripWords = Edge / 16;
  localparam int unsigned Turns = NarrowFormats ? LineBytes / Lanes : 1;  // of a narrow line
  localparam int unsigned TurnW = (Turns > 1) ? $clog2(Turns) : 1;

  typedef enum logic [2:0] {
    StIdle,
    StTable,
    StTensor,
    StChannel,
    StSide,  // side bytes of groups
    StPlane,  // upper bits of a tile, or the positions of its quads
    StTile
  } state_e;

  state_e state_q, after_params, first_state, column_state, next_tile;
  logic [LineIdxW:0] line_q;  // line of the piece
  logic half_q;  // SRAM: which half of the line
  dim_t k_left_q, n_left_q;
  logic [1:0] free_q;  // weight sets that the array no longer needs
  logic set_q;

  logic from_stream, channel;
  assign from_stream  = op_i.b_form == GemmBStream;
  assign channel      = op_i.requant && op_i.q == GemmQChannel;
  assign after_params = channel ? StChannel : column_state;

  // The format as it is from the cycle on in which the first piece begins
  weight_format_t format, format_q;
  logic side_due, plane_due;
  assign format = NarrowFormats ? weight_format(op_i.format) : weight_format(WeightFormatInt8);

  always_ff @(posedge clk_i) format_q <= format;

  always_comb begin
    column_state = StTile;
    if (format.grouped) column_state = StSide;
    else if (format.plane) column_state = StPlane;
    next_tile = StTile;
    if (side_due) next_tile = StSide;
    else if (plane_due) next_tile = StPlane;
  end

  always_comb begin
    if (op_i.activation) first_state = StTable;
    else if (op_i.requant && op_i.q == GemmQTensor) first_state = StTensor;
    else first_state = after_params;
  end

  // ---------------------------------------------------------------------------------------------
  // Operand B from SRAM
  // ---------------------------------------------------------------------------------------------
  logic pair_valid, pair_ready;
  word_t pair[2];

  npu_gemm_operand_b #(
    .Edge(Edge)
  ) u_operand_b (
    .clk_i,
    .rst_ni,
    .op_valid_i  (op_valid_i && !from_stream && state_q != StIdle),
    .op_i,
    .pair_valid_o(pair_valid),
    .pair_ready_i(pair_ready),
    .pair_o      (pair),
    .rd_req_o,
    .rd_rsp_i
  );

  // ---------------------------------------------------------------------------------------------
  // Pieces in order
  // ---------------------------------------------------------------------------------------------
  logic set_ok, line_go, piece_last, param_state, side_state, k_last, n_last, op_last, part_last;
  logic turn_last;  // the line of weights has no further turn
  logic tile_last;  // the last weights of a tile are taken
  assign set_ok      = free_q != '0;
  assign param_state = state_q inside {StTable, StTensor, StChannel};
  assign side_state  = state_q inside {StSide, StPlane};
  // A line of the stream is one, two or four lines of weights.
  assign part_last   = (line_q[1:0] & format_q.parts) == format_q.parts;
  assign k_last      = k_left_q <= dim_t'(Edge);
  assign n_last      = n_left_q <= dim_t'(Edge);

  always_comb begin
    unique case (state_q)
      StTable:   piece_last = line_q == (LineIdxW + 1)'(TableLines - 1);
      StTensor:  piece_last = 1'b1;
      StChannel: piece_last = line_q == (LineIdxW + 1)'(ChannelLines - 1);
      StSide:    piece_last = 1'b1;
      StPlane:   piece_last = line_q == (LineIdxW + 1)'(plane_lines(format_q, Edge) - 1);
      StTile:    piece_last = line_q == (LineIdxW + 1)'(TileLines - 1) && (from_stream || half_q);
      default:   piece_last = 1'b0;
    endcase
  end

  assign param_valid_o = param_state && share_i.valid;
  assign param_o       = share_i.data;

  always_comb begin
    wants_o    = side_state;
    pair_ready = 1'b0;
    line_go    = side_state && share_i.valid;
    if (param_state) begin
      wants_o = param_ready_i;
      line_go = share_i.valid && param_ready_i;
    end else if (state_q == StTile) begin
      wants_o    = from_stream && set_ok;
      pair_ready = !from_stream && set_ok;
      line_go    = set_ok && (from_stream ? share_i.valid && turn_last : pair_valid);
    end
    share_o.ready = wants_o && (state_q != StTile || (part_last && turn_last));
  end

  assign op_last    = state_q == StTile && k_last && n_last && piece_last;
  assign op_ready_o = line_go && op_last;
  assign tile_last  = line_go && state_q == StTile && piece_last;

  // The share ends with the last piece that comes from the stream.
  always_comb begin
    share_o.last = piece_last;
    if (from_stream) share_o.last = op_last;
    else if (channel) share_o.last = piece_last && state_q == StChannel && n_last;
    else if (op_i.requant && op_i.q == GemmQTensor) share_o.last = state_q == StTensor;
  end

  always_ff @(posedge clk_i) begin
    if (!rst_ni) begin
      state_q  <= StIdle;
      line_q   <= '0;
      half_q   <= 1'b0;
      k_left_q <= '0;
      n_left_q <= '0;
      free_q   <= 2'd2;
      set_q    <= 1'b0;
    end else begin
      free_q <= free_q + {1'b0, tile_used_i} - {1'b0, tile_last};
      if (tile_last) set_q <= !set_q;

      if (state_q == StIdle) begin
        line_q <= '0;
        half_q <= 1'b0;
        if (op_valid_i) begin
          state_q  <= first_state;
          k_left_q <= op_i.k;
          n_left_q <= op_i.n;
        end
      end else if (line_go) begin
        if (state_q == StTile && !from_stream) half_q <= !half_q;
        if (state_q != StTile || from_stream || half_q) line_q <= line_q + 1'b1;
        if (piece_last) begin
          line_q <= '0;
          half_q <= 1'b0;
          unique case (state_q)
            StTable:   state_q <= (op_i.requant && op_i.q == GemmQTensor) ? StTensor : after_params;
            StTensor:  state_q <= after_params;
            StChannel: state_q <= column_state;
            StSide:    state_q <= format_q.plane ? StPlane : StTile;
            StPlane:   state_q <= StTile;
            StTile: begin
              state_q  <= next_tile;
              k_left_q <= k_left_q - dim_t'(Edge);
              if (k_last) begin
                k_left_q <= op_i.k;
                n_left_q <= n_left_q - dim_t'(Edge);
                state_q  <= n_last ? StIdle : after_params;
              end
            end
            default:   state_q <= StIdle;
          endcase
        end
      end
    end
  end

  // ---------------------------------------------------------------------------------------------
  // Weights
  // ---------------------------------------------------------------------------------------------
  line_t expanded;
  logic [TurnW-1:0] turn;
  weights_t weights;  // that go at once

  if (NarrowFormats) begin : gen_expand
    npu_gemm_expand #(
      .Edge (Edge),
      .Lanes(Lanes)
    ) u_expand (
      .clk_i,
      .rst_ni,
      .next_i     (format),
      .format_i   (format_q),
      .group_i    (op_i.group),
      .side_i     (share_i.valid && state_q == StSide),
      .plane_i    (share_i.valid && state_q == StPlane),
      .tile_i     (tile_last),
      .column_i   (k_last),
      .line_i     (line_q[LineIdxW-1:0]),
      .turn_i     (turn),
      .data_i     (share_i.data),
      .side_due_o (side_due),
      .plane_due_o(plane_due),
      .weights_o  (expanded)
    );
  end else begin : gen_int8
    assign side_due  = 1'b0;
    assign plane_due = 1'b0;
    assign expanded  = share_i.data;
  end

  always_comb begin
    weights = '{
        strip_valid: '0,
        set: set_q,
        by_column: op_i.transpose_b,
        index: 4'(line_q[LineIdxW-1:0]),
        data: (Turns == 1) ? expanded : share_i.data
    };
    if (state_q == StTile && line_go) begin
      if (from_stream) begin
        weights.strip_valid = 4'((1 << StripsPerLine) - 1);
      end else begin
        // Two words are half a line.
        weights.data = {pair[1], pair[0], pair[1], pair[0]};
        for (int unsigned l = 0; l < StripsPerLine; l++) begin
          weights.strip_valid[l] = half_q == 1'(l * StripWords / 2);
        end
      end
    end
  end

  if (Turns == 1) begin : gen_lines
    assign turn          = '0;
    assign turn_last     = 1'b1;
    assign weights_o     = weights;
    assign tile_loaded_o = tile_last;
  end else begin : gen_turns
    // Narrow weights go a cycle later, with what then belongs to them. The state behind an operation
    // has no weights, so the next one's do not catch up.
    localparam int unsigned TurnStrips = Lanes / Edge;
    logic [TurnW-1:0] turn_q;
    logic narrow_q, turn_go, late_q, late_last_q, late_set_q;
    logic [3:0] late_strips_q, late_index_q;

    assign turn      = turn_q;
    assign turn_go   = narrow_q && state_q == StTile && set_ok && share_i.valid;
    assign turn_last = !narrow_q || turn_q == '1;

    always_ff @(posedge clk_i) begin
      if (!rst_ni) begin
        narrow_q <= 1'b0;
        turn_q   <= '0;
        late_q   <= 1'b0;
      end else begin
        narrow_q <= op_i.format != WeightFormatInt8;
        if (turn_go) turn_q <= turn_q + 1'b1;
        late_q <= turn_go;
      end
    end

    always_ff @(posedge clk_i) begin
      late_last_q   <= tile_last;
      late_set_q    <= weights.set;
      late_index_q  <= weights.index;
      late_strips_q <= 4'((1 << TurnStrips) - 1) << (TurnStrips * 32'(turn_q));
    end

    always_comb begin
      weights_o = weights;
      if (narrow_q) weights_o.strip_valid = '0;
      if (late_q) begin
        weights_o = '{
            strip_valid: late_strips_q,
            set: late_set_q,
            by_column: 1'b0,
            index: late_index_q,
            data: expanded
        };
      end
    end

    assign tile_loaded_o = late_q ? late_last_q : tile_last && !narrow_q;

`ifndef SYNTHESIS
    Alone_A :
    assert property (@(posedge clk_i) disable iff (!rst_ni)
                     late_q |-> narrow_q || weights.strip_valid == '0)
    else $error("npu_gemm_loader: weights go while narrow ones do");
`endif
  end

`ifndef SYNTHESIS
  KnownFormat_A :
  assert property (@(posedge clk_i) disable iff (!rst_ni)
                   op_valid_i && !(NarrowFormats && from_stream)
                   |-> op_i.format == WeightFormatInt8)
  else $error("npu_gemm_loader: weights in a format that is not for here");
`endif

endmodule
