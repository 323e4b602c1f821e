// SPDX-License-Identifier: Apache-2.0
//
// Ports of the memory port, what is set for it, and the length of its bursts. A client asks for a
// burst that stays inside a 4 KiB page, naming the instruction that it works for. Data of a read comes
// back in order and cannot be refused.

package npu_mem_pkg;

  import npu_pkg::*;

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

  // How the memory port fares
  typedef struct packed {
    logic   idle;   // a level: the bus owes no answer
    logic   stuck;  // a level: a wait for the memory is longer than its limit
    error_t error;  // a cycle or longer, of an access that failed
  } bus_status_t;

  // Longest burst on the memory port, in words.
  localparam int unsigned MaxBurst = 32;

  // Words that a burst from there on may have: MaxBurst, or those up to a 4 KiB page.
  function automatic logic [5:0] most_words(mem_addr_t addr);
    most_words = 6'(MaxBurst);
    if (addr[11:9] == '1) most_words = 6'(MaxBurst) - {1'b0, addr[8:4]};
  endfunction

  // Length of the next burst of a transfer
  function automatic logic [5:0] burst_words(mem_addr_t addr, logic [31:0] words_left);
    burst_words = most_words(addr);
    if (words_left[31:6] == '0 && words_left[5:0] < burst_words) burst_words = words_left[5:0];
  endfunction

endpackage
