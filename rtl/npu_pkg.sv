// SPDX-License-Identifier: Apache-2.0
//
// What every part of the core speaks of: words, lines and addresses, engines and their state, errors,
// tiles, and what a program has generated.

package npu_pkg;

  localparam int unsigned WordBytes = npu_isa_pkg::Word;
  localparam int unsigned WordBits = 8 * WordBytes;
  // The read side of the parameter stream: four words at once.
  localparam int unsigned LineBytes = npu_isa_pkg::Line;
  localparam int unsigned LineBits = 8 * LineBytes;

  localparam int unsigned NumEngines = 6;

  typedef logic [WordBits-1:0] word_t;
  typedef logic [LineBits-1:0] line_t;
  typedef logic [15:0] sram_addr_t;  // in words
  typedef logic [31:0] mem_addr_t;  // in bytes
  typedef logic [31:0] instr_idx_t;  // index of a 16-byte word in the program
  typedef logic [15:0] dim_t;

  // Why a program ends early
  typedef struct packed {
    logic                 valid;   // it does; the rest counts with it
    npu_isa_pkg::error_e  code;    // what is wrong
    npu_isa_pkg::engine_e engine;  // whose access or instruction it is
    instr_idx_t           instr;   // index of the instruction
    mem_addr_t            addr;    // bytes, of the access; zero where none is to blame
  } error_t;

  // What an engine says of its instructions
  typedef struct packed {
    logic done;   // pulse: the oldest one is finished
    logic busy;   // has one
    logic stall;  // a port of its SRAM or its stream holds it up
  } engine_status_t;

  // A step of a row engine, and which word of SRAM it needs
  typedef struct packed {
    logic       valid;  // stays until it is taken, all stable
    logic       read;   // asks for a word; only with word
    logic       word;   // needs a word, this one's or an earlier one's
    logic       keep;   // the next step needs the same word; only with word
    sram_addr_t addr;   // of the word, with read
  } row_step_t;

  // A word of an engine's result, row by row
  typedef struct packed {
    logic  valid;  // stays until it is taken, all stable
    word_t data;   // all 16 bytes, zero past the row's end; with valid
    logic  last;   // the last word of its row, with valid
  } row_word_t;

  // Edge of the tiles in which weights are ordered and operands are walked through. A smaller array
  // uses the files and programs of one of 16, part of a tile at a time.
  function automatic int unsigned tile_edge(int unsigned array_dim);
    return (array_dim > 16) ? array_dim : 16;
  endfunction

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

endpackage
