// SPDX-License-Identifier: Apache-2.0
//
// Walks the words of a transfer in their order, a step of one or more words at a time, and tells
// how many follow without a gap. After the last word it stands at the beginning again. The shape
// and the pitch must be steady in between.

module npu_dma_walk
  import npu_pkg::*;
  import npu_dma_pkg::*;
#(
  parameter int unsigned ArrayDim = 16,  // rows and columns of the systolic array: 4, 8, 16 or 32
  parameter int unsigned AddrBits = 28   // width of a place in words: 16 in SRAM, 28 in memory
) (
  input logic clk_i,  // clock
  input logic rst_ni, // reset, active low

  input shape_t                shape_i,  // steady from the first step to the last
  input logic   [AddrBits-1:0] pitch_i,  // words from unit to unit; steady as well

  // words_i words are done; the outputs follow one cycle later
  input  logic                     step_i,
  input  logic      [         5:0] words_i,  // 1 to left_o, with step_i
  output logic      [AddrBits-1:0] at_o,     // words from the first unit to this word
  output mem_word_t                left_o,   // words to the end of the piece, while shape_i holds
  output logic                     last_o    // nothing follows this piece
);

  localparam int unsigned Edge = tile_edge(ArrayDim);
  localparam int unsigned TileWords = Edge * Edge / WordBytes;

  typedef logic [AddrBits-1:0] addr_t;
  typedef enum logic [1:0] {
    PartFirst,
    PartBody,
    PartLast
  } part_e;

  // Places are those of a unit without its `first_at`.
  addr_t unit_q, piece_q, addr_q;
  part_e part_q, part;
  dim_t units_q;
  logic [11:0] tiles_q;
  mem_word_t done_q;  // words of the piece
  mem_word_t piece_words;
  logic piece_end, last_tile, part_end, unit_end, last_unit;

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

  assign at_o      = addr_q + ((part == PartFirst) ? addr_t'(shape_i.first_at) : '0);
  assign left_o    = piece_words - done_q;

  assign last_tile = part == PartBody || tiles_q + 1'b1 == shape_i.tiles;
  assign last_unit = units_q + 1'b1 == shape_i.count;
  always_comb begin
    unique case (part)
      PartFirst: unit_end = last_tile && shape_i.body == '0 && shape_i.last == '0;
      PartBody:  unit_end = shape_i.last == '0;
      default:   unit_end = last_tile;
    endcase
  end
  assign last_o    = unit_end && last_unit;
  assign piece_end = left_o == {22'b0, words_i};
  assign part_end  = piece_end && last_tile;

  addr_t next_piece, next_unit;
  assign next_piece = piece_q + ((part == PartBody) ? addr_t'(shape_i.body) : addr_t'(TileWords));
  assign next_unit  = last_unit ? '0 : unit_q + pitch_i;

  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) begin
      unit_q  <= '0;
      piece_q <= '0;
      addr_q  <= '0;
      part_q  <= PartFirst;
      units_q <= '0;
      tiles_q <= '0;
      done_q  <= '0;
    end else if (step_i) begin
      part_q <= part;
      if (!piece_end) begin
        addr_q <= addr_q + addr_t'(words_i);
        done_q <= done_q + {22'b0, words_i};
      end else begin
        done_q  <= '0;
        tiles_q <= last_tile ? '0 : tiles_q + 1'b1;
        if (unit_end) begin
          unit_q  <= next_unit;
          piece_q <= next_unit;
          addr_q  <= next_unit;
          part_q  <= PartFirst;
          units_q <= last_unit ? '0 : units_q + 1'b1;
        end else begin
          piece_q <= next_piece;
          addr_q  <= next_piece;
          if (part_end) part_q <= (part == PartFirst) ? PartBody : PartLast;
        end
      end
    end
  end

`ifndef SYNTHESIS
  StepInPiece_A :
  assert property (@(posedge clk_i) disable iff (!rst_ni)
                   step_i |-> words_i != '0 && {22'b0, words_i} <= left_o)
  else $error("npu_dma_walk: a step past the end of a piece");
`endif

endmodule
