// SPDX-License-Identifier: Apache-2.0
//
// Types, constants and the one definition of rounding and saturation that every engine shares.
//
// SRAM is addressed in 16-byte words. Engines receive decoded commands (all addresses and pitches
// in words, natural pitches already filled in, every operand range already checked), read and write
// SRAM through one-word ports, and know nothing of each other.

package npu_pkg;

  localparam int unsigned WordBytes = 16;
  localparam int unsigned WordBits = 8 * WordBytes;
  // The read side of the parameter stream: four words at once.
  localparam int unsigned BeatBytes = 64;
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
    logic       valid;
    sram_addr_t addr;
  } sram_rd_req_t;

  typedef struct packed {
    logic  valid;
    word_t data;
  } sram_rd_rsp_t;

  typedef struct packed {
    logic       valid;
    sram_addr_t addr;
    word_t      data;
    instr_idx_t instr;  // who writes, for the trace
  } sram_wr_req_t;

  // ---------------------------------------------------------------------------------------------
  // Memory port. A client asks for a burst that stays inside a 4 KiB page, naming the instruction
  // that it works for. Data of a read comes back in order and cannot be refused.
  // ---------------------------------------------------------------------------------------------
  typedef struct packed {
    logic       valid;
    mem_addr_t  addr;
    logic [7:0] len;    // words - 1
    instr_idx_t instr;
  } mem_req_t;

  typedef struct packed {
    logic        valid;
    word_t       data;
    logic [15:0] strb;
  } mem_wdata_t;

  // Which access, for error reports
  typedef struct packed {
    mem_addr_t  addr;
    instr_idx_t instr;
  } mem_place_t;

  localparam int unsigned NumRegions = 8;

  // What the chip may do in the 4 KiB pages base..limit of memory
  typedef struct packed {
    logic        read;
    logic        write;
    logic [19:0] base;
    logic [19:0] limit;
  } region_t;

  // Why a program ends early
  typedef struct packed {
    logic                 valid;
    npu_isa_pkg::error_e  code;
    npu_isa_pkg::engine_e engine;
    instr_idx_t           instr;
    mem_addr_t            addr;
  } fault_t;

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
  // Decoded commands
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
    instr_idx_t  instr;
    load_op_e    op;
    sram_addr_t  sram;
    sram_addr_t  sram_pitch;
    mem_addr_t   mem;            // first row; LoadList: row number 0
    logic [31:0] mem_pitch;      // bytes
    dim_t        rows;
    dim_t        bytes;          // per row
    sram_addr_t  list;           // LoadList: row numbers, u32 each
    dim_t        positions;      // LoadKv
    logic        cache_in_sram;
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
    instr_idx_t  instr;
    store_op_e   op;
    sram_addr_t  sram;
    sram_addr_t  sram_pitch;
    mem_addr_t   mem;
    logic [31:0] mem_pitch;      // bytes
    dim_t        rows;
    dim_t        bytes;          // per row
    logic [31:0] token;
    logic [8:0]  heads;
    logic [4:0]  phase;
    logic        stage_valid;
    sram_addr_t  stage;
    sram_addr_t  stage_pitch;
    logic        cache_in_sram;
  } store_cmd_t;

  typedef enum logic [1:0] {
    GemmAInt8,
    GemmAUint8,
    GemmAInt16,
    GemmAUint16
  } gemm_a_e;

  typedef enum logic [1:0] {
    GemmBRowMajor,
    GemmBTile,
    GemmBStream
  } gemm_b_e;

  typedef enum logic [1:0] {
    GemmQPrefix,
    GemmQTensor,
    GemmQChannel,
    GemmQRow
  } gemm_q_e;

  typedef enum logic [1:0] {
    GemmOutInt8,
    GemmOutInt16,
    GemmOutInt32,
    GemmOutNone
  } gemm_out_e;

  typedef enum logic [1:0] {
    GemmOpNone,
    GemmOpAdd,
    GemmOpMul
  } gemm_op_e;

  typedef struct packed {
    instr_idx_t  instr;
    sram_addr_t  c;
    sram_addr_t  c_pitch;
    sram_addr_t  a;
    sram_addr_t  a_pitch;
    sram_addr_t  b;
    sram_addr_t  b_pitch;      // words; tile order ignores it
    sram_addr_t  d;
    sram_addr_t  d_pitch;
    sram_addr_t  sums;
    dim_t        m;
    dim_t        n;
    dim_t        k;            // may be zero: an empty sum
    gemm_a_e     a_type;
    gemm_b_e     b_form;
    logic        transpose_b;
    logic        bias;
    logic        requant;
    logic        relu;
    logic        accumulate;
    gemm_q_e     q;
    logic        activation;   // the 256-entry table of the share
    gemm_out_e   out;
    gemm_op_e    op;
    logic        argmax;
    logic [15:0] mult;
    logic [5:0]  shift;
  } gemm_cmd_t;

  typedef enum logic [1:0] {
    SmxProb8,
    SmxNumer8,
    SmxNumer16
  } smx_out_e;

  typedef struct packed {
    instr_idx_t  instr;
    sram_addr_t  dst;
    sram_addr_t  dst_pitch;
    sram_addr_t  src;
    sram_addr_t  src_pitch;
    sram_addr_t  sums;
    dim_t        rows;
    dim_t        cols;
    dim_t        rows_per_head;  // never zero: equals rows when the program gave none
    smx_out_e    out;
    logic        score8;
    logic        causal;
    logic [31:0] pos;            // position of row 0, column 0 being position 0
    logic [31:0] window;         // 0 = none
  } smx_cmd_t;

  typedef enum logic [1:0] {
    NrmLayer,
    NrmRms,
    NrmRope
  } nrm_op_e;


  typedef struct packed {
    instr_idx_t instr;
    nrm_op_e    op;
    sram_addr_t dst;
    sram_addr_t dst_pitch;
    sram_addr_t src;
    sram_addr_t src_pitch;
    sram_addr_t param;        // norms: when not from the stream; ROPE: cos/sin rows
    sram_addr_t param_pitch;  // ROPE
    dim_t       rows;
    dim_t       cols;         // ROPE: head dimension
    dim_t       heads;        // ROPE
    logic       pairs;        // ROPE: neighbouring lanes instead of halves
    logic       stream;
    logic       out16;
  } nrm_cmd_t;

  typedef struct packed {
    instr_idx_t           instr;
    npu_isa_pkg::vec_op_e op;         // GELU and SILU arrive as VecTable
    sram_addr_t           dst;
    sram_addr_t           dst_pitch;
    sram_addr_t           a;
    sram_addr_t           a_pitch;
    sram_addr_t           b;          // second operand, or the table in SRAM
    sram_addr_t           b_pitch;
    dim_t                 rows;
    dim_t                 elements;
    logic signed [15:0]   hi;         // SCALE_SHIFT: scale, CLAMP: upper bound
    logic signed [15:0]   lo;         // CLAMP: lower bound
    logic [5:0]           shift;
    logic                 a16;
    logic                 c16;
    logic                 stream;     // table from the stream
  } vec_cmd_t;

  // ---------------------------------------------------------------------------------------------
  // Running argmax of the GEMM engine: column of the best value since it was cleared
  // ---------------------------------------------------------------------------------------------
  typedef struct packed {
    logic        valid;   // there was a value
    logic [31:0] column;
  } argmax_t;

  // ---------------------------------------------------------------------------------------------
  // Machine registers of a program: loaded at its start, changed by its instructions
  // ---------------------------------------------------------------------------------------------
  typedef struct packed {
    logic [31:0]     pos;
    logic [31:0]     token;
    logic [31:0]     window;
    logic [31:0]     outcnt;
    logic [31:0]     loopleft;
    logic [31:0]     eos;
    mem_addr_t       kvbase;         // SRAM byte address or memory address
    logic [31:0]     kvlayer;
    logic [31:0]     kvhead;
    logic [31:0]     kvvoff;
    logic [31:0]     kvcap;
    logic            cache_in_sram;  // fixed while a program runs
    mem_addr_t [7:0] base;
  } machine_t;

  // Those that the host sees while a program runs and when it has ended
  typedef struct packed {
    logic [31:0] outcnt;
    logic [31:0] token;
    logic [31:0] pos;
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
    ticket_op_e           op;
    npu_isa_pkg::engine_e engine;
    logic [31:0]          bytes;
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
