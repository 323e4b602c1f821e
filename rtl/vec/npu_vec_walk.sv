// SPDX-License-Identifier: Apache-2.0
//
// Order of work of VEC: the table first, if it lies in SRAM, then row by row the operands; two
// operands alternate word by word. A step covers 16 elements if input and output are int8 and there
// are lanes for them, else 8; so int8 words that become int16, or are more than the lanes take, serve
// two steps. The second of these comes without a word. Addresses are running sums. An idle walk has
// the first step of the operation at hand before it starts, and hands it out as it starts.

module npu_vec_walk #(
  parameter int unsigned Lanes = 16  // elements of int8 in a step, 16 or 8
) (
  input logic clk_i,  // clock
  input logic rst_ni, // reset, active low

  input logic start_i,  // pulse: an operation begins; not while active_o
  // The walker needs no destination, constants or instruction index.
  /* verilator lint_off UNUSEDSIGNAL */
  input npu_operation_pkg::vec_operation_t op_i,  // with start_i; rows, elements at least 1
  /* verilator lint_on UNUSEDSIGNAL */
  output logic active_o,  // steps are left; from the cycle after start_i at the earliest

  // Steps out, the first one with start_i, when it is taken at once
  output npu_pkg::row_step_t    step_o,        // no step keeps its word; stays until it is taken
  input  logic                  step_ready_i,  // may depend on step_o.valid
  output npu_vec_pkg::vec_tag_t step_tag_o     // what the word is for
);

  import npu_pkg::*;

  typedef enum logic [1:0] {
    StTable,
    StFirst,  // the only operand, or the first
    StSecond
  } state_e;

  localparam logic [3:0] LastTableWord = 4'(npu_isa_pkg::TableBytes / WordBytes - 1);

  typedef struct packed {
    state_e     state;
    logic       two;         // operands
    logic       halves;      // a word serves two steps
    logic       upper;       // the second of them
    logic [4:0] elements;    // of a step
    logic [3:0] table_word;
    dim_t       cols;        // of a row
    dim_t       rem;         // of the row from this step on
    dim_t       rows_left;
    sram_addr_t a_pitch;
    sram_addr_t b_pitch;
    sram_addr_t a_row;
    sram_addr_t b_row;
    sram_addr_t a_addr;
    sram_addr_t b_addr;
  } walk_t;

  logic active_q;
  walk_t walk_q, now, next;
  logic fire, row_end, all_end, again;

  assign fire = start_i || (active_q && step_ready_i);

  // What the step depends on: an operation that has not begun, or the walk so far
  always_comb begin
    now = walk_q;
    if (!active_q) begin
      now = '{
          state: (npu_isa_pkg::vec_table(op_i.op) && !op_i.stream) ? StTable : StFirst,
          two: npu_isa_pkg::vec_two(op_i.op),
          halves: !op_i.a16 && (op_i.c16 || Lanes == 8),
          upper: 1'b0,
          elements: (op_i.a16 || op_i.c16 || Lanes == 8) ? 5'd8 : 5'd16,
          table_word: '0,
          cols: op_i.elements,
          rem: op_i.elements,
          rows_left: op_i.rows,
          a_pitch: op_i.a_pitch,
          b_pitch: op_i.b_pitch,
          a_row: op_i.a,
          b_row: op_i.b,
          a_addr: op_i.a,
          b_addr: op_i.b
      };
    end
  end

  assign row_end = now.rem <= dim_t'(now.elements);
  assign again = now.halves && !now.upper && !row_end;
  assign active_o = active_q;
  assign step_o = '{
          valid: active_q || start_i,
          read: !now.upper,
          word: !now.upper,
          keep: 1'b0,
          addr: (now.state == StFirst) ? now.a_addr : now.b_addr
      };
  assign step_tag_o = '{
          param: now.state == StTable,
          hold: now.two && now.state == StFirst,
          last: row_end,
          upper: now.upper,
          lanes: row_end ? now.rem[4:0] : now.elements
      };

  // Behind the step
  always_comb begin
    next    = now;
    all_end = 1'b0;
    if (now.state == StTable) begin
      next.table_word = now.table_word + 1'b1;
      next.b_addr     = now.b_addr + 1'b1;
      if (now.table_word == LastTableWord) next.state = StFirst;
    end else if (now.two && now.state == StFirst) begin
      next.state = StSecond;
    end else begin
      next.upper = again;
      if (!again) next.state = StFirst;
      if (!row_end) begin
        next.rem = now.rem - dim_t'(now.elements);
        if (!again) begin
          next.a_addr = now.a_addr + 1'b1;
          next.b_addr = now.b_addr + 1'b1;
        end
      end else begin
        all_end        = now.rows_left == 16'd1;
        next.rows_left = now.rows_left - 1'b1;
        next.rem       = now.cols;
        next.a_row     = now.a_row + now.a_pitch;
        next.b_row     = now.b_row + now.b_pitch;
        next.a_addr    = next.a_row;
        next.b_addr    = next.b_row;
      end
    end
  end

  always_ff @(posedge clk_i) begin
    if (!rst_ni) begin
      active_q <= 1'b0;
      walk_q   <= '0;
    end else if (fire) begin
      active_q <= !all_end;
      walk_q   <= next;
    end
  end

`ifndef SYNTHESIS
  StartWhenIdle_A :
  assert property (@(posedge clk_i) disable iff (!rst_ni) start_i |-> !active_q)
  else $error("npu_vec_walk: an operation starts while another one has steps left");
  FirstTaken_A :
  assert property (@(posedge clk_i) disable iff (!rst_ni) start_i |-> step_ready_i)
  else $error("npu_vec_walk: the first step is not taken as the operation starts");
  NotEmpty_A :
  assert property (@(posedge clk_i) disable iff (!rst_ni)
                   start_i |-> op_i.rows != '0 && op_i.elements != '0)
  else $error("npu_vec_walk: an operation without rows or without elements");
`endif

endmodule
