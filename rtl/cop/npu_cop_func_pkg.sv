// SPDX-License-Identifier: Apache-2.0
//
// What travels through the unit for exp and GELU.

package npu_cop_func_pkg;

  // What is known of a result before its significand
  typedef struct packed {
    logic special;  // the result itself is known
    logic fixed;  // Q16.16 instead of float32
    logic sign;
    logic signed [9:0] exponent;  // biased, of the highest bit; 6 less than its weight where fixed
  } outcome_t;

  // A chain of multiplications. A power makes 2^f and, of GELU, all that follows; its steps are those
  // of `power_step_e`. A ratio makes the Mills ratio of a GELU in seven steps, from w^6 on.
  typedef struct packed {
    logic ratio;
    logic gelu;
    logic turn;  // alternates from one GELU to the next
    logic [2:0] step;
    outcome_t outcome;
    logic [6:0] shift;  // GELU of a positive number: places from 2^f * M to the tail; 64: no tail
    logic [23:0] number;  // GELU: significand of the operand; ratio: piece
    logic [63:0] way;  // what the polynomial is of, or in its upper half a special result
    logic [63:0] power;  // 2^f or the first factor of it, 63 fraction bits
  } chain_t;

  // A chain, and what a step begins with: each step makes that of the next one.
  typedef struct packed {
    chain_t chain;
    logic [63:0] value;  // 64 fraction bits
  } step_t;

  typedef enum logic [2:0] {
    StepProduct,  // of both tables
    StepThird,  // polynomial of degree four: w^3
    StepSecond,
    StepFirst,
    StepLow,  // without its constant
    StepPower,  // 2^f, where exp ends
    StepTail,  // times the Mills ratio: the tail of the normal distribution
    StepResult  // times the operand
  } power_step_e;

  localparam logic [2:0] RatioLast = 3'd6;

endpackage
