// SPDX-License-Identifier: Apache-2.0
//
// Types that the parts of the command port share. Shape, places and strides of a tile keep the
// layout of the registers GEMM_CFG, GEMM_BASE and GEMM_STRIDE.

package npu_cmd_pkg;

  typedef npu_cmd_regs_pkg::npu_cmd_regs__cmd_op_e op_e;

  typedef struct packed {
    logic [23:0] cfg;     // GEMM_CFG: rows, columns and depth of a GEMM; bytes of a VRELU
    logic [23:0] base;    // GEMM_BASE: places of A, B and C
    logic [23:0] stride;  // GEMM_STRIDE: from row to row of A, B and C
  } tile_t;

  // The fields of a tile, those of a small scratchpad filled up with zeros
  typedef struct packed {
    logic [8:0] len;       // VRELU: bytes
    logic [7:0] m;         // rows of A and C
    logic [7:0] n;         // columns of B and C
    logic [7:0] k;         // columns of A, rows of B
    logic [7:0] a;         // elements; VRELU: source in bytes
    logic [7:0] b;         // elements; VRELU: destination in bytes
    logic [7:0] c;         // bytes
    logic [7:0] stride_a;  // elements
    logic [7:0] stride_b;  // elements
    logic [7:0] stride_c;  // bytes
  } shape_t;

  // `wide`: the scratchpad has more than 64 bytes.
  function automatic shape_t tile_shape(tile_t tile, bit wide);
    tile_shape.len      = {wide && tile.cfg[8], wide && tile.cfg[7], tile.cfg[6:0]};
    tile_shape.m        = wide ? tile.cfg[7:0] : {6'b0, tile.cfg[1:0]};
    tile_shape.n        = wide ? tile.cfg[15:8] : {6'b0, tile.cfg[9:8]};
    tile_shape.k        = wide ? tile.cfg[23:16] : {5'b0, tile.cfg[18:16]};
    tile_shape.a        = wide ? tile.base[7:0] : {2'b0, tile.base[5:0]};
    tile_shape.b        = wide ? tile.base[15:8] : {2'b0, tile.base[13:8]};
    tile_shape.c        = wide ? tile.base[23:16] : {2'b0, tile.base[21:16]};
    tile_shape.stride_a = wide ? tile.stride[7:0] : {4'b0, tile.stride[3:0]};
    tile_shape.stride_b = wide ? tile.stride[15:8] : {4'b0, tile.stride[11:8]};
    tile_shape.stride_c = wide ? tile.stride[23:16] : {4'b0, tile.stride[19:16]};
  endfunction

  // What the operation unit executes
  typedef struct packed {
    op_e         opcode;   // which one
    logic        ternary;  // DOT16_S2 takes its lanes as ternary
    logic [31:0] a;        // operand A of a scalar operation
    logic [31:0] b;        // operand B
    logic [31:0] acc;      // accumulator operand, or 2:4 positions
    tile_t       tile;     // of GEMM and VRELU
  } operation_t;

  // How an operation ended
  typedef enum logic [1:0] {
    EndOkay,  // done
    EndRefused,  // shape or place: nothing has changed
    EndReserved  // a reserved lane: RESULT has not changed
  } end_e;

  function automatic logic is_gemm(op_e opcode);
    return opcode inside {npu_cmd_regs_pkg::npu_cmd_regs__cmd_op__GEMM_S8,
                          npu_cmd_regs_pkg::npu_cmd_regs__cmd_op__GEMM_S4};
  endfunction

  function automatic logic is_vrelu(op_e opcode);
    return opcode == npu_cmd_regs_pkg::npu_cmd_regs__cmd_op__VRELU_S8;
  endfunction

  // What the operation unit says of itself; RESULT and RESULT_HI follow done by a cycle
  typedef struct packed {
    logic        ready;        // takes an operation: a level while idle
    logic        done;         // pulse: the last cycle of one, two after it was taken or later
    end_e        how;          // how it ended, with done
    logic [31:0] result;       // RESULT, of the last scalar operation without error
    logic [31:0] result_hi;    // RESULT_HI, the same
    logic [2:0]  busy_count;   // cycles that an operation has been running, at most 7; else 0
    op_e         opcode;       // of the operation last taken
    logic        gemm_busy;    // a level: a GEMM runs
    logic        vector_busy;  // a level: a VRELU runs
  } unit_status_t;

  // A write of up to sixteen bytes into the scratchpad, from byte `addr` on, at once
  typedef struct packed {
    logic [15:0]  we;    // bit i: byte addr + i is written
    logic [7:0]   addr;  // bytes
    logic [127:0] data;  // byte i in bits 8i+7:8i
  } scratch_write_t;

  // Registers that the ring of descriptors works from
  typedef struct packed {
    logic [31:0] base;          // first byte of the ring, a multiple of 4
    logic [2:0]  head;          // index behind the last entry, moves on at any time
    logic [2:0]  tail;          // index of the next entry, or of the one that failed
    logic [23:0] timeout;       // cycles of one wait for the memory; 0 = for ever
    logic [31:0] cq_base;       // first byte of the completion ring, a multiple of 16
    logic        cq_enable;     // write records
    logic [3:0]  cq_log2_size;  // records that the completion ring holds, as a power of two
    logic [15:0] cq_tail;       // records consumed, modulo 65,536; moves on at any time
  } ring_regs_t;

  // What the ring of descriptors says of its run
  typedef struct packed {
    logic       busy;     // a level, from the cycle after the start on
    logic       ended;    // pulse, in the last busy cycle
    logic       failed;   // it ends with an error, with ended
    logic [7:0] code;     // DESC_STATUS[7:0], with ended
    logic       entry;    // pulse: a descriptor has completed or failed
    logic [2:0] index;    // of an entry, with ended and with entry
    logic       tail_we;  // pulse: a descriptor has completed
    logic [2:0] tail;     // index of the next entry, with tail_we
  } ring_status_t;

  // What the registers show: levels
  typedef struct packed {
    unit_status_t unit;       // of the operation unit
    logic         busy;       // operation or ring runs
    logic         done;       // ended, until the next start or clear
    logic         error;      // ended with an error, with done
    logic [7:0]   code;       // DESC_STATUS[7:0]
    logic         ring_busy;  // the ring runs
    logic [2:0]   index;      // entry that completed last or failed
    logic [15:0]  cq_head;    // records written, modulo 65,536
  } status_t;

  // What the operation unit does in a cycle
  typedef struct packed {
    logic        begun;  // an operation that is not refused
    logic [23:0] macs;   // products of a GEMM, in its last cycle
    logic [23:0] bytes;  // of the scratchpad, moved by a tile, in its last cycle
  } unit_events_t;

  // What the ring does in a cycle
  typedef struct packed {
    logic        launched;     // a program starts
    logic        stall;        // it waits for the memory
    logic [4:0]  read_words;   // 32 bits each, of descriptors and streams
    logic [13:0] write_words;  // 32 bits each, of results
    logic [15:0] bytes;        // of the scratchpad, read or written
  } ring_events_t;

  // What happens in a cycle
  typedef struct packed {
    logic         failed;       // an operation by register or a run of the ring ended with an error
    logic         unsupported;  // an operation was refused, or a run of the ring failed
    unit_events_t unit;         // of the operation unit
    ring_events_t ring;         // of the ring of descriptors
  } events_t;

  // Counters; those of the traffic count words of four bytes.
  typedef struct packed {
    logic [31:0] cycles;         // cycles with busy
    logic [31:0] macs;           // products of GEMM
    logic [31:0] ops;            // operations and programs begun
    logic [31:0] errors;         // starts and descriptors that ended with an error
    logic [31:0] unsupported;    // refused operations and failed descriptors
    logic [31:0] stalls;         // cycles in which the ring waited for the memory
    logic [31:0] scratch_bytes;  // of the scratchpad, read and written
    logic [31:0] thermal;        // events that the host has reported
    logic [31:0] ring_cycles;    // cycles in which the ring ran
    logic [31:0] read_words;     // of descriptors and streams
    logic [31:0] write_words;    // of results
  } counters_t;

  // Bytes of memory that go to the scratchpad before the operation; all are multiples of 4
  typedef struct packed {
    npu_pkg::mem_addr_t source;  // first byte in memory
    logic [7:0]         offset;  // first byte of the scratchpad
    logic [5:0]         bytes;   // how many, 4 to 60
  } stream_t;

  // A result that goes to memory: rows of words from the scratchpad, or RESULT and RESULT_HI
  typedef struct packed {
    npu_pkg::mem_addr_t dest;     // first byte in memory, a multiple of 4
    logic               scalar;   // RESULT and RESULT_HI
    logic [7:0]         rows;     // rows of 32-bit words
    logic [7:0]         columns;  // 32-bit words of a row
    logic [5:0]         first;    // 32-bit word of the scratchpad
    logic [5:0]         stride;   // 32-bit words from row to row
  } writeback_t;

  // The end of a part of a descriptor's work, a pulse
  typedef struct packed {
    logic done;    // all is done
    logic failed;  // an error of the memory, or no region permits it
  } step_end_t;

  // Memory of the ring: words of 16 bytes. A request is accepted; two cycles later it is denied if
  // no region permits it, and no other is accepted meanwhile. What comes back is in order.
  typedef struct packed {
    logic               valid;  // a word to read
    npu_pkg::mem_addr_t addr;   // its first byte, a multiple of 16
  } read_req_t;

  typedef struct packed {
    logic           ready;   // accepted; only with the request's valid
    logic           denied;  // pulse: no region permits the word last accepted; no answer comes
    logic           valid;   // pulse: a word that cannot be refused
    logic           error;   // in place of data, with valid
    npu_pkg::word_t data;    // the word, with valid
  } read_rsp_t;

  typedef struct packed {
    logic               valid;  // a word to write
    npu_pkg::mem_addr_t addr;   // its first byte, a multiple of 16
    npu_pkg::word_t     data;   // the word
    logic [15:0]        strb;   // bit i: byte i is written
  } write_req_t;

  typedef struct packed {
    logic ready;   // accepted; only with the request's valid
    logic denied;  // pulse: no region permits the word last accepted; no answer comes
    logic valid;   // pulse: the response to the oldest word without one
    logic error;   // it was not written well, with valid
  } write_rsp_t;

  // An entry of the ring
  typedef struct packed {
    logic           valid;  // stays until it is taken while the memory may be used, all stable
    logic           error;  // it could not be read, with valid
    npu_pkg::word_t data;   // 16 bytes, with valid and without error
  } entry_t;

  // A descriptor, decoded; word 0 alone decides all but the tag and what is wrong
  typedef struct packed {
    logic       owner;          // it belongs to the chip
    logic       extended;       // it has a second entry
    logic       launch;         // launches a program; only if extended
    logic       stream;         // bytes of memory go to the scratchpad first
    logic       writeback;      // its result goes to memory
    logic [7:0] tag;            // for its record; of an extended entry
    logic       bad_extension;  // it is extended and holds what is not allowed
    logic       bad_stream;     // its stream has a wrong place or length
    logic       bad_writeback;  // its writeback has a wrong place or shape
  } descriptor_t;

  // What a record tells of the run of its descriptor
  typedef struct packed {
    logic        active;  // a level until it is written, a time-out or a soft reset; rest stable
    logic [7:0]  code;    // how the descriptor ended, as DESC_STATUS[7:0]
    logic [7:0]  tag;     // of an extended entry, else 0
    logic [31:0] cycles;  // from the entry's arrival to its end
  } record_req_t;

endpackage
