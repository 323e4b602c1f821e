// SPDX-License-Identifier: Apache-2.0
//
// What the benches of single blocks share: how the world around a block behaves.

package unit_pkg;

  // Percentages are of cycles, 0 to 99.
  typedef struct packed {
    logic [31:0] seed;  // of all random choices
    logic [6:0] read_stall;  // an SRAM port that reads accepts nothing
    logic [6:0] write_stall;  // an SRAM port that writes accepts nothing
    logic [6:0] stream_gap;  // no share is offered anew
    logic [6:0] memory_stall;  // the memory accepts no address or word, answers nothing
  } world_t;

  // What is played: a program, whose stream lies in memory as well, or a list for `unit_player`.
  typedef struct packed {
    logic [31:0] words;  // instruction words, or cycles
    logic [31:0] stream_bytes;
    logic cache_in_sram;  // where K/V instructions find the cache; else in memory
  } program_t;

  // What goes wrong in the AXI memory; ranges are byte addresses, both ends inclusive
  typedef struct packed {
    logic [31:0] error_first;
    logic [31:0] error_last;
    logic [31:0] silent_first;  // 0 to the last address: it accepts nothing either
    logic [31:0] silent_last;
    logic read_errors;  // reads of the first range answer with an error
    logic write_errors;
    logic silent_reads;  // reads of the second range are not answered
    logic silent_writes;
    logic no_words;  // no word of a write is accepted
  } memory_faults_t;

  // An element that `unit_elements` plays
  typedef struct packed {
    logic [52:0] unused;
    logic        clears;   // drops what is inside, and is no element
    logic        waits;    // is offered when no element is inside
    logic        answers;  // has a result
    logic [7:0]  choice;   // of an operation of the unit
    logic [31:0] b;
    logic [31:0] a;
  } element_t;

  // Places in memory: what is played, the stream, and what has been observed
  localparam logic [31:0] ProgramAt = 32'h0040_0000;
  localparam logic [31:0] StreamAt = 32'h0080_0000;
  localparam logic [31:0] ObservedAt = 32'h0080_0000;
  // Bytes of each list of requests, and of what is noted of it
  localparam logic [31:0] SlotBytes = 32'h0001_0000;

endpackage
