// SPDX-License-Identifier: Apache-2.0
//
// Which words a transfer touches, relative to its first one. Rows and the heads of the K/V cache
// are units one pitch apart. A unit of rows is one contiguous piece. A head is a run of positions
// in tile order, E positions to a stripe of tiles; it has up to three parts:
//   first  the rest of the stripe that holds the first position, one piece per tile, if it begins
//          inside a stripe;
//   body   whole stripes, one piece;
//   last   the beginning of a last stripe, one piece per tile.

package npu_dma_pkg;
  import npu_pkg::*;

  typedef logic [27:0] mem_word_t;  // address or number of words in memory

  typedef struct packed {
    dim_t        count;     // units
    logic [11:0] tiles;     // per stripe
    logic [5:0]  first_at;  // words from the stripe's beginning to the first position
    logic [6:0]  first;     // words per piece; zero: there is no such part
    mem_word_t   body;
    logic [6:0]  last;
  } shape_t;

  // What the writing side of a load needs of an operation
  typedef struct packed {
    sram_addr_t sram;
    sram_addr_t pitch;
    logic [3:0] tail;   // bytes of a row's last word, 0 = all
    logic       copy;   // words from SRAM
    shape_t     shape;
  } fill_t;

  function automatic dim_t words_of(dim_t bytes);
    return dim_t'((17'(bytes) + 17'd15) >> 4);
  endfunction

  // Tiles that hold the lanes of a head
  function automatic logic [11:0] tiles_of(int unsigned tile, dim_t bytes);
    return 12'((17'(bytes) + 17'(tile - 1)) >> $clog2(tile));
  endfunction

  function automatic shape_t row_shape(dim_t rows, dim_t bytes);
    return '{count: rows, tiles: 12'd1, body: {12'b0, words_of(bytes)}, default: '0};
  endfunction

  function automatic shape_t head_shape(int unsigned tile, dim_t heads, dim_t bytes,
                                        dim_t positions, logic [4:0] phase);
    int unsigned row_words;
    dim_t first, rest, stripes;
    shape_t shape;
    row_words = tile / WordBytes;
    first = '0;
    if (phase != '0) first = dim_t'(tile) - {11'b0, phase};
    if (first > positions) first = positions;
    rest           = positions - first;
    stripes        = rest >> $clog2(tile);
    shape.count    = heads;
    shape.tiles    = tiles_of(tile, bytes);
    shape.first_at = 6'(32'(phase) * row_words);
    shape.first    = 7'(32'(first) * row_words);
    shape.body     = mem_word_t'(stripes[11:0] * 24'(shape.tiles)) * 28'(tile * row_words);
    shape.last     = 7'((32'(rest) % tile) * row_words);
    return shape;
  endfunction

endpackage
