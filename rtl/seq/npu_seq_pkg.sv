// SPDX-License-Identifier: Apache-2.0
//
// What the parts of the sequencer hand to each other, and how an instruction word is read.

package npu_seq_pkg;
  import npu_pkg::*;
  import npu_start_pkg::*;
  import npu_isa_pkg::*;

  // A word of the program on its way from memory to its check
  typedef struct packed {
    logic       valid;     // stays until taken, all stable, unless the fetch goes on elsewhere
    word_t      word;      // the word, with valid
    instr_idx_t index;     // its index; without valid that of the next word
    logic       followed;  // a LOOP, behind which the word at its target comes; with valid
    logic       past_end;  // everything has been handed out: a level until fetch goes on elsewhere
  } fetched_t;

  // The fetch goes on at another word; what it has fetched is worthless
  typedef struct packed {
    logic       valid;  // pulse
    instr_idx_t index;  // of the next word, at most the length of the program; with valid
  } redirect_t;

  // A checked instruction on its way to dispatch
  typedef struct packed {
    instr_idx_t  index;       // of the word in the program
    instr_t      word;        // without its prefix
    logic        has_prefix;  // a prefix word came before it
    prefix_t     prefix;      // zero without a prefix word
    error_e      error;       // of the checks that do not depend on registers
    mem_addr_t   error_addr;  // bytes, of an operand or value; zero where none is to blame
    logic [31:0] share;       // bytes of the stream that it takes, a multiple of 64
    // DMA and EMBED: bytes of memory from the first to the last if rows lie one pitch apart. ROPE
    // and KV_APPEND: words of a row. KV_READ: words of a head's staging tiles.
    logic [36:0] span;
    logic        followed;    // a LOOP, behind which the word at its target comes
  } entry_t;

  // The machine registers as they are now, and what follows from them
  typedef struct packed {
    machine_t    regs;     // a level
    logic [31:0] wstart;   // first visible position, a multiple of the tile edge; while settled
    logic [32:0] len;      // visible keys, POS + 1 - WSTART; while settled
    logic        settled;  // wstart and len fit regs; low for a cycle after POS or WINDOW changed
  } registers_t;

  // What an instruction changes in the machine registers, at its dispatch; one pulse at most
  typedef struct packed {
    logic        set;     // pulse: SET
    logic [15:0] number;  // of the register, with set
    logic        add;     // the value is added to the old one, with set
    logic [31:0] value;   // with set
    logic        argmax;  // pulse: ARGMAX sets TOKEN and counts OUTCNT up
    logic [31:0] token;   // with argmax
    logic        loop;    // pulse: a LOOP is taken: LOOPLEFT - 1, POS + 1
  } change_t;

  // Dimensions of an instruction, dynamic ones as the number of visible keys makes them
  typedef struct packed {
    dim_t m;             // rows
    dim_t n;             // columns of GEMM and SOFTMAX
    dim_t k;             // inner dimension of GEMM, positions of KV_READ
    logic nothing;       // no rows, columns, positions or new sums: there is nothing to do
    logic context_full;  // SOFTMAX: more keys than columns
  } extents_t;

  // How an instruction is dispatched
  typedef struct packed {
    logic                  refused;      // for an error that comes before all that need registers
    logic [NumEngines-1:0] engine;       // that takes it, one-hot; none: the sequencer itself
    logic                  takes_share;  // of the stream
    logic [NumEngines-1:0] barrier;      // BARRIER: engines that it waits for
    logic                  needs_plain;  // DMA, ARGMAX: the address is a base and an offset
    logic                  turns;        // LOOP: decided in its second cycle
    logic                  needs_place;  // K/V, EMBED: where the data lies takes products
  } kind_t;

  // The address in memory of a DMA transfer or an ARGMAX; of EMBED only its base
  typedef struct packed {
    logic      off_words;  // misaligned
    logic      outside;    // the byte behind the last one is at 8 GiB or above
    logic      above;      // it is at 4 GiB or above
    logic      beyond;     // it is not at 4 GiB, with above
    mem_addr_t addr;       // first byte, cut to 32 bits
    mem_addr_t base;       // the base it counts from
  } plain_t;

  // Where a K/V transfer or an EMBED finds its data; with ready, but what is wrong is low before
  typedef struct packed {
    logic       ready;         // it is known
    mem_addr_t  mem;           // first row, of the cache in SRAM too: bytes
    sram_addr_t stage;         // SRAM word of the tile row in the staging tiles; if staged
    logic [4:0] phase;         // K/V: row of its tile that the first position is, 0 to 31
    logic       context_full;  // K/V: positions past KVCAP
    logic       bad_address;   // outside the 32-bit address space; EMBED: misaligned
    logic       bad_range;     // K/V: cache or staging tiles leave the SRAM
    mem_addr_t  error_addr;    // of a bad address or range, bytes
  } place_t;

  // What the instruction at the head means with the registers as they are; with ready, but what is
  // wrong is low before
  typedef struct packed {
    logic      ready;         // K/V, EMBED, LOOP: some cycles late; DMA, ARGMAX: one behind a SET
    logic      loop_taken;    // a LOOP that has another turn
    logic      context_full;  // more keys than columns or than the cache takes
    logic      bad_address;   // outside the 32-bit address space or misaligned
    logic      bad_range;     // operands whose place depends on registers leave the SRAM
    mem_addr_t error_addr;    // of a bad address or range, bytes
  } resolved_t;

  function automatic kind_t kind_of(entry_t entry);
    logic  [7:0] opcode;
    kind_t       kind;
    opcode       = entry.word.opcode;
    kind.refused = !(entry.error inside {ErrNone, ErrSramRange});
    kind.engine  = '0;
    if (engine_of(opcode) != EngSeq) kind.engine[engine_of(opcode)] = 1'b1;
    kind.takes_share = engine_of(opcode) != EngSeq && entry.share != '0;
    kind.barrier     = entry.word.m[NumEngines-1:0];
    if (kind.barrier == '0) kind.barrier = '1;  // all of them
    if (opcode != OpBarrier) kind.barrier = '0;
    kind.needs_plain = opcode inside {OpDmaLoad, OpDmaStore, OpArgmax};
    kind.turns       = opcode == OpLoop;
    kind.needs_place = opcode inside {OpKvAppend, OpKvRead, OpEmbed};
    return kind;
  endfunction

  // How far a program has come
  typedef struct packed {
    logic       ended;       // END or a refused instruction: a level until reset
    error_t     error;       // the refusal, with ended; not valid: END
    instr_idx_t last_instr;  // index of the instruction dispatched last
  } progress_t;

  // One product that the checks need: a * b + c
  typedef struct packed {
    logic        valid;      // it is to be formed
    logic        uses_span;  // c is the span
    logic        b_is_span;  // and so is b, which is zero
    logic [16:0] a;          // rows - 1 for an SRAM operand
    logic [19:0] b;          // pitch in words for an SRAM operand
    logic [19:0] c;          // words of a row for an SRAM operand
    sram_addr_t  start;      // of an SRAM operand, in words
  } term_t;

  // Where an SRAM operand ends: rows - 1 times pitch, and the last row
  function automatic term_t range_term(logic [16:0] a, logic [19:0] b, logic [19:0] c,
                                       sram_addr_t start);
    return '{valid: 1'b1, a: a, b: b, c: c, start: start, default: '0};
  endfunction

  // Terms in the order in which they are formed; operands in the order of their checks
  localparam int unsigned NumRanges = 5;  // SRAM operands of an instruction
  localparam int unsigned TermSpan = 0;
  localparam int unsigned TermRange = 1;
  localparam int unsigned TermShare = NumRanges + 1;
  localparam int unsigned NumTerms = NumRanges + 2;

  // The largest value of a dimension field: its number, or the cap of a dynamic one
  function automatic dim_t extent(dim_t field);
    if (field < Dynamic) return field;
    return (field[10:0] == '0) ? 16'd32768 : {1'b0, field[10:0], 4'b0};
  endfunction

  // The largest that the dimensions of an instruction may be, and how many tile edges they touch
  typedef struct packed {
    dim_t        m;
    dim_t        n;
    dim_t        k;
    logic [16:0] tiles_n;
    logic [16:0] tiles_k;
  } sizes_t;

  function automatic sizes_t sizes_of(instr_t word, int unsigned edge_lanes);
    sizes_t sizes;
    sizes.m       = extent(word.m);
    sizes.n       = extent(word.n);
    sizes.k       = extent(word.k);
    sizes.tiles_n = 17'((32'(sizes.n) + edge_lanes - 1) / edge_lanes);
    sizes.tiles_k = 17'((32'(sizes.k) + edge_lanes - 1) / edge_lanes);
    return sizes;
  endfunction

  // Words of the tiles that hold the lanes of one tile edge of positions
  function automatic logic [17:0] tile_row_words(dim_t lanes, int unsigned edge_lanes);
    logic [31:0] tiles;
    tiles = (32'(lanes) + edge_lanes - 1) / edge_lanes;
    return 18'(tiles * (edge_lanes * edge_lanes / WordBytes));
  endfunction

  // Words that hold the given number of bytes
  function automatic logic [15:0] words_of(logic [17:0] bytes);
    logic [18:0] rounded;
    rounded = {1'b0, bytes} + 19'd15;
    return {1'b0, rounded[18:4]};
  endfunction

  // A pitch of zero in a prefix stands for the natural one.
  function automatic sram_addr_t pitch_or(sram_addr_t pitch, logic [15:0] natural);
    return (pitch == '0) ? natural : pitch;
  endfunction

  // The mode of a GEMM; without a mode word what flags and imm imply.
  function automatic gemm_mode_t gemm_mode(instr_t word);
    gemm_mode_t mode;
    mode = gemm_mode_t'(word.imm);
    if (!word.flags[FlagMode]) begin
      mode     = '0;
      mode.out = word.flags[FlagRequant] ? GemmOutInt8 : GemmOutInt32;
    end
    return mode;
  endfunction

  // Does B come from the stream, and in which format?
  function automatic logic gemm_stream(gemm_mode_t mode);
    return mode.b_form inside {GemmBStream, GemmBStreamMx};
  endfunction

  function automatic weight_format_e gemm_format(gemm_mode_t mode);
    return weight_format_e'({mode.b_form[0], mode.fmt});
  endfunction

  // Groups of its rows
  function automatic weight_group_e gemm_group(instr_t word);
    return weight_group_e'({word.flags[FlagGroupHigh], word.flags[FlagGroupLow]});
  endfunction

  // Is A of 16 bits?
  function automatic logic gemm_wide(gemm_mode_t mode);
    return mode.a_type inside {GemmAInt16, GemmAUint16};
  endfunction

  // Does a GEMM have a second operand, and where?
  function automatic logic gemm_has_d(instr_t word, gemm_mode_t mode);
    return word.flags[FlagAccumulate] || mode.op != GemmOpNone;
  endfunction

  function automatic sram_addr_t gemm_d(instr_t word, gemm_mode_t mode, logic has_prefix,
                                        prefix_t prefix);
    if (gemm_stream(mode)) return word.src1;
    return has_prefix ? prefix.d : word.dst;
  endfunction

  // Of a GEMM's prefix with the stream: words of a line of A, and lines behind the first
  function automatic sram_addr_t gemm_line(prefix_t prefix);
    return sram_addr_t'(prefix.d[13:0]);
  endfunction

  function automatic logic [1:0] gemm_more_lines(prefix_t prefix);
    return prefix.d[15:14];
  endfunction

  // Bytes per row of a GEMM's C and D
  function automatic logic [17:0] gemm_c_bytes(instr_t word, gemm_mode_t mode);
    unique case (mode.out)
      GemmOutInt8:  return {2'b0, extent(word.n)};
      GemmOutInt16: return {2'b0, extent(word.n)} << 1;
      default:      return {2'b0, extent(word.n)} << 2;
    endcase
  endfunction

  function automatic logic [17:0] gemm_d_bytes(instr_t word, gemm_mode_t mode);
    if (word.flags[FlagAccumulate]) return {2'b0, extent(word.n)} << 2;
    if (mode.op == GemmOpAdd && mode.out inside {GemmOutInt16, GemmOutNone}) begin
      return {2'b0, extent(word.n)} << 1;
    end
    return {2'b0, extent(word.n)};
  endfunction

  // Bytes per row of operands whose elements are one or two bytes
  function automatic logic [17:0] row_bytes(dim_t elements, logic two);
    return two ? {1'b0, elements, 1'b0} : {2'b0, elements};
  endfunction

  // Elements rounded up to whole words of bytes
  function automatic dim_t up16(dim_t x);
    return dim_t'((17'(x) + 17'd15) & ~17'd15);
  endfunction

endpackage
