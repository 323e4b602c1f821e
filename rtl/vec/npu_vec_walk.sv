// SPDX-License-Identifier: Apache-2.0
//
// Order of work of VEC: the table first, if it lies in SRAM, then row by row the operands; two
// operands alternate word by word. A step covers 16 elements if input and output are int8, else 8,
// so an int8 word that becomes int16 serves two steps. Addresses are running sums.

module npu_vec_walk (
  input logic clk_i,  // clock
  input logic rst_ni, // reset, active low

  input logic start_i,  // pulse: an operation begins; not while active_o
  // The walker needs no destination, constants or instruction index.
  /* verilator lint_off UNUSEDSIGNAL */
  input npu_operation_pkg::vec_operation_t op_i,  // with start_i; rows, elements at least 1
  /* verilator lint_on UNUSEDSIGNAL */
  output logic active_o,  // steps are left; from the cycle after start_i

  // Steps out
  output npu_pkg::row_step_t    step_o,        // every step needs a word; stays until it is taken
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

  state_e state_q;
  logic active_q, two_q, widen_q, upper_q;
  logic [4:0] step_q;
  logic [3:0] table_q;
  dim_t cols_q, rem_q, rows_left_q;
  sram_addr_t a_pitch_q, b_pitch_q, a_row_q, b_row_q, a_addr_q, b_addr_q;
  logic fire, row_end, from_sram, second;

  assign fire = active_q && step_ready_i;
  assign second = state_q == StSecond;
  assign row_end = rem_q <= dim_t'(step_q);
  assign from_sram = npu_isa_pkg::vec_table(op_i.op) && !op_i.stream;

  assign active_o = active_q;
  logic keep;
  assign keep = widen_q && !upper_q && !row_end;
  assign step_o = '{
          valid: active_q,
          read: !upper_q,
          word: 1'b1,
          keep: keep,
          addr: (state_q == StFirst) ? a_addr_q : b_addr_q
      };
  assign step_tag_o = '{
          param: state_q == StTable,
          hold: two_q && state_q == StFirst,
          last: row_end,
          upper: upper_q,
          lanes: row_end ? rem_q[4:0] : step_q
      };

  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) begin
      active_q    <= 1'b0;
      state_q     <= StFirst;
      two_q       <= 1'b0;
      widen_q     <= 1'b0;
      upper_q     <= 1'b0;
      step_q      <= '0;
      table_q     <= '0;
      cols_q      <= '0;
      rem_q       <= '0;
      rows_left_q <= '0;
      a_pitch_q   <= '0;
      b_pitch_q   <= '0;
      a_row_q     <= '0;
      b_row_q     <= '0;
      a_addr_q    <= '0;
      b_addr_q    <= '0;
    end else if (start_i) begin
      active_q <= 1'b1;
      state_q <= from_sram ? StTable : StFirst;
      two_q <= npu_isa_pkg::vec_two(op_i.op);
      widen_q <= !op_i.a16 && op_i.c16;
      upper_q <= 1'b0;
      step_q <= (op_i.a16 || op_i.c16) ? 5'd8 : 5'd16;
      table_q <= '0;
      cols_q <= op_i.elements;
      rem_q <= op_i.elements;
      rows_left_q <= op_i.rows;
      a_pitch_q <= op_i.a_pitch;
      b_pitch_q <= op_i.b_pitch;
      a_row_q <= op_i.a;
      b_row_q <= op_i.b;
      a_addr_q <= op_i.a;
      b_addr_q <= op_i.b;
    end else if (fire) begin
      unique case (state_q)
        StTable: begin
          table_q  <= table_q + 1'b1;
          b_addr_q <= b_addr_q + 1'b1;
          if (table_q == LastTableWord) state_q <= StFirst;
        end
        default: begin
          if (two_q && !second) begin
            state_q <= StSecond;
          end else begin
            state_q <= StFirst;
            upper_q <= keep;
            if (!row_end) begin
              rem_q <= rem_q - dim_t'(step_q);
              if (!keep) begin
                a_addr_q <= a_addr_q + 1'b1;
                b_addr_q <= b_addr_q + 1'b1;
              end
            end else begin
              active_q    <= rows_left_q != 16'd1;
              rows_left_q <= rows_left_q - 1'b1;
              rem_q       <= cols_q;
              a_row_q     <= a_row_q + a_pitch_q;
              b_row_q     <= b_row_q + b_pitch_q;
              a_addr_q    <= a_row_q + a_pitch_q;
              b_addr_q    <= b_row_q + b_pitch_q;
            end
          end
        end
      endcase
    end
  end

`ifndef SYNTHESIS
  StartWhenIdle_A :
  assert property (@(posedge clk_i) disable iff (!rst_ni) start_i |-> !active_q)
  else $error("npu_vec_walk: an operation starts while another one has steps left");
  NotEmpty_A :
  assert property (@(posedge clk_i) disable iff (!rst_ni)
                   start_i |-> op_i.rows != '0 && op_i.elements != '0)
  else $error("npu_vec_walk: an operation without rows or without elements");
`endif

endmodule
