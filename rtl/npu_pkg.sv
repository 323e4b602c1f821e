// SPDX-License-Identifier: Apache-2.0
//
// Types, constants and the one definition of rounding and saturation that every engine shares.
//
// SRAM is addressed in 16-byte words. Engines receive operations (all addresses and pitches
// in words, natural pitches already filled in, every operand range already checked), read and write
// SRAM through one-word ports, and know nothing of each other.

package npu_pkg;

  localparam int unsigned WordBytes = npu_isa_pkg::Word;
  localparam int unsigned WordBits = 8 * WordBytes;
  // The read side of the parameter stream: four words at once.
  localparam int unsigned BeatBytes = npu_isa_pkg::Line;
  localparam int unsigned BeatBits = 8 * BeatBytes;

  localparam int unsigned NumEngines = 6;
  localparam int unsigned NumSramBanks = 16;

  typedef logic [WordBits-1:0] word_t;
  typedef logic [BeatBits-1:0] beat_t;
  typedef logic [15:0] sram_addr_t;  // in words
  typedef logic [31:0] mem_addr_t;  // in bytes
  typedef logic [31:0] instr_idx_t;  // index of a 16-byte word in the program
  typedef logic [15:0] dim_t;

  // ---------------------------------------------------------------------------------------------
  // SRAM ports. A read is accepted when valid and ready meet; its data comes back in order, some
  // cycles later, and cannot be refused. A write is visible to every later read once accepted.
  // ---------------------------------------------------------------------------------------------
  typedef struct packed {
    logic       valid;  // a read; the port says whether it may be withdrawn
    sram_addr_t addr;   // of the word, with valid
  } sram_rd_req_t;

  typedef struct packed {
    logic  valid;  // a word, in the order of the requests
    word_t data;   // all 16 bytes, with valid
  } sram_rd_rsp_t;

  typedef struct packed {
    logic       valid;  // a write; the port says whether it may be withdrawn
    sram_addr_t addr;   // of the word, with valid
    word_t      data;   // all 16 bytes, with valid
  } sram_wr_req_t;

  // ---------------------------------------------------------------------------------------------
  // Memory port. A client asks for a burst that stays inside a 4 KiB page, naming the instruction
  // that it works for. Data of a read comes back in order and cannot be refused.
  // ---------------------------------------------------------------------------------------------
  typedef struct packed {
    logic       valid;  // a burst; the port says whether it may be withdrawn
    mem_addr_t  addr;   // of its first word, a multiple of 16
    logic [7:0] len;    // words - 1
    instr_idx_t instr;  // index of the instruction, for error reports
  } mem_req_t;

  typedef struct packed {
    logic        valid;  // a word of the oldest unfinished burst; stays until word_ready
    word_t       data;   // 16 bytes, with valid
    logic [15:0] strb;   // which of them are written, with valid
  } mem_wdata_t;

  // What a client that reads is told
  typedef struct packed {
    logic  ready;  // takes the burst; only with its valid
    logic  valid;  // a word for it, in order, which it cannot refuse
    word_t data;   // 16 bytes, with valid
  } mem_rd_rsp_t;

  // What a client that writes is told
  typedef struct packed {
    logic ready;       // takes the burst; only with its valid
    logic word_ready;  // takes the word; may come without its valid
    logic done;        // pulse: memory has acknowledged the oldest burst, well or not
  } mem_wr_rsp_t;

  // Which access, for error reports
  typedef struct packed {
    mem_addr_t  addr;   // of a word
    instr_idx_t instr;  // index of the instruction
  } mem_place_t;

  localparam int unsigned NumRegions = 8;

  // What the chip may do in the 4 KiB pages base..limit of memory
  typedef struct packed {
    logic        read;   // may read there
    logic        write;  // may write there
    logic [19:0] base;   // number of the first page
    logic [19:0] limit;  // number of the last page
  } region_t;

  typedef region_t [NumRegions-1:0] regions_t;

  // What is set for the memory port
  typedef struct packed {
    regions_t    regions;  // what may be accessed
    logic [23:0] timeout;  // cycles of one wait; 0 = for ever
  } mem_settings_t;

  // A parameter stream: where it lies and how many bytes it has; none while the length is 0
  typedef struct packed {
    mem_addr_t   base;    // of its first byte, a multiple of 64
    logic [31:0] length;  // bytes, a multiple of 64
  } stream_range_t;

  // Why a program ends early
  typedef struct packed {
    logic                 valid;   // it does; the rest counts with it
    npu_isa_pkg::error_e  code;    // what is wrong
    npu_isa_pkg::engine_e engine;  // whose access or instruction it is
    instr_idx_t           instr;   // index of the instruction
    mem_addr_t            addr;    // bytes, of the access; zero where none is to blame
  } fault_t;

  // What an engine says of its instructions
  typedef struct packed {
    logic done;   // pulse: the oldest one is finished
    logic busy;   // has one
    logic stall;  // a port of its SRAM or its stream holds it up
  } engine_status_t;

  // Bank of a word: the address bits folded by XOR, so that power-of-two pitches spread out.
  function automatic logic [3:0] sram_bank(sram_addr_t addr);
    return addr[3:0] ^ addr[7:4] ^ addr[11:8] ^ addr[15:12];
  endfunction

  // Edge of the tiles in which weights are ordered and operands are walked through. A smaller array
  // uses the files and programs of one of 16, part of a tile at a time.
  function automatic int unsigned tile_edge(int unsigned array_dim);
    return (array_dim > 16) ? array_dim : 16;
  endfunction

  // Longest burst on the memory port, in words.
  localparam int unsigned MaxBurst = 32;

  // Length of the next burst of a transfer: no longer than MaxBurst, not across a 4 KiB page.
  function automatic logic [5:0] burst_words(mem_addr_t addr, logic [31:0] words_left);
    logic [8:0] to_page;
    to_page     = 9'd256 - {1'b0, addr[11:4]};
    burst_words = 6'(MaxBurst);
    if (to_page < 9'(MaxBurst)) burst_words = to_page[5:0];
    if (words_left < {26'b0, burst_words}) burst_words = words_left[5:0];
  endfunction

  // ---------------------------------------------------------------------------------------------
  // Operations: decoded instructions, one type for each engine
  // ---------------------------------------------------------------------------------------------
  typedef enum logic [1:0] {
    LoadRows,  // DMA_LOAD; EMBED of the token or of positions
    LoadList,  // EMBED by a list of row numbers
    LoadKv     // KV_READ
  } load_op_e;

  // K/V tiles: rows = heads, bytes = head dimension; mem is the place of the first position of the
  // first head, which begins a tile, mem_pitch leads from head to head. With cache_in_sram mem is
  // a byte address in SRAM.
  typedef struct packed {
    instr_idx_t  instr;          // index, for error reports
    load_op_e    op;             // kind of source
    sram_addr_t  sram;           // first word of the destination
    sram_addr_t  sram_pitch;     // words
    mem_addr_t   mem;            // first row; LoadList: row number 0
    logic [31:0] mem_pitch;      // bytes
    dim_t        rows;           // or heads
    dim_t        bytes;          // per row
    sram_addr_t  list;           // LoadList: row numbers, u32 each
    dim_t        positions;      // LoadKv: rows of every head
    logic        cache_in_sram;  // LoadKv: mem is in SRAM
  } load_cmd_t;

  typedef enum logic [1:0] {
    StoreRows,   // DMA_STORE
    StoreToken,  // ARGMAX: `token` goes to the four bytes at mem
    StoreKv      // KV_APPEND
  } store_op_e;

  // K/V rows: `rows` positions of `heads` heads, bytes = head dimension, sram_pitch from position to
  // position. mem and stage are the places of the tile row that holds the first position, which is
  // its row `phase`; mem_pitch and stage_pitch lead from head to head.
  typedef struct packed {
    instr_idx_t  instr;          // index, for error reports
    store_op_e   op;             // kind of source and destination
    sram_addr_t  sram;           // first word of the source
    sram_addr_t  sram_pitch;     // words
    mem_addr_t   mem;            // first row, bytes
    logic [31:0] mem_pitch;      // bytes
    dim_t        rows;           // or positions
    dim_t        bytes;          // per row
    logic [31:0] token;          // StoreToken: what is written
    logic [8:0]  heads;          // StoreKv, 1 to 256
    logic [4:0]  phase;          // StoreKv, 0 to 31
    logic        stage_valid;    // StoreKv: staging tiles get the rows as well
    sram_addr_t  stage;          // words
    sram_addr_t  stage_pitch;    // words
    logic        cache_in_sram;  // StoreKv: mem is in SRAM
  } store_cmd_t;

  typedef struct packed {
    sram_addr_t             c;            // result, first word
    sram_addr_t             c_pitch;      // words
    sram_addr_t             a;            // first operand, first word
    sram_addr_t             a_pitch;      // words
    sram_addr_t             b;            // weights in SRAM, first word
    sram_addr_t             b_pitch;      // words; tile order ignores it
    sram_addr_t             d;            // second operand or partial sums, first word
    sram_addr_t             d_pitch;      // words
    sram_addr_t             sums;         // softmax sums, first word; a word for each row
    dim_t                   m;            // rows of A and C
    dim_t                   n;            // columns of B and C
    dim_t                   k;            // may be zero: an empty sum
    npu_isa_pkg::gemm_a_e   a_type;       // elements of A
    npu_isa_pkg::gemm_b_e   b_form;       // where B lies and in which order
    logic                   transpose_b;  // B lies transposed, as n rows of k
    logic                   bias;         // is added in front of requantisation
    logic                   requant;      // to 8 or 16 bits, else sums of 32
    logic                   relu;         // negative results become zero
    logic                   accumulate;   // D is partial sums
    npu_isa_pkg::gemm_q_e   q;            // where multiplier and shift come from
    logic                   activation;   // the 256-entry table of the share
    npu_isa_pkg::gemm_out_e out;          // elements of C, or none
    npu_isa_pkg::gemm_op_e  op;           // elementwise with D
    logic                   argmax;       // the running argmax counts it
    logic [15:0]            mult;         // of requantisation by the instruction, or of OP = MUL
    logic [5:0]             shift;        // right shift that belongs to it
  } gemm_cmd_t;

  typedef struct packed {
    sram_addr_t            dst;            // first word
    sram_addr_t            dst_pitch;      // words
    sram_addr_t            src;            // scores, first word
    sram_addr_t            src_pitch;      // words
    sram_addr_t            sums;           // row sums, first word; a word for each row
    dim_t                  rows;           // of all heads
    dim_t                  cols;           // keys
    dim_t                  rows_per_head;  // never zero: equals rows when the program gave none
    npu_isa_pkg::smx_out_e out;            // numerators or probabilities
    logic                  score8;         // scores of int8, else int16
    logic                  causal;         // keys later than its own position are masked
    logic [31:0]           pos;            // position of row 0, column 0 being position 0
    logic [31:0]           window;         // keys that a row sees at most, 0 = all of them
  } smx_cmd_t;

  typedef enum logic [1:0] {
    NrmLayer,
    NrmRms,
    NrmRope
  } nrm_op_e;

  typedef struct packed {
    nrm_op_e    op;           // what is done
    sram_addr_t dst;          // first word
    sram_addr_t dst_pitch;    // words
    sram_addr_t src;          // first word
    sram_addr_t src_pitch;    // words
    sram_addr_t param;        // norms: when not from the stream; ROPE: cos/sin rows
    sram_addr_t param_pitch;  // ROPE, words
    dim_t       rows;         // to normalise or turn
    dim_t       cols;         // elements; ROPE: head dimension
    dim_t       heads;        // ROPE: in every row
    logic       pairs;        // ROPE: neighbouring lanes instead of halves
    logic       stream;       // norms: parameters from the stream
    logic       out16;        // norms: results of int16, else int8
  } nrm_cmd_t;

  typedef struct packed {
    npu_isa_pkg::vec_op_e op;         // GELU and SILU arrive as VecTable
    sram_addr_t           dst;        // first word
    sram_addr_t           dst_pitch;  // words
    sram_addr_t           a;          // first operand, first word
    sram_addr_t           a_pitch;    // words
    sram_addr_t           b;          // second operand, or the table in SRAM, first word
    sram_addr_t           b_pitch;    // words
    dim_t                 rows;       // of all operands
    dim_t                 elements;   // of a row
    logic signed [15:0]   hi;         // SCALE_SHIFT: scale, CLAMP: upper bound
    logic signed [15:0]   lo;         // CLAMP: lower bound
    logic [5:0]           shift;      // of the result, to the right
    logic                 a16;        // operands of int16, else int8
    logic                 c16;        // results of int16, else int8
    logic                 stream;     // table from the stream
  } vec_cmd_t;

  // ---------------------------------------------------------------------------------------------
  // Running argmax of the GEMM engine: column of the best value since it was cleared
  // ---------------------------------------------------------------------------------------------
  typedef struct packed {
    logic        valid;   // there was a value
    logic [31:0] column;  // counted on from instruction to instruction; with valid
  } argmax_t;

  // ---------------------------------------------------------------------------------------------
  // Machine registers (npu_start_pkg::machine_t) that the host sees while a program runs and when it
  // has ended
  // ---------------------------------------------------------------------------------------------
  typedef struct packed {
    logic [31:0] outcnt;  // tokens that are in memory
    logic [31:0] token;   // TOKEN, the last one chosen or set
    logic [31:0] pos;     // POS
  } generated_t;

  // ---------------------------------------------------------------------------------------------
  // Tickets of the parameter stream, in the order of dispatch
  // ---------------------------------------------------------------------------------------------
  typedef enum logic [1:0] {
    TicketShare,  // the next share goes to the engine
    TicketDrop,   // the next `bytes` go to nobody
    TicketSeek,   // go on at `bytes` from the start of the stream
    TicketWrap    // everything has been taken: go on at the start
  } ticket_op_e;

  typedef struct packed {
    ticket_op_e           op;      // what happens to the stream
    npu_isa_pkg::engine_e engine;  // TicketShare: which one
    logic [31:0]          bytes;   // TicketDrop, TicketSeek: a multiple of 64
  } ticket_t;

  // ---------------------------------------------------------------------------------------------
  // Fixed point
  // ---------------------------------------------------------------------------------------------
  // The widest value that is shifted: a sum of 41 bits (two passes, each of 32, one of them 8 places
  // up, and a bias of 32) times an unsigned multiplier of 16.
  localparam int unsigned SumBits = 41;
  localparam int unsigned AccBits = SumBits + 16;
  typedef logic signed [SumBits-1:0] sum_t;
  typedef logic signed [AccBits-1:0] acc_t;

  // x / 2^shift, rounding half up: what the shift leaves, plus the bit that it drops last. A shift of
  // zero returns x.
  function automatic acc_t round_shift(acc_t x, logic [5:0] shift);
    logic signed [AccBits:0] y;
    y = $signed({x, 1'b0}) >>> shift;
    return y[AccBits:1] + acc_t'({1'b0, y[0]});
  endfunction

  // The same, saturated to 16 bits or to 8. The longest step is taken first: what no shorter one
  // brings down to the result must be copies of the sign, and needs not be shifted any further.
  function automatic logic signed [15:0] round_saturate(acc_t x, logic [5:0] shift, logic is_16);
    logic negative, fits;
    logic [15:0] most;
    logic signed [AccBits:0] y, above;
    negative = x[AccBits-1];
    most     = is_16 ? 16'h7fff : 16'h007f;
    fits     = 1'b1;
    y        = {x, 1'b0};
    for (int unsigned step = 32; step != 0; step >>= 1) begin
      if ((32'(shift) & step) != 0) y >>>= step;
      above = y >>> (15 + step);
      fits &= above == {(AccBits + 1) {negative}};
      y = (y <<< (AccBits - 15 - step)) >>> (AccBits - 15 - step);
    end
    fits &= is_16 || y[15:8] == {8{negative}};
    if (!fits) return negative ? ~most : most;
    if (y[16:1] == most) return most;
    return y[16:1] + 16'(y[0]);
  endfunction

endpackage
