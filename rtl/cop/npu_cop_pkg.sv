// SPDX-License-Identifier: Apache-2.0
//
// Types of the coprocessor: the channels of its port (CV-X-IF 1.0 without compressed and memory
// interface), an instruction that is executed, its end, and what the register window shows.

package npu_cop_pkg;

  import npu_cop_isa_pkg::*;

  typedef logic [31:0] x_id_t;  // identifier of an instruction, as wide as CV-X-IF allows
  typedef logic [31:0] x_hartid_t;  // number of a hart, likewise

  typedef logic [2:0][31:0] x_sources_t;  // rs1, rs2, x[rd]

  // ---------------------------------------------------------------------------------------------
  // Port
  // ---------------------------------------------------------------------------------------------
  // An instruction is offered
  typedef struct packed {
    logic        valid;   // may be withdrawn; another id or hartid is another instruction
    logic [31:0] instr;   // instruction word, stable
    x_hartid_t   hartid;  // whose instruction it is
    x_id_t       id;      // increments from one instruction to the next, with holes and wraps
  } x_issue_req_t;

  // What becomes of it
  typedef struct packed {
    logic       ready;          // it is answered; does not depend on valid, but on operands
    logic       accept;         // it is ours, with valid and ready; the rest only with accept
    logic       writeback;      // its result goes to a register
    logic [2:0] register_read;  // operands it needs: rs1, rs2, x[rd]
    logic [2:0] is_float;       // which of rs1, rs2, rd are f registers on a host that has them
  } x_issue_rsp_t;

  // Operands, from the first cycle of the issue on or, with the split, behind it
  typedef struct packed {
    logic       valid;     // goes with that of the issue; a pulse with the split
    x_hartid_t  hartid;    // whose they are
    x_id_t      id;        // the instruction they belong to
    x_sources_t rs;
    logic [2:0] rs_valid;  // which of them are there; all that are needed with the split
  } x_register_t;

  // The host has made up its mind, from the first cycle of the issue on
  typedef struct packed {
    logic valid;  // pulse
    x_hartid_t hartid;  // whose instruction it is, with valid
    x_id_t id;  // the instruction, with valid; need not be one of ours
    logic kill;  // 1: it and all newer ones are killed; 0: it and all older ones are committed
  } x_commit_t;

  // The end of an instruction
  typedef struct packed {
    logic        valid;   // stays until ready, all stable
    x_hartid_t   hartid;  // whose instruction it was
    x_id_t       id;      // the instruction
    logic [4:0]  rd;      // its rd field
    logic        we;      // data goes to register rd
    logic [31:0] data;    // 0 without we
  } x_result_t;

  // What the host says. Commits are apart: they may depend on the answer to the issue.
  typedef struct packed {
    x_issue_req_t issue;
    x_register_t  operands;
    logic         result_ready;  // takes the result; may depend on its valid
  } x_req_t;

  // What the coprocessor says at once. Results are apart: the host's next word may depend on them.
  typedef struct packed {
    x_issue_rsp_t issue;
    logic         operands_ready;  // takes the operands, in the same cycle
  } x_rsp_t;

  // ---------------------------------------------------------------------------------------------
  // Execution
  // ---------------------------------------------------------------------------------------------
  // Who works on the elements
  typedef enum logic [3:0] {
    UnitDot,       // sum of products of bytes
    UnitSum,       // sum of words
    UnitMax,       // largest word
    UnitFloatMax,  // largest float
    UnitScale,     // products of bytes and the accumulator
    UnitMove,      // as they are
    UnitFacc,      // double sums
    UnitLanes,     // float32 lanes
    UnitDivide,
    UnitFunc,
    UnitRoot
  } cop_unit_e;

  function automatic cop_unit_e unit_of(cop_op_e op);
    unique case (op)
      CopVmac:                                                 return UnitDot;
      CopVreduce:                                              return UnitSum;
      CopVmax:                                                 return UnitMax;
      CopFvmax:                                                return UnitFloatMax;
      CopVmul:                                                 return UnitScale;
      CopFmacc, CopFvmac, CopFvreduce:                         return UnitFacc;
      CopFvmul, CopFvadd, CopFvsub, CopFvrelu, CopFvsubScalar: return UnitLanes;
      CopFvdiv:                                                return UnitDivide;
      CopVexp, CopFvexp, CopFvgelu, CopFgelu:                  return UnitFunc;
      CopVrsqrt, CopFvrsqrt, CopFrsqrt:                        return UnitRoot;
      default:                                                 return UnitMove;
    endcase
  endfunction

  // Bytes of an operand that a unit takes at once
  function automatic logic [4:0] piece_bytes(cop_unit_e cop_unit);
    unique case (cop_unit)
      UnitDot, UnitSum, UnitMax, UnitFloatMax: return 5'd16;
      UnitScale, UnitLanes:                    return 5'd8;
      default:                                 return 5'd4;
    endcase
  endfunction

  // The oldest instruction
  typedef struct packed {
    logic valid;  // it is committed and has its operands; stays until done, all stable
    logic [31:0] instr;  // instruction word
    cop_decoded_t decoded;  // what it is
    cop_unit_e cop_unit;  // who works on its elements
    logic [2:0][31:0] rs;  // rs1, rs2, x[rd]; 0 where it does not need them
  } cop_op_t;

  // Codes of STATUS
  typedef enum logic [3:0] {
    CodeNone    = 4'd0,
    CodeLength  = 4'd1,
    CodeDenied  = 4'd2,
    CodeBus     = 4'd3,
    CodeTimeout = 4'd4,
    CodeReset   = 4'd5
  } cop_code_e;

  // Why an instruction has failed
  typedef struct packed {
    logic        valid;
    cop_code_e   code;
    logic [31:0] addr;   // of the element's operand in memory
    logic [31:0] index;  // elements completed
  } cop_fault_t;

  // What an instruction would end with
  typedef struct packed {
    logic        ready;  // it ends in this cycle, if it is valid and its result has room
    logic [31:0] data;   // its result, with ready
    cop_fault_t  fault;  // its fault, with ready
  } cop_end_t;

  // ---------------------------------------------------------------------------------------------
  // Arrays in memory
  // ---------------------------------------------------------------------------------------------
  localparam int unsigned CountBits = 21;  // of elements and bytes of an operand, at most 1 MiB

  typedef logic [CountBits-1:0] cop_count_t;

  // A part of an operand that is gone through without a look at what is written meanwhile
  typedef struct packed {
    logic        start;  // pulse: forget what was before
    logic [31:0] addr;   // first byte, with start
    cop_count_t  bytes;  // of all elements, at least 1, with start
  } cop_range_t;

  // A burst of words
  typedef struct packed {
    logic        valid;  // may be withdrawn
    logic [27:0] word;   // address / 16 of the first one
    logic [2:0]  len;    // words - 1; all in one block of 128 bytes
  } cop_read_req_t;

  typedef struct packed {
    logic         ready;   // takes the burst; only with its valid
    logic         denied;  // may not be read; only with its valid
    logic         valid;   // a word of the oldest burst, which cannot be refused
    logic         error;   // the memory has not given it, with valid
    logic [127:0] data;    // 16 bytes, with valid
  } cop_read_rsp_t;

  // A word to write
  typedef struct packed {
    logic         valid;  // stays until ready, unless everything is dropped
    logic [27:0]  word;   // address / 16
    logic [127:0] data;   // 16 bytes
    logic [15:0]  strb;   // which of them are written
  } cop_write_req_t;

  typedef struct packed {
    logic ready;  // takes a word; does not depend on its valid
    logic done;   // pulse: the oldest word is answered
    logic error;  // it has not been written, with done
  } cop_write_rsp_t;

  typedef struct packed {
    logic reads;  // a level: the memory owes words, or will be asked
    logic writes;  // a level: it owes an answer to a word, or will be asked
    logic expired;  // pulse: in the cycle before it owed something and had been silent for too long
  } cop_bus_t;

  // 16 bytes of an operand, in the order of its elements wherever it lies
  typedef struct packed {
    logic         valid;  // stays until taken, stable
    logic [127:0] data;
    logic [4:0]   good;   // elements before the first one that cannot be read; or 16
    cop_code_e    code;   // why that one cannot be read
  } cop_chunk_t;

  // Elements for a unit
  typedef struct packed {
    logic         valid;  // stays until taken; the lower 8 bytes of a and b, and count, are stable
    logic [127:0] a;      // of the first operand, the first element lowest
    logic [127:0] b;      // of the second one
    logic [4:0]   count;  // how many there are; a unit takes no more than it can
  } cop_piece_t;

  // Results of a piece
  typedef struct packed {
    logic        valid;  // stays until taken, stable
    logic [63:0] data;   // elements, the first one lowest
  } cop_group_t;

  // What is gone through
  typedef struct packed {
    logic        bytes;     // elements are bytes; else words
    logic        reads_a;   // there is a first operand, a second one, a destination
    logic        reads_b;
    logic        writes_d;
    logic [4:0]  most;      // bytes that the unit takes at once: 4, 8 or 16
    logic [31:0] a;         // first elements
    logic [31:0] b;
    logic [31:0] d;
  } cop_job_t;

  function automatic cop_count_t in_bytes(cop_count_t elements, logic of_bytes);
    return of_bytes ? elements : CountBits'({elements, 2'b00});
  endfunction

  function automatic cop_count_t in_elements(cop_count_t size, logic of_bytes);
    return of_bytes ? size : CountBits'(size[CountBits-1:2]);
  endfunction

  // How a range goes; elements count from its first one
  typedef struct packed {
    logic       done;          // a level: all is written and answered, or all before a fault
    logic       read_failed;   // a level, with done: element next_read cannot be read
    cop_code_e  read_code;     // with read_failed: why
    logic       read_second;   // with read_failed: of the second operand
    cop_count_t next_read;     // the first element that is not taken
    logic       write_denied;  // a level, with done: element next_write may not be written
    logic       write_failed;  // pulse: the memory has not written element answered
    cop_count_t next_write;    // the first element without a place in a word
    cop_count_t answered;      // the first element that is not known to be written
    cop_count_t dealt;         // the first element that no unit has taken
  } cop_progress_t;

  // ---------------------------------------------------------------------------------------------
  // Window
  // ---------------------------------------------------------------------------------------------
  typedef struct packed {
    logic [63:0]      acc;    // integer accumulator
    logic [63:0]      facc;   // float accumulator, a double
    logic [3:0][31:0] vregs;  // vector registers of 4 bytes
  } cop_state_t;

  // What the host sets
  typedef struct packed {
    logic        clear_acc;   // pulse: acc is to be 0, behind an instruction that is running
    logic        clear_facc;  // pulse: facc is to be +0, likewise
    logic        clear;       // pulse: forget the fault
    logic        trap;        // a level: refuse instructions while there is a fault
    logic [19:0] limit;       // longest operand of a counted instruction in bytes; 0: 1 MiB
  } cop_control_t;

  // The fault that stands, and the instruction word that failed
  typedef struct packed {
    cop_fault_t  fault;
    logic [31:0] instr;
  } cop_report_t;

  // What the counters count in this cycle
  typedef struct packed {
    logic instr;       // an instruction's result is taken
    logic busy;        // an instruction that is accepted and not killed is inside
    logic read_beat;   // the memory gives a word
    logic write_beat;  // the memory takes a word
  } cop_events_t;

endpackage
