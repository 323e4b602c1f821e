// SPDX-License-Identifier: Apache-2.0
//
// Places in memory and in staging tiles that need products of registers: K/V transfers and EMBED.
// One multiplier forms a product per cycle while the instruction waits at the head of the queue; its
// first factors are chosen while the instruction moves there, the others a cycle ahead. The sums, in
// words of 16 bytes, wrap around at twice the memory, and each knows whether it has. What lies outside
// memory, SRAM or the capacity of the cache is reported together with the result.

module npu_place
  import npu_pkg::*;
  import npu_start_pkg::*;
  import npu_isa_pkg::*;
  import npu_seq_pkg::*;
#(
  parameter int unsigned Edge      = 16,    // tile edge in lanes: 16 or 32
  parameter int unsigned SramWords = 16384  // words of the SRAM: a power of two from 256 to 65536
) (
  input logic clk_i,  // clock
  input logic rst_ni, // reset, active low

  input  logic       valid_i,      // the instruction at the head needs a place; stays until done_i
  input  logic       done_i,       // pulse: it leaves
  // What valid_i may find at the head in the next cycle; with the registers as they are then
  input  entry_t     coming_i,
  input  entry_t     entry_i,      // a checked K/V transfer or EMBED, steady while valid_i
  input  dim_t       k_i,          // K/V: positions; steady while valid_i
  input  mem_addr_t  base_i,       // EMBED: the base of its table; steady while valid_i
  input  registers_t registers_i,  // machine registers, steady while valid_i
  output place_t     place_o       // ready: EMBED 2, K/V 6, staged 8 cycles after valid_i
);

  localparam int unsigned EdgeBits = $clog2(Edge);
  localparam int unsigned SumW = 29;
  typedef logic [SumW-1:0] words_t;
  typedef struct packed {
    logic   over;   // the sum is 2^29 or more
    words_t words;  // the rest of it
  } sum_t;

  localparam words_t MemWords = words_t'(1) << 28;
  localparam logic [37:0] MemBytes = 38'd1 << 32;

  function automatic sum_t plus(sum_t x, sum_t y);
    logic   carry;
    words_t words;
    {carry, words} = {1'b0, x.words} + {1'b0, y.words};
    return '{over: x.over || y.over || carry, words: words};
  endfunction

  function automatic sum_t in_words(words_t words);
    return '{over: 1'b0, words: words};
  endfunction

  function automatic logic beyond(sum_t sum, words_t limit);
    return sum.over || sum.words > limit;
  endfunction

  machine_t regs;
  logic [31:0] wstart;
  assign regs   = registers_i.regs;
  assign wstart = registers_i.wstart;

  instr_t word;
  embed_imm_t embed;
  kv_append_imm_t kv;
  logic is_embed, is_list, is_append, staged;
  assign word      = entry_i.word;
  assign embed     = embed_imm_t'(word.imm);
  assign kv        = kv_append_imm_t'(word.imm);
  assign is_embed  = word.opcode == OpEmbed;
  assign is_list   = embed.index == EmbedIndexList;
  assign is_append = word.opcode == OpKvAppend;
  assign staged    = is_append && word.flags[FlagStage];

  // ---------------------------------------------------------------------------------------------
  // Positions and tile rows of a K/V transfer
  // ---------------------------------------------------------------------------------------------
  // The products of the heads come first, so there is time for a register.
  logic [33:0] first_q;  // position
  logic [31:0] tile_first, tile_stage_q;
  logic [16:0] tile_count;
  logic [17:0] tile_words_q;
  logic [ 4:0] phase;

  always_ff @(posedge clk_i) begin
    first_q      <= 34'(is_append ? regs.pos : wstart) + 34'(entry_i.prefix.base);
    tile_stage_q <= 32'((first_q - 34'(wstart)) >> EdgeBits);
    tile_words_q <= tile_row_words(word.n, Edge);
  end

  assign tile_first = 32'(first_q >> EdgeBits);
  assign phase      = 5'(first_q[EdgeBits-1:0]);
  assign tile_count = (17'(phase) + 17'(k_i) + 17'(Edge - 1)) >> EdgeBits;

  // ---------------------------------------------------------------------------------------------
  // One product per cycle
  // ---------------------------------------------------------------------------------------------
  typedef enum logic [3:0] {
    StLayer,       // products, named by their first factor; K/V begins here, EMBED has its only one
    StFirstHead,
    StHeads,
    StTile,
    StTiles,
    StStageTile,
    StStageHeads,
    StEnd,         // the last product is added
    StRowEnd,
    StDone
  } state_e;

  state_e state_q;
  logic [31:0] a, a_q;  // factors
  logic [17:0] b, b_q;
  logic [49:0] product_q;
  sum_t product;
  assign product = '{over: product_q[49:SumW] != '0, words: product_q[SumW-1:0]};

  instr_t coming;
  embed_imm_t coming_embed;
  logic [31:0] row_number;
  logic [15:0] row_words;
  assign coming       = coming_i.word;
  assign coming_embed = embed_imm_t'(coming.imm);
  assign row_words    = pitch_or(coming.k, words_of({2'b0, coming.n}));

  always_comb begin
    unique case (coming_embed.index)
      EmbedIndexToken: row_number = regs.token;
      EmbedIndexPos:   row_number = regs.pos;
      default:         row_number = '0;
    endcase
    {a, b} = {4'b0, regs.kv_layer[31:4], 2'b0, coming.m};
    if (coming.opcode == OpEmbed) {a, b} = {row_number, 2'b0, row_words};
    unique case (state_q)
      StLayer:     if (valid_i) {a, b} = {4'b0, regs.kv_head[31:4], 10'b0, kv.first_head};
      StFirstHead: {a, b} = {4'b0, regs.kv_head[31:4], 10'b0, kv.heads_minus_1};
      StHeads:     {a, b} = {tile_first, tile_words_q};
      StTile:      {a, b} = {15'b0, tile_count, tile_words_q};
      StTiles:     {a, b} = {tile_stage_q, tile_words_q};
      StStageTile: {a, b} = {16'b0, word.src1, 10'b0, kv.heads_minus_1};
      default:     ;
    endcase
  end

  // ---------------------------------------------------------------------------------------------
  // Sums, in words
  // ---------------------------------------------------------------------------------------------
  sum_t place_q;  // of the first head at position 0, then of the first position; EMBED: of row 0
  sum_t last_q;  // of the last head at position 0
  sum_t end_q;  // of the piece of the last head, perhaps without the last product
  sram_addr_t stage_q;  // of the first position in the first head's staging tiles
  logic [27:0] stage_last_q;  // of the last head's staging tiles
  sum_t stage_end_q;  // without the last product
  sum_t tiles_q;  // that are touched

  // What is wrong with the sums, as they are when the last product is added. Nothing is dispatched
  // after it.
  logic in_sram, memory_outside, stage_outside;
  logic context_full_q, bad_address_q, bad_range_q, stage_blamed_q;
  sum_t ending;
  assign in_sram        = !regs.kv_in_memory;
  assign ending         = plus(end_q, staged ? '0 : product);
  assign memory_outside = !in_sram && beyond(ending, MemWords);
  assign stage_outside  = staged && beyond(plus(stage_end_q, product), words_t'(SramWords));

  sum_t kv_start, from_stage;
  assign from_stage = plus(in_words(words_t'(word.dst)), product);
  assign kv_start = in_words(
      words_t'(regs.kv_base[31:4]) + (word.flags[FlagV] ? words_t'(regs.kv_voff[31:4]) : '0)
  );

  logic off_words;
  sum_t row;  // of EMBED
  logic [37:0] rows_end;  // in bytes, but for what the row is over
  assign off_words = base_i[3:0] != '0;
  assign row       = plus(in_words(words_t'(base_i[31:4])), product);
  assign rows_end  = {5'b0, row.words, 4'b0} + {1'b0, entry_i.span};

  always_ff @(posedge clk_i) begin
    if (!rst_ni) begin
      state_q <= StLayer;
    end else if (done_i || !valid_i) begin
      state_q <= StLayer;
    end else begin
      unique case (state_q)
        StLayer:      state_q <= is_embed ? StRowEnd : StFirstHead;
        StFirstHead:  state_q <= StHeads;
        StHeads:      state_q <= StTile;
        StTile:       state_q <= StTiles;
        StTiles:      state_q <= staged ? StStageTile : StEnd;
        StStageTile:  state_q <= StStageHeads;
        StStageHeads: state_q <= StEnd;
        default:      state_q <= StDone;
      endcase
    end
  end

  // The instruction leaves in StDone and not before.
  always_ff @(posedge clk_i) begin
    {a_q, b_q} <= {a, b};
    if (!rst_ni) begin
      product_q      <= '0;
      place_q        <= '0;
      last_q         <= '0;
      end_q          <= '0;
      stage_q        <= '0;
      stage_last_q   <= '0;
      stage_end_q    <= '0;
      tiles_q        <= '0;
      context_full_q <= 1'b0;
      bad_address_q  <= 1'b0;
      bad_range_q    <= 1'b0;
      stage_blamed_q <= 1'b0;
    end else begin
      product_q <= 50'(a_q) * 50'(b_q);
      unique case (state_q)
        StFirstHead: place_q <= plus(kv_start, product);
        StHeads:     place_q <= plus(place_q, product);
        StTile:      last_q <= plus(place_q, product);
        StTiles: begin
          place_q <= plus(place_q, product);
          end_q   <= plus(last_q, product);
        end
        StStageTile: begin
          end_q   <= plus(end_q, product);
          tiles_q <= product;
        end
        StStageHeads: begin
          stage_q     <= from_stage.words[15:0];
          stage_end_q <= plus(from_stage, tiles_q);
        end
        StEnd: begin
          stage_last_q   <= from_stage.words[27:0];
          context_full_q <= first_q + 34'(k_i) > 34'(regs.kv_cap);
          bad_address_q  <= memory_outside;
          bad_range_q    <= stage_outside || (in_sram && beyond(ending, words_t'(SramWords)));
          stage_blamed_q <= stage_outside && !memory_outside;
        end
        StRowEnd: begin
          place_q       <= row;
          bad_address_q <= !is_list && (off_words || row.over || rows_end > MemBytes);
        end
        default:     ;
      endcase
    end
  end

  // ---------------------------------------------------------------------------------------------
  // Result
  // ---------------------------------------------------------------------------------------------
  mem_addr_t mem, error_addr;
  assign mem = {place_q.words[27:0], is_embed ? base_i[3:0] : 4'b0};

  always_comb begin
    error_addr = {last_q.words[27:0], 4'b0};
    if (is_embed) error_addr = mem;
    else if (stage_blamed_q) error_addr = {stage_last_q, 4'b0};
  end

  assign place_o = '{
          ready: state_q == StDone,
          mem: mem,
          stage: stage_q,
          phase: phase,
          context_full: context_full_q,
          bad_address: bad_address_q,
          bad_range: bad_range_q,
          error_addr: error_addr
      };

endmodule
