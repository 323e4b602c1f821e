// SPDX-License-Identifier: Apache-2.0
//
// Types of the coprocessor: the channels of its port (CV-X-IF 1.0 without compressed and memory
// interface), an instruction that is executed, its end, and what the register window shows.

package npu_cop_pkg;

  import npu_cop_isa_pkg::*;

  localparam int unsigned XIdWidth = 4;  // bits of an instruction's number at the port

  typedef logic [XIdWidth-1:0] x_id_t;

  // ---------------------------------------------------------------------------------------------
  // Port
  // ---------------------------------------------------------------------------------------------
  // An instruction is offered
  typedef struct packed {
    logic        valid;  // stays until ready, all stable
    logic [31:0] instr;  // instruction word
    x_id_t       id;     // number of the instruction
  } x_issue_req_t;

  // What becomes of it
  typedef struct packed {
    logic       ready;          // it is answered; does not depend on valid
    logic       accept;         // it is ours, with valid and ready; the rest only with accept
    logic       writeback;      // its result goes to a register
    logic [2:0] register_read;  // operands it needs: rs1, rs2, x[rd]
    logic [2:0] is_float;       // which of rs1, rs2, rd are f registers on a host that has them
  } x_issue_rsp_t;

  // Operands, in the cycle of the issue or later
  typedef struct packed {
    logic             valid;     // stays until ready, id and what is valid stable
    x_id_t            id;        // the instruction they belong to
    logic [2:0][31:0] rs;        // rs1, rs2, x[rd]
    logic [2:0]       rs_valid;  // which of them are there
  } x_register_t;

  // The host has made up its mind, in the cycle of the issue or later
  typedef struct packed {
    logic  valid;  // pulse
    x_id_t id;     // the instruction, with valid
    logic  kill;   // 1: it and all newer ones are killed; 0: it and all older ones are committed
  } x_commit_t;

  // The end of an instruction
  typedef struct packed {
    logic        valid;  // stays until ready, all stable
    x_id_t       id;     // the instruction
    logic [4:0]  rd;     // its rd field
    logic        we;     // data goes to register rd
    logic [31:0] data;   // 0 without we
  } x_result_t;

  // What the host says
  typedef struct packed {
    x_issue_req_t issue;
    x_register_t  operands;
    x_commit_t    commit;
    logic         result_ready;  // takes the result; may depend on its valid
  } x_req_t;

  // What the coprocessor says
  typedef struct packed {
    x_issue_rsp_t issue;
    logic         operands_ready;  // takes the operands, in the same cycle
    x_result_t    result;
  } x_rsp_t;

  // ---------------------------------------------------------------------------------------------
  // Execution
  // ---------------------------------------------------------------------------------------------
  // The oldest instruction
  typedef struct packed {
    logic valid;  // it is committed and has its operands; stays until done, all stable
    logic [31:0] instr;  // instruction word
    cop_decoded_t decoded;  // what it is
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

  // The end of an instruction
  typedef struct packed {
    logic        done;   // it ends in this cycle
    logic [31:0] data;   // its result, with done
    cop_fault_t  fault;  // its fault, with done
  } cop_end_t;

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
    logic        clear_acc;   // pulse: acc is 0 from the next cycle on
    logic        clear_facc;  // pulse: facc is +0 from the next cycle on
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
