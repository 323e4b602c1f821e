// SPDX-License-Identifier: Apache-2.0
//
// The parameter stream: where it lies, and the tickets that share it out in the order of dispatch.

package npu_stream_pkg;

  import npu_pkg::*;

  // A parameter stream: where it lies and how many bytes it has; none while the length is 0
  typedef struct packed {
    mem_addr_t   base;    // of its first byte, a multiple of 64
    logic [31:0] length;  // bytes, a multiple of 64
  } stream_range_t;

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

  // What an engine sees of its share
  typedef struct packed {
    logic  valid;  // a line; stays until it is taken, data stable
    line_t data;   // the next line of the share, first byte lowest; with valid
  } share_line_t;

  // What an engine answers
  typedef struct packed {
    logic ready;  // takes the line: a level, which does not depend on its valid
    logic last;   // that line is the share's last; with ready
  } share_take_t;

endpackage
