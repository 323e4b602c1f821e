// SPDX-License-Identifier: Apache-2.0
//
// Running argmax over the outputs of instructions that ask for it. Columns are numbered on from
// instruction to instruction until the state is cleared; of equal values the lowest column stays. A
// row is held back from the writer for one cycle, in which its best column is found, and counts when
// the writer takes it: once the instruction is done the result is final. Such instructions have a
// single row, so that column tiles are further apart than the two cycles that each takes.

module npu_gemm_argmax
  import npu_pkg::*;
  import npu_gemm_pkg::*;
#(
  parameter int unsigned Edge = 16  // tile edge in elements, 16 or 32
) (
  input logic clk_i,  // clock
  input logic rst_ni, // reset, active low

  input logic clear_i,  // pulse: no value yet, the next column is 0; not while a row is taken

  // Results, on their way to the writer. The rows' places and upper halves are of no use here.
  input  logic                       row_valid_i,  // stays until row_ready_o
  // Follows row_ready_i; low in the first cycle of an argmax row
  output logic                       row_ready_o,
  /* verilator lint_off UNUSEDSIGNAL */
  input  row_ctrl_t                  row_ctrl_i,   // stable while row_valid_i
  // Int8 or int16 with sign, stable like row_ctrl_i
  input  logic      [Edge-1:0][31:0] row_i,
  /* verilator lint_on UNUSEDSIGNAL */
  output logic                       row_valid_o,  // stays until row_ready_i
  input  logic                       row_ready_i,  // may depend on row_valid_o

  output argmax_t argmax_o  // counts a row from the cycle after row_ready_o on
);

  localparam int unsigned LaneW = $clog2(Edge);

  typedef struct packed {
    logic signed [15:0] value;
    logic [LaneW-1:0]   lane;
  } best_t;

  logic found_q, count, better, valid_q;
  best_t row_best, row_best_q;
  logic signed [15:0] value_q;
  logic [31:0] column_q, first_q;  // of the best value; of the next row's first column

  // Neighbours meet first, so that the left one of a pair always holds the lower columns. Lanes past
  // the row's end cannot be greater than its first.
  function automatic best_t best_of(logic [Edge-1:0][15:0] values);
    best_t [Edge-1:0] best;
    for (int unsigned l = 0; l < Edge; l++) best[l] = '{value: values[l], lane: LaneW'(l)};
    for (int unsigned span = 1; span < Edge; span *= 2) begin
      for (int unsigned l = 0; l < Edge; l += 2 * span) begin
        if (best[l+span].value > best[l].value) best[l] = best[l+span];
      end
    end
    return best[0];
  endfunction

  logic [Edge-1:0][15:0] lanes;
  always_comb begin
    for (int unsigned c = 0; c < Edge; c++) begin
      lanes[c] = (6'(c) < row_ctrl_i.columns) ? row_i[c][15:0] : 16'h8000;
    end
    row_best = best_of(lanes);
  end

  assign row_valid_o = row_valid_i && (!row_ctrl_i.argmax || found_q);
  assign row_ready_o = row_ready_i && (!row_ctrl_i.argmax || found_q);
  assign count       = row_valid_o && row_ready_i && row_ctrl_i.argmax;
  assign better      = !valid_q || row_best_q.value > value_q;
  assign argmax_o    = '{valid: valid_q, column: column_q};

  always_ff @(posedge clk_i) begin
    if (row_valid_i && row_ctrl_i.argmax) row_best_q <= row_best;
  end

  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) begin
      found_q  <= 1'b0;
      valid_q  <= 1'b0;
      value_q  <= '0;
      column_q <= '0;
      first_q  <= '0;
    end else begin
      found_q <= row_valid_i && row_ctrl_i.argmax && !count;
      if (clear_i) begin
        valid_q <= 1'b0;
        first_q <= '0;
      end else if (count) begin
        valid_q <= 1'b1;
        first_q <= first_q + 32'(row_ctrl_i.columns);
        if (better) begin
          value_q  <= row_best_q.value;
          column_q <= first_q + 32'(row_best_q.lane);
        end
      end
    end
  end

`ifndef SYNTHESIS
  ClearBetweenRows_A :
  assert property (@(posedge clk_i) disable iff (!rst_ni) clear_i |-> !count)
  else $error("npu_gemm_argmax: cleared while a row is taken");
  OnlyRequantised_A :
  assert property (@(posedge clk_i) disable iff (!rst_ni)
                   row_valid_i && row_ctrl_i.argmax |-> row_ctrl_i.requant)
  else $error("npu_gemm_argmax: argmax of a row that is not requantised");
`endif

endmodule
