// SPDX-License-Identifier: Apache-2.0
//
// Rounds results of exp and GELU in three stages: zeros above the highest bit, window of the bits that
// are kept and the one below them, sum. The bit below alone decides: no result lies on a boundary, and
// none so near that the error of the datapath could move it across.

module npu_cop_func_round (
  input logic clk_i,   // clock
  input logic rst_ni,  // reset, active low
  input logic clear_i, // drops what is inside

  input logic advance_i,  // all stages move; else they keep what they hold

  input logic valid_i,  // taken in a cycle with advance_i
  input npu_cop_func_pkg::outcome_t outcome_i,  // with valid_i
  // With valid_i: the upper half, at most three zeros above the highest one; or a special result
  input logic [31:0] value_i,

  output logic valid_o,  // three cycles of advance_i later
  output logic [31:0] y_o  // with valid_o
);

  import npu_cop_func_pkg::*;

  logic [2:0] valid_q;

  always_ff @(posedge clk_i) begin
    if (!rst_ni) valid_q <= '0;
    else if (clear_i) valid_q <= '0;
    else if (advance_i) valid_q <= {valid_q[1:0], valid_i};
  end

  assign valid_o = valid_q[2];

  // First stage. Floats move right by four places at least: nothing of the lower half is kept.
  logic [1:0] zeros_q;  // above the highest bit
  logic signed [9:0] down;
  logic [5:0] down_q;  // places to the window of a tiny one; 32: nothing is left
  outcome_t first_q;
  logic [31:0] upper_q;

  assign down = 10'sd8 - outcome_i.exponent;

  always_ff @(posedge clk_i) begin
    if (advance_i) begin
      first_q <= outcome_i;
      down_q  <= down > 10'sd31 ? 6'd32 : down[5:0];
      upper_q <= value_i;
      priority casez (value_i[31:29])
        3'b1??:  zeros_q <= 2'd0;
        3'b01?:  zeros_q <= 2'd1;
        3'b001:  zeros_q <= 2'd2;
        default: zeros_q <= 2'd3;
      endcase
    end
  end

  // Second stage. Zeros make the exponent less by their number, and the way right of what is not tiny;
  // a tiny one goes as far as its exponent says, from where it lies. The exponent is less by one than
  // it is packed: the highest bit adds it.
  logic tiny;
  logic signed [9:0] zeros;
  logic [5:0] places;
  logic special_q, sign_q;
  logic [ 7:0] field_q;
  logic [31:0] window_q;

  assign zeros  = $signed({8'd0, zeros_q});
  assign tiny   = first_q.fixed || first_q.exponent <= zeros;
  assign places = tiny ? down_q : 6'd7 - 6'(zeros_q);

  always_ff @(posedge clk_i) begin
    if (advance_i) begin
      special_q <= first_q.special;
      sign_q    <= first_q.sign;
      field_q   <= tiny ? '0 : 8'(first_q.exponent - zeros - 10'sd1);
      if (first_q.special) window_q <= upper_q;
      else window_q <= places[5] ? '0 : upper_q >> places[4:0];
    end
  end

  // Third stage
  always_ff @(posedge clk_i) begin
    if (advance_i) begin
      y_o <= special_q ? window_q : {sign_q, {field_q, 23'd0} + window_q[31:1] + 31'(window_q[0])};
    end
  end

endmodule
