// SPDX-License-Identifier: Apache-2.0
//
// From an operand of exp or GELU to chains of multiplications. The exponent of two, t = x * log2(e) or
// -x^2/2 * log2(e), is a product of 24 or 48 bits with a constant of 80, made of parts of 24 x 40 bits
// one after the other, the square first: a turn multiplies, the next one adds what the multipliers
// give, the one behind that adds to the sum. Its integer part goes to the result's exponent, its
// fraction to the tables; of a negative number both are complements. For GELU the operand's own upper
// bits choose a piece of the Mills ratio meanwhile. Special results go the same way as all others.

module npu_cop_func_front (
  input logic clk_i,   // clock
  input logic rst_ni,  // reset, active low
  input logic clear_i, // drops what is inside

  input logic advance_i,  // everything moves; else it keeps what it holds

  input logic valid_i,  // may be withdrawn
  output logic ready_o,  // whether the operand is taken in a cycle with advance_i
  input npu_cop_float_pkg::func_e func_i,  // with valid_i
  input logic [31:0] x_i,  // with valid_i

  input logic empty_i,  // no chain is in the ring

  output logic ratio_valid_o,  // stays until ratio_ready_i
  input logic ratio_ready_i,  // takes it in a cycle with advance_i
  output npu_cop_func_pkg::step_t ratio_o,  // with ratio_valid_o

  output logic power_valid_o,  // stays until power_ready_i
  input logic power_ready_i,  // takes it in a cycle with advance_i
  output npu_cop_func_pkg::step_t power_o  // with power_valid_o
);

  import npu_cop_float_pkg::*;
  import npu_cop_func_pkg::*;
  import npu_cop_tables_pkg::*;

  localparam logic [3:0] TurnsExp = 4'd4;
  localparam logic [3:0] TurnsGelu = 4'd8;

  // An operand is worked on in turns; then its exponent of two waits for the tables, then for the ring.
  logic busy_q, ratio_valid_q, looked_q, found_q;
  logic [3:0] turn_q;
  logic gelu_q, fixed_q;
  logic [31:0] x_q;
  logic take, ends, moves_on;

  assign moves_on = !looked_q || !found_q || power_ready_i;
  assign ends = busy_q && turn_q == (gelu_q ? TurnsGelu : TurnsExp) && moves_on;
  // Whoever asks sees registers only: the ring takes an exp every six cycles, the turns of one are five,
  // and the next one comes in the last of them if nothing holds that up. A GELU comes when the ratio of
  // the one before it is in the ring and its power waits at most for that. It takes longer than an
  // exp, which waits for it, so that results stay in order.
  always_comb begin
    ready_o = !busy_q;
    if (func_i == FuncGelu) begin
      if (looked_q || ratio_valid_q || (!gelu_q && found_q)) ready_o = 1'b0;
    end else if (gelu_q) begin
      if (looked_q || found_q || !empty_i) ready_o = 1'b0;
    end else if (turn_q[2] && !looked_q) begin
      ready_o = 1'b1;  // turn 4
    end
  end
  assign take = valid_i && ready_o;
  assign power_valid_o = found_q;
  assign ratio_valid_o = ratio_valid_q;

  always_ff @(posedge clk_i) begin
    if (!rst_ni) begin
      {busy_q, looked_q, found_q, ratio_valid_q} <= '0;
      turn_q <= '0;
      gelu_q <= 1'b0;
    end else if (clear_i) begin
      {busy_q, looked_q, found_q, ratio_valid_q} <= '0;
    end else if (advance_i) begin
      if (take) begin
        busy_q <= 1'b1;
        turn_q <= '0;
        gelu_q <= func_i == FuncGelu;
      end else if (ends) begin
        busy_q <= 1'b0;
      end else if (busy_q && turn_q != (gelu_q ? TurnsGelu : TurnsExp)) begin
        turn_q <= turn_q + 4'd1;
      end
      // In an empty ring the power is seven cycles later; eight would find the ratio in its place.
      if (busy_q && gelu_q && turn_q == 4'd2) ratio_valid_q <= 1'b1;
      else if (ratio_ready_i) ratio_valid_q <= 1'b0;

      if (ends) looked_q <= 1'b1;
      else if (!found_q || power_ready_i) looked_q <= 1'b0;
      if (looked_q) found_q <= 1'b1;
      else if (power_ready_i) found_q <= 1'b0;
    end
  end

  // A fixed number has 20 bits where it is not special; with four zeros behind them it counts as a
  // float of exponent 130.
  logic [19:0] magnitude;
  logic [23:0] significand_q;

  assign magnitude = x_i[31] ? -x_i[19:0] : x_i[19:0];

  always_ff @(posedge clk_i) begin
    if (advance_i && take) begin
      fixed_q       <= func_i == FuncExpFixed;
      x_q           <= x_i;
      significand_q <= func_i == FuncExpFixed ? {magnitude, 4'd0} : {1'b1, x_i[22:0]};
    end
  end

  // Special results
  logic negative, below_one, special;
  logic [ 7:0] exponent;
  logic [31:0] special_y;

  assign negative  = x_q[31];
  assign exponent  = fixed_q ? 8'd130 : x_q[30:23];
  assign below_one = exponent < 8'd127;

  always_comb begin
    special   = 1'b1;
    special_y = FloatNan;
    if (fixed_q) begin
      if ($signed(x_q) >= 32'sd681392) special_y = 32'h7fff_ffff;
      else if ($signed(x_q) < -32'sd772243) special_y = '0;
      else special = 1'b0;
    end else if (is_nan(x_q)) begin
      special_y = FloatNan;
    end else if (gelu_q) begin
      // From 16 on x or -0. Below 2^-31 a half and a little more, which decides what is a tie among
      // the subnormals.
      if (exponent > 8'd130) special_y = negative ? 32'h8000_0000 : x_q;
      else if (exponent < 8'd2) special_y = {negative, 31'((32'(x_q[30:0]) + 32'(!negative)) >> 1)};
      else if (exponent < 8'd96) special_y = {negative, exponent - 8'd1, x_q[22:0]};
      else special = 1'b0;
    end else begin
      if (!negative && x_q[30:0] >= 31'h42b1_7218) special_y = FloatInf;
      else if (exponent > 8'd133) special_y = '0;
      else if (exponent < 8'd101) special_y = 32'h3f80_0000;
      else special = 1'b0;
    end
  end

  // Products of 24 x 40 bits, in parts of 24 x 17, and their sum
  logic [23:0] a, square_upper_q, square_lower_q;
  logic [39:0] b;
  logic [29:0] highest_q;
  logic [40:0] middle_q, lowest_q;
  logic [63:0] product_q;
  logic [127:0] sum_q, part;

  always_comb begin
    a = significand_q;
    if (gelu_q) begin
      unique case (turn_q)
        4'd0:    a = significand_q;
        4'd2:    a = product_q[23:0];
        4'd3:    a = square_lower_q;
        default: a = square_upper_q;
      endcase
    end
    b = turn_q[0] ? Log2e[79:40] : Log2e[39:0];
    if (gelu_q && turn_q == 4'd0) b = 40'(significand_q);
    // Of a GELU turns 4 to 7 add, of an exp turns 2 and 3.
    unique case ({
      turn_q[2] && turn_q[1], turn_q[0]
    })
      2'b00: part = 128'(product_q);
      2'b01: part = 128'(product_q) << 40;
      2'b10: part = 128'(product_q) << 24;
      2'b11: part = 128'(product_q) << 64;
    endcase
  end

  always_ff @(posedge clk_i) begin
    if (advance_i) begin
      highest_q <= 30'(a) * 30'(b[39:34]);
      middle_q  <= 41'(a) * 41'(b[33:17]);
      lowest_q  <= 41'(a) * 41'(b[16:0]);
      product_q <= {highest_q, 34'd0} + (64'(middle_q) << 17) + 64'(lowest_q);
      if (turn_q == 4'd2) {square_upper_q, square_lower_q} <= product_q[47:0];
      if (take) sum_q <= '0;
      else if (gelu_q ? turn_q[2] : turn_q[1]) sum_q <= part + sum_q;
    end
  end

  // The exponent of two: eight bits before the point and 64 behind it
  logic [6:0] places;  // of 284 - 2e and 133 - e, which are less than 128
  logic [71:0] moved, power;

  assign places = gelu_q ? 7'd28 - {exponent[5:0], 1'b0} : 7'd5 - exponent[6:0];
  assign moved  = 72'(sum_q[127:32] >> places);
  assign power  = (gelu_q || negative) ? ~moved : moved;

  logic [7:0] whole_q;
  logic below_q;  // of a negative number
  logic [63:0] fraction_q;
  logic table_gelu_q;
  logic [1:0] octave_q;  // of the operand: 0 below two, 3 at most
  outcome_t table_outcome_q;  // its exponent is the operand's
  logic [23:0] table_number_q;

  always_ff @(posedge clk_i) begin
    if (advance_i && ends) begin
      {whole_q, fraction_q} <= power;
      // A special result lies where the upper half of the way comes from.
      if (special) fraction_q[51:20] <= special_y;
      below_q <= negative;
      table_gelu_q <= gelu_q;
      table_outcome_q <= '{
          special: special,
          fixed: fixed_q,
          sign: gelu_q && negative,
          exponent: 10'(exponent)
      };
      table_number_q <= significand_q;
      octave_q <= below_one ? 2'd0 : exponent[1:0] + 2'd1;
    end
  end

  // Tables, and the exponent of the result. The tail of a GELU has this many places more than its
  // factor, of a negative number it is the factor.
  logic signed [9:0] whole, scale;
  logic [8:0] tail_places;
  step_t power_q;

  assign whole = $signed({{2{table_gelu_q || below_q}}, whole_q});
  assign scale = whole + 10'sd1 - $signed(10'(octave_q));
  assign tail_places = 9'(-scale);

  always_ff @(posedge clk_i) begin
    if (advance_i && looked_q && (!found_q || power_ready_i)) begin
      power_q.chain.ratio   <= 1'b0;
      power_q.chain.gelu    <= table_gelu_q;
      power_q.chain.turn    <= 1'b0;
      power_q.chain.step    <= StepProduct;
      power_q.chain.outcome <= table_outcome_q;
      power_q.chain.shift   <= tail_places > 9'd63 ? 7'd64 : tail_places[6:0];
      power_q.chain.number  <= table_number_q;
      power_q.chain.way     <= {fraction_q[51:0], 12'd0};
      power_q.chain.power   <= ExpCoarse[fraction_q[63:58]];
      power_q.value         <= 64'(ExpFine[fraction_q[57:52]]);
      if (!table_gelu_q) begin
        power_q.chain.outcome.exponent <= table_outcome_q.fixed ? whole - 10'sd6 : whole + 10'sd127;
      end else if (table_outcome_q.sign) begin
        power_q.chain.outcome.exponent <= table_outcome_q.exponent + scale;
      end
    end
  end

  assign power_o = power_q;

  // The piece of the ratio, and the way back from its right end
  logic [ 4:0] left;
  logic [69:0] place;
  logic [ 8:0] piece_q;
  logic [63:0] way_q;
  logic [23:0] degree_seven_q;

  assign left  = below_one ? exponent[4:0] : 5'd31;
  assign place = 70'({significand_q, 16'd0}) << left;

  always_ff @(posedge clk_i) begin
    if (advance_i && busy_q && turn_q == 4'd0) begin
      piece_q <= {below_one ? 3'd0 : exponent[2:0] + 3'd2, place[69:64]};
      way_q   <= ~place[63:0];
    end
    if (advance_i && turn_q == 4'd1) degree_seven_q <= Mills7[piece_q];
  end

  always_comb begin
    ratio_o              = '0;
    ratio_o.chain.ratio  = 1'b1;
    ratio_o.chain.number = 24'(piece_q);
    ratio_o.chain.way    = way_q;
    ratio_o.value        = {degree_seven_q, 40'd0};
  end

endmodule
