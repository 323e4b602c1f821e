// SPDX-License-Identifier: Apache-2.0
//
// Elements in lanes: two sums, differences, products or ReLU a cycle, or a quotient, whose divisor is
// the scalar of its instruction. The first lane divides, the other one has nothing to do meanwhile.

module npu_cop_lanes
  import npu_cop_pkg::*;
  import npu_cop_isa_pkg::*;
  import npu_cop_float_pkg::*;
(
  input logic clk_i,  // clock
  input logic rst_ni, // reset, active low

  // Of the instruction on memory
  input logic      start_i,  // pulse: it begins
  input logic      clear_i,  // pulse: forget what is inside, and the divisor
  input cop_op_e   op_i,     // a level: what it does
  input cop_unit_e unit_i,   // a level: who works on its elements
  input float_t    scalar_i, // a level: the second operand where it is not an array

  input  cop_piece_t piece_i,  // elements
  output logic       ready_o,  // takes them; low for other units'

  output logic         valid_o,  // there are results; stays until ready_i
  input  logic         ready_i,  // takes them
  output float_t [1:0] y_o       // with valid_o; the upper one is 0 behind a quotient
);

  lane_op_e lane_op, lane_op_q;
  logic pairs_q;  // elements have a partner
  logic [1:0] ready, valid;
  float_t [1:0] y;
  logic is_lanes, is_divide, in_lanes_q, in_divide_q, load_q, divisor_ready;
  unrounded_t dividend;
  logic [50:0] reciprocal;

  assign is_lanes  = unit_i == UnitLanes;
  assign is_divide = unit_i == UnitDivide;

  always_comb begin
    unique case (op_i)
      CopFvmul:                 lane_op = LaneMul;
      CopFvsub, CopFvsubScalar: lane_op = LaneSub;
      CopFvrelu:                lane_op = LaneRelu;
      CopFvdiv:                 lane_op = LaneDiv;
      default:                  lane_op = LaneAdd;
    endcase
  end

  // Elements come later than their instruction.
  always_ff @(posedge clk_i) begin
    if (!rst_ni) begin
      lane_op_q <= LaneAdd;
      {pairs_q, in_lanes_q, in_divide_q, load_q} <= '0;
    end else begin
      lane_op_q   <= lane_op;
      pairs_q     <= op_i inside {CopFvadd, CopFvsub};
      in_lanes_q  <= is_lanes;
      in_divide_q <= is_divide;
      load_q      <= start_i && is_divide;
    end
  end

  npu_cop_divide u_divide (
    .clk_i,
    .rst_ni,
    .clear_i,
    .load_i      (load_q),
    .divisor_i   (scalar_i),
    .ready_o     (divisor_ready),
    .reciprocal_o(reciprocal),
    .a_i         (piece_i.a[31:0]),
    .dividend_o  (dividend)
  );

  for (genvar l = 0; l < 2; l++) begin : gen_lane
    npu_cop_lane #(
      .Divides(l == 0)
    ) u_lane (
      .clk_i,
      .rst_ni,
      .clear_i,
      .valid_i     (piece_i.valid && (is_lanes || (l == 0 && is_divide && divisor_ready))),
      .ready_o     (ready[l]),
      .op_i        (lane_op_q),
      .a_i         (piece_i.a[32*l+:32]),
      .b_i         (pairs_q ? piece_i.b[32*l+:32] : scalar_i),
      .dividend_i  (dividend),
      .reciprocal_i(reciprocal),
      .valid_o     (valid[l]),
      .ready_i     (ready_i),
      .y_o         (y[l])
    );
  end

  assign ready_o = (in_lanes_q || (in_divide_q && divisor_ready)) && ready[0];
  assign valid_o = (in_lanes_q || in_divide_q) && valid[0];
  assign y_o     = {in_lanes_q ? y[1] : '0, y[0]};

`ifndef SYNTHESIS
  LanesTogether_A :
  assert property (@(posedge clk_i) disable iff (!rst_ni)
                   in_lanes_q |-> ready[0] == ready[1] && valid[0] == valid[1])
  else $error("npu_cop_lanes: one lane is ahead of the other");
`endif

endmodule
