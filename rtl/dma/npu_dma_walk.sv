// SPDX-License-Identifier: Apache-2.0
//
// Walks the words of transfers in their order, a step of one or more words at a time, and tells how
// many follow without a gap. The word at hand stands in registers; beside it the next piece is found,
// be it of the next transfer, so that neither a piece nor a transfer costs a cycle of its own.

module npu_dma_walk
  import npu_pkg::*;
  import npu_dma_pkg::*;
#(
  parameter int unsigned ArrayDim = 16,  // rows and columns of the systolic array: 4, 8, 16 or 32
  parameter int unsigned AddrBits = 28,  // width of a place in words: 16 in SRAM, 28 in memory
  parameter type TagT = logic  // what goes with the words of a transfer, any type
) (
  input logic clk_i,  // clock
  input logic rst_ni, // reset, active low

  // A transfer
  input logic valid_i,  // stays until ready, all stable
  output logic ready_o,  // its last piece is at hand a cycle later; only with valid_i
  input logic [AddrBits-1:0] base_i,  // place of the first unit
  input logic [AddrBits-1:0] pitch_i,  // words from unit to unit
  input shape_t shape_i,  // which words of every unit
  input TagT tag_i,  // with all its words

  // The word at hand
  output logic                     valid_o,  // a cycle after valid_i or later; until the last step
  output logic      [AddrBits-1:0] at_o,     // its place, with valid_o
  output mem_word_t                left_o,   // words to the end of the piece, with valid_o
  output logic                     last_o,   // nothing of the transfer follows, with valid_o
  output TagT                      tag_o,    // of its transfer, with valid_o
  input  logic                     step_i,   // words_i words are done; only with valid_o
  input  logic      [         5:0] words_i,  // 1 to left_o, with step_i
  input  logic                     end_i     // they are all of left_o, with step_i
);

  localparam int unsigned Edge = tile_edge(ArrayDim);
  localparam int unsigned TileWords = Edge * Edge / WordBytes;

  typedef logic [AddrBits-1:0] addr_t;
  typedef enum logic [1:0] {
    PartFirst,
    PartBody,
    PartLast
  } part_e;

  // The next piece. Places are those of a unit without its `first_at`.
  logic begun_q;  // it is not the first one of its transfer
  addr_t unit_q, piece_q, unit, piece;
  part_e part_q, part;
  dim_t units_q;
  logic [11:0] tiles_q;
  mem_word_t piece_words;
  logic load, last_tile, unit_end, last_unit, last;

  // Parts that a unit lacks are passed over in no time.
  always_comb begin
    part = part_q;
    if (part == PartFirst && shape_i.first == '0) part = PartBody;
    if (part == PartBody && shape_i.body == '0) part = PartLast;
  end

  always_comb begin
    unique case (part)
      PartFirst: piece_words = {21'b0, shape_i.first};
      PartBody:  piece_words = shape_i.body;
      default:   piece_words = {21'b0, shape_i.last};
    endcase
  end

  assign unit      = begun_q ? unit_q : base_i;
  assign piece     = begun_q ? piece_q : base_i;
  assign last_tile = part == PartBody || tiles_q + 1'b1 == shape_i.tiles;
  assign last_unit = units_q + 1'b1 == shape_i.count;
  always_comb begin
    unique case (part)
      PartFirst: unit_end = last_tile && shape_i.body == '0 && shape_i.last == '0;
      PartBody:  unit_end = shape_i.last == '0;
      default:   unit_end = last_tile;
    endcase
  end
  assign last    = unit_end && last_unit;
  assign load    = valid_i && (!valid_o || (step_i && end_i));
  assign ready_o = load && last;

  addr_t next_piece, next_unit;
  assign next_piece = piece + ((part == PartBody) ? addr_t'(shape_i.body) : addr_t'(TileWords));
  assign next_unit  = unit + pitch_i;

  always_ff @(posedge clk_i) begin
    if (!rst_ni) begin
      valid_o <= 1'b0;
      begun_q <= 1'b0;
      part_q  <= PartFirst;
      units_q <= '0;
      tiles_q <= '0;
    end else if (load) begin
      valid_o <= 1'b1;
      begun_q <= !last;
      tiles_q <= last_tile ? '0 : tiles_q + 1'b1;
      if (unit_end) begin
        part_q  <= PartFirst;
        units_q <= last_unit ? '0 : units_q + 1'b1;
      end else if (last_tile) begin
        part_q <= (part == PartFirst) ? PartBody : PartLast;
      end else begin
        part_q <= part;
      end
    end else if (step_i && end_i) begin
      valid_o <= 1'b0;
    end
  end

  always_ff @(posedge clk_i) begin
    if (load) begin
      unit_q  <= unit_end ? next_unit : unit;
      piece_q <= unit_end ? next_unit : next_piece;
      at_o    <= piece + ((part == PartFirst) ? addr_t'(shape_i.first_at) : '0);
      left_o  <= piece_words;
      last_o  <= last;
      tag_o   <= tag_i;
    end else if (step_i) begin
      at_o   <= at_o + addr_t'(words_i);
      left_o <= left_o - mem_word_t'(words_i);
    end
  end

`ifndef SYNTHESIS
  StepInPiece_A :
  assert property (@(posedge clk_i) disable iff (!rst_ni)
                   step_i |-> valid_o && words_i != '0 && mem_word_t'(words_i) <= left_o)
  else $error("npu_dma_walk: a step past the end of a piece");
  EndOfPiece_A :
  assert property (@(posedge clk_i) disable iff (!rst_ni)
                   step_i |-> end_i == (mem_word_t'(words_i) == left_o))
  else $error("npu_dma_walk: a piece that ends with a step, and none of it is told");
`endif

endmodule
