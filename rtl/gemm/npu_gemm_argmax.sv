// SPDX-License-Identifier: Apache-2.0
//
// Running argmax over the outputs of instructions that ask for it. Columns are numbered on from
// instruction to instruction until the state is cleared; of equal values the lowest column stays. A
// beat is compared in three stages beside the writer: its lanes in groups, the groups, and the best
// of them with the best so far. Only the last beat of an instruction waits, so that the result is
// final once the instruction is done.

module npu_gemm_argmax
  import npu_pkg::*;
  import npu_gemm_pkg::*;
#(
  parameter int unsigned Lanes = 16  // columns in a beat, a power of two
) (
  input logic clk_i,  // clock
  input logic rst_ni, // reset, active low

  input logic clear_i,  // pulse: no value yet, the next column is 0; not while a beat is inside

  // Results, on their way to the writer. The rows' places and upper halves are of no use here.
  input  logic                         beat_valid_i,  // stays until beat_ready_o
  // Follows beat_ready_i; low in the first two cycles of the last argmax beat of an instruction
  output logic                         beat_ready_o,
  /* verilator lint_off UNUSEDSIGNAL */
  input  beat_ctrl_t                   beat_ctrl_i,   // stable while beat_valid_i
  // Int8 or int16 with sign, stable like beat_ctrl_i
  input  logic       [Lanes-1:0][31:0] beat_i,
  /* verilator lint_on UNUSEDSIGNAL */
  output logic                         beat_valid_o,  // stays until beat_ready_i
  input  logic                         beat_ready_i,  // may depend on beat_valid_o

  output argmax_t argmax_o  // counts an instruction from the cycle after its last beat_ready_o on
);

  localparam int unsigned Groups = (Lanes > 4) ? Lanes / 4 : 1;
  localparam int unsigned GroupLanes = Lanes / Groups;
  localparam int unsigned LaneW = (Lanes > 1) ? $clog2(Lanes) : 1;

  typedef struct packed {
    logic signed [15:0] value;
    logic [LaneW-1:0]   lane;
  } best_t;

  function automatic best_t better_of(best_t left, best_t right);
    return (right.value > left.value) ? right : left;
  endfunction

  logic seen_q;  // the beat that waits is being compared
  logic enter, hold;
  logic group_valid_q, beat_best_valid_q;
  logic [5:0] group_columns_q, beat_columns_q;

  assign enter        = beat_valid_i && beat_ctrl_i.argmax && !seen_q;
  assign hold         = beat_ctrl_i.argmax && beat_ctrl_i.done && (!seen_q || group_valid_q);
  assign beat_valid_o = beat_valid_i && !hold;
  assign beat_ready_o = beat_ready_i && !hold;

  always_ff @(posedge clk_i) begin
    if (!rst_ni) begin
      seen_q            <= 1'b0;
      group_valid_q     <= 1'b0;
      beat_best_valid_q <= 1'b0;
    end else begin
      seen_q            <= beat_valid_i && beat_ctrl_i.argmax && !beat_ready_o;
      group_valid_q     <= enter;
      beat_best_valid_q <= group_valid_q;
    end
  end

  // Neighbours meet first, so that the left one of a pair always holds the lower columns. Lanes past
  // the row's end cannot be greater than its first.
  best_t [Lanes-1:0] lanes;
  best_t [Groups-1:0] groups, groups_q;
  best_t beat_best_q;

  always_comb begin
    for (int unsigned l = 0; l < Lanes; l++) begin
      lanes[l] = '{
          value: (6'(l) < beat_ctrl_i.columns) ? beat_i[l][15:0] : 16'h8000,
          lane: LaneW'(l)
      };
    end
    for (int unsigned span = 1; span < GroupLanes; span *= 2) begin
      for (int unsigned l = 0; l < Lanes; l += 2 * span) begin
        lanes[l] = better_of(lanes[l], lanes[l+span]);
      end
    end
  end

  always_comb begin
    groups = groups_q;
    for (int unsigned span = 1; span < Groups; span *= 2) begin
      for (int unsigned g = 0; g < Groups; g += 2 * span) begin
        groups[g] = better_of(groups[g], groups[g+span]);
      end
    end
  end

  always_ff @(posedge clk_i) begin
    if (enter) begin
      for (int unsigned g = 0; g < Groups; g++) groups_q[g] <= lanes[g*GroupLanes];
      group_columns_q <= beat_ctrl_i.columns;
    end
    if (group_valid_q) begin
      beat_best_q    <= groups[0];
      beat_columns_q <= group_columns_q;
    end
  end

  logic better, valid_q;
  logic signed [15:0] value_q;
  logic [31:0] column_q, first_q;  // of the best value; of the next beat's first column

  assign better   = !valid_q || beat_best_q.value > value_q;
  assign argmax_o = '{valid: valid_q, column: column_q};

  always_ff @(posedge clk_i) begin
    if (!rst_ni) begin
      valid_q  <= 1'b0;
      value_q  <= '0;
      column_q <= '0;
      first_q  <= '0;
    end else if (clear_i) begin
      valid_q <= 1'b0;
      first_q <= '0;
    end else if (beat_best_valid_q) begin
      valid_q <= 1'b1;
      first_q <= first_q + 32'(beat_columns_q);
      if (better) begin
        value_q  <= beat_best_q.value;
        column_q <= first_q + 32'(beat_best_q.lane);
      end
    end
  end

`ifndef SYNTHESIS
  ClearBetweenBeats_A :
  assert property (@(posedge clk_i) disable iff (!rst_ni)
                   clear_i |-> !(enter || group_valid_q || beat_best_valid_q))
  else $error("npu_gemm_argmax: cleared while a beat is inside");
  OnlyRequantised_A :
  assert property (@(posedge clk_i) disable iff (!rst_ni)
                   beat_valid_i && beat_ctrl_i.argmax |-> beat_ctrl_i.requant)
  else $error("npu_gemm_argmax: argmax of a beat that is not requantised");
`endif

endmodule
