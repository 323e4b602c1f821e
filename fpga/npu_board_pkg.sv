// SPDX-License-Identifier: Apache-2.0
//
// What passes between the parts of a board: accesses of the bridge to the memory, and the bytes of
// its protocol.

package npu_board_pkg;
  import npu_pkg::*;

  // One access of the bridge to a word of memory
  typedef struct packed {
    logic      valid;  // stays until ready, all stable
    logic      write;  // with valid; 0: read
    mem_addr_t addr;   // bytes, a multiple of 16; with valid
    word_t     wdata;  // with write
  } word_req_t;

  // The answer of the memory, in the order of the accesses
  typedef struct packed {
    logic  ready;  // the access is taken; may depend on valid
    logic  ack;    // pulse: it has been made; a cycle after ready or later
    logic  error;  // there is no such word, with ack
    word_t rdata;  // the word that was read, with ack
  } word_rsp_t;

  // First byte of a request
  typedef enum logic [7:0] {
    OpState       = "?",  // only the status byte is wanted
    OpReadReg     = "R",
    OpWriteReg    = "W",
    OpReadMemory  = "r",
    OpWriteMemory = "w"
  } op_e;

  // Last byte of an answer
  typedef struct packed {
    logic [5:0] mark;   // always StatusMark
    logic       irq;    // the chip's interrupt line
    logic       error;  // an access of the request has failed, or there is no such request
  } status_t;

  localparam logic [5:0] StatusMark = 6'b010000;

endpackage
