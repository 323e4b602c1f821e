// SPDX-License-Identifier: Apache-2.0
//
// Operations: decoded instructions, one type for each engine. All addresses and pitches of SRAM are in
// words, natural pitches already filled in, every operand range already checked.

package npu_operation_pkg;

  import npu_pkg::*;

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
  } load_operation_t;

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
  } store_operation_t;

  typedef struct packed {
    sram_addr_t c;  // result, first word
    sram_addr_t c_pitch;  // words
    sram_addr_t a;  // first operand, first word
    sram_addr_t a_pitch;  // words
    sram_addr_t b;  // weights in SRAM, first word; with the stream words of a line of A, 0: a row
    sram_addr_t b_pitch;  // words; tile order ignores it; with the stream between lines of A
    sram_addr_t d;  // second operand or partial sums, first word
    sram_addr_t d_pitch;  // words
    sram_addr_t sums;  // softmax sums, first word; a word for each row
    dim_t m;  // rows of A and C
    dim_t n;  // columns of B and C
    dim_t k;  // may be zero: an empty sum
    npu_isa_pkg::gemm_a_e a_type;  // elements of A
    npu_isa_pkg::gemm_b_e b_form;  // where B lies and in which order; never GemmBStreamMx
    npu_isa_pkg::weight_format_e format;  // of B in the stream
    npu_isa_pkg::weight_group_e group;  // of its groups, where the format has them
    logic transpose_b;  // B lies transposed, as n rows of k
    logic depthwise;  // a row of A has a channel for each column
    logic bias;  // is added in front of requantisation
    logic requant;  // to 8 or 16 bits, else sums of 32
    logic relu;  // negative results become zero
    logic accumulate;  // D is partial sums
    npu_isa_pkg::gemm_q_e q;  // where multiplier and shift come from
    logic activation;  // the 256-entry table of the share
    npu_isa_pkg::gemm_out_e out;  // elements of C, or none
    npu_isa_pkg::gemm_op_e op;  // elementwise with D
    logic argmax;  // the running argmax counts it
    logic [15:0] mult;  // of requantisation by the instruction, or of OP = MUL
    logic [5:0] shift;  // right shift that belongs to it
  } gemm_operation_t;

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
  } smx_operation_t;

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
  } nrm_operation_t;

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
  } vec_operation_t;

  // An operation for each engine, that of engine 0 lowest; which of them hold is said beside it
  typedef struct packed {
    vec_operation_t   vec;    // of EngVec
    nrm_operation_t   nrm;    // of EngNrm
    smx_operation_t   smx;    // of EngSmx
    gemm_operation_t  gemm;   // of EngGemm
    store_operation_t store;  // of EngSt
    load_operation_t  load;   // of EngLd
  } operations_t;

  // Bits of the operation of each engine
  localparam int unsigned OperationBits[NumEngines] = '{
      $bits(load_operation_t),
      $bits(store_operation_t),
      $bits(gemm_operation_t),
      $bits(smx_operation_t),
      $bits(nrm_operation_t),
      $bits(vec_operation_t)
  };

  // Lowest bit of the operation of an engine
  function automatic int unsigned operation_low(int unsigned engine);
    operation_low = 0;
    for (int unsigned e = 0; e < engine; e++) operation_low += OperationBits[e];
  endfunction

endpackage
