// SPDX-License-Identifier: Apache-2.0
//
// The multiplications of exp and GELU: a ring of four places, through which four chains go at once.
// Each cycle one chain gives its operands to the multiplier, and comes by again four cycles later with
// product and addend in it. A chain takes the first place that is free. Of a GELU the chain of the
// Mills ratio comes first; that of the power, four cycles later at least, finds the ratio when it needs
// it.

module npu_cop_func_ring (
  input logic clk_i,   // clock
  input logic rst_ni,  // reset, active low
  input logic clear_i, // drops what is inside

  input logic advance_i,  // everything moves; else it keeps what it holds

  input logic ratio_valid_i,  // a ratio waits; stays until ratio_ready_o
  output logic ratio_ready_o,  // whether it is taken in a cycle with advance_i
  input npu_cop_func_pkg::step_t ratio_i,  // with ratio_valid_i

  input logic power_valid_i,  // a power waits; stays until power_ready_o
  output logic power_ready_o,  // whether it is taken in a cycle with advance_i
  input npu_cop_func_pkg::step_t power_i,  // with power_valid_i; of a GELU after its ratio

  output logic empty_o,  // no chain is inside

  output logic valid_o,  // a result, for a cycle with advance_i
  output npu_cop_func_pkg::outcome_t outcome_o,  // with valid_o
  output logic [31:0] value_o  // with valid_o: the upper half, or a special result
);

  import npu_cop_func_pkg::*;
  import npu_cop_tables_pkg::*;

  // Stages: operands, parts, sum, addition. What a step begins with is in the multiplier from the second
  // one on.
  logic [3:0] valid_q;
  step_t operands_q;
  chain_t parts_q, sum_q, addition_q;

  // Chains that come
  logic last_q, free, ratio_taken, power_taken, turn_q;
  logic [3:0] ahead_q;  // cycles since a ratio whose power has not come, a bit for each
  step_t added;

  assign free = !valid_q[3] || last_q;
  assign ratio_ready_o = free && ahead_q == '0;
  assign power_ready_o = free && (!power_i.chain.gelu || ahead_q[3]);
  assign ratio_taken = ratio_valid_i && ratio_ready_o;
  assign power_taken = power_valid_i && power_ready_o;
  assign empty_o = valid_q == '0;

  always_ff @(posedge clk_i) begin
    if (!rst_ni) begin
      valid_q <= '0;
      ahead_q <= '0;
      turn_q  <= 1'b0;
    end else if (clear_i) begin
      valid_q <= '0;
      ahead_q <= '0;
    end else if (advance_i) begin
      valid_q <= {valid_q[2:0], ratio_taken || power_taken || !free};
      if (power_taken) ahead_q <= '0;
      else ahead_q <= {ahead_q[3] || ahead_q[2], ahead_q[1:0], ratio_taken};
      if (power_taken && power_i.chain.gelu) turn_q <= !turn_q;
    end
  end

  always_ff @(posedge clk_i) begin
    if (advance_i) begin
      operands_q <= ratio_taken ? ratio_i : power_taken ? power_i : added;
      if (ratio_taken || power_taken) operands_q.chain.turn <= turn_q;
      parts_q    <= operands_q.chain;
      sum_q      <= parts_q;
      addition_q <= sum_q;
      last_q     <= sum_q.step == 3'(sum_q.ratio ? RatioLast : sum_q.gelu ? StepResult : StepPower);
    end
  end

  // Operands
  logic [1:0][63:0] ratio_q;  // by turn
  logic [63:0] a, b, tail, factor, product;

  // Of a positive number the factor is one less the tail.
  assign tail   = operands_q.chain.shift[6] ? '0 : operands_q.value >> operands_q.chain.shift[5:0];
  assign factor = operands_q.chain.outcome.sign ? operands_q.value : ~tail;

  always_comb begin
    a = operands_q.value;
    b = operands_q.chain.way;
    if (!operands_q.chain.ratio) begin
      unique case (power_step_e'(operands_q.chain.step))
        StepProduct, StepPower: begin
          a = operands_q.chain.power;
          b = operands_q.value;
        end
        StepThird: a = ExpCoefficient[3];
        StepTail:  b = ratio_q[operands_q.chain.turn];
        StepResult: begin
          a = {operands_q.chain.number, 40'd0};
          b = factor;
        end
        default:   ;
      endcase
    end
  end

  npu_cop_multiply u_multiply (
    .clk_i    (clk_i),
    .advance_i(advance_i),
    .a_i      (a),
    .b_i      (b),
    .upper_o  (product)
  );

  // Addends
  logic [63:0] addend_q;
  logic [ 8:0] piece;

  assign piece = sum_q.number[8:0];

  always_ff @(posedge clk_i) begin
    if (advance_i && sum_q.ratio) begin
      unique case (sum_q.step)
        3'd0:    addend_q <= 64'(Mills6[piece]) << 34;
        3'd1:    addend_q <= 64'(Mills5[piece]) << 28;
        3'd2:    addend_q <= 64'(Mills4[piece]) << 22;
        3'd3:    addend_q <= 64'(Mills3[piece]) << 16;
        3'd4:    addend_q <= 64'(Mills2[piece]) << 10;
        3'd5:    addend_q <= 64'(Mills1[piece]) << 4;
        default: addend_q <= 64'(Mills0[piece]);
      endcase
    end else if (advance_i) begin
      unique case (power_step_e'(sum_q.step))
        StepProduct, StepPower: addend_q <= sum_q.power;
        StepThird:              addend_q <= ExpCoefficient[2];
        StepSecond:             addend_q <= ExpCoefficient[1];
        StepFirst:              addend_q <= ExpCoefficient[0];
        default:                addend_q <= '0;
      endcase
    end
  end

  // Addition
  logic [63:0] moved, value;

  always_comb begin
    moved = product;
    if (addition_q.ratio) moved = product >> 6;
    else if (addition_q.step inside {StepThird, StepSecond, StepFirst, StepLow})
      moved = product >> 12;
    value            = moved + addend_q;

    added.chain      = addition_q;
    added.chain.step = addition_q.step + 3'd1;
    added.value      = value;
    if (!addition_q.ratio && power_step_e'(addition_q.step) == StepProduct)
      added.chain.power = value;
  end

  always_ff @(posedge clk_i) begin
    if (advance_i && valid_q[3] && addition_q.ratio && last_q) ratio_q[addition_q.turn] <= value;
  end

  assign valid_o   = valid_q[3] && !addition_q.ratio && last_q;
  assign outcome_o = addition_q.outcome;
  assign value_o   = addition_q.outcome.special ? addition_q.way[63:32] : value[63:32];

endmodule
