// SPDX-License-Identifier: Apache-2.0
//
// What works on many elements at once without rounding: dot product of 16 bytes, sum and maximum of
// four words, eight bytes times the accumulator, and elements that only move. Half of the multipliers
// of the dot product serve the accumulator as well. Sums and maxima take two cycles, each piece after
// the other. Floats have the order of integers once the lower bits of negative ones are turned round,
// so one maximum serves both; a NaN wins and stays.

module npu_cop_vector
  import npu_cop_pkg::*;
  import npu_cop_float_pkg::*;
(
  input logic clk_i,  // clock
  input logic rst_ni, // reset, active low

  input logic             start_i,   // pulse: forget what was before
  input logic             drop_i,    // pulse: the same
  input cop_unit_e        unit_i,    // a level: who works on the elements
  input logic             writes_i,  // a level: results go to memory
  input logic      [31:0] factor_i,  // a level: what bytes are multiplied with

  input  cop_piece_t piece_i,  // elements
  output logic       ready_o,  // takes them
  output logic       idle_o,   // a level: the results below hold everything that was taken
  output cop_group_t group_o,  // results to write
  input  logic       ready_i,  // takes them

  output logic [63:0] sum_o,    // of products, since the start
  output logic [31:0] result_o  // sum or maximum since the start, or the element that was moved
);

  localparam int unsigned SumBits = 36;  // 2^20 products of 15 bits and a sign

  logic reduces, max, go, group_go, valid_q;

  assign max      = unit_i inside {UnitMax, UnitFloatMax};
  assign reduces  = max || unit_i inside {UnitDot, UnitSum};
  assign group_go = unit_i inside {UnitScale, UnitMove} && (!group_o.valid || ready_i);
  assign ready_o  = reduces || group_go;
  assign go       = piece_i.valid && ready_o;
  assign idle_o   = !valid_q;

  // ---------------------------------------------------------------------------------------------
  // Products; the factor of fewer bits comes second, which makes fewer rows of a multiplier in gates.
  // A factor that does not fit 24 bits saturates every byte but 0, as the nearest one that does.
  // ---------------------------------------------------------------------------------------------
  logic [15:0] is_there;  // elements of the piece
  logic scales, scales_q;
  logic [23:0] factor, factor_q;
  logic [15:0][31:0] products;

  assign scales = unit_i == UnitScale;
  assign is_there = ~(16'hffff << piece_i.count);
  assign factor   = (factor_i[31:23] == {9{factor_i[31]}}) ? factor_i[23:0]
      : {factor_i[31], {23{!factor_i[31]}}};

  // Elements come later than their instruction.
  always_ff @(posedge clk_i) begin
    if (!rst_ni) begin
      scales_q <= 1'b0;
      factor_q <= '0;
    end else begin
      scales_q <= scales;
      factor_q <= factor;
    end
  end

  for (genvar i = 0; i < 16; i++) begin : gen_product
    logic [7:0] b;
    assign b = piece_i.b[8*i+:8] & {8{is_there[i]}};
    if (i < 8) begin : gen_both
      logic [23:0] either;
      assign either = scales_q ? factor_q : {{16{b[7]}}, b};
      assign products[i] = 32'($signed(either)) * 32'($signed(piece_i.a[8*i+:8]));
    end else begin : gen_dot
      assign products[i] = 32'($signed(piece_i.a[8*i+:8])) * 32'($signed(b));
    end
  end

  // ---------------------------------------------------------------------------------------------
  // First cycle: pairs
  // ---------------------------------------------------------------------------------------------
  logic [7:0][16:0] two_q;  // sums of two products
  logic [3:0][31:0] words;
  logic [1:0][31:0] pairs, pairs_q;
  logic nan, nan_q;

  always_comb begin
    nan = 1'b0;
    for (int unsigned i = 0; i < 4; i++) begin
      words[i] = piece_i.a[32*i+:32];
      if (unit_i == UnitFloatMax) begin
        if (is_nan(words[i]) && is_there[i]) nan = 1'b1;
        words[i] = order_key(words[i]);
      end
      if (!is_there[i]) words[i] = max ? 32'h8000_0000 : '0;
    end
    for (int unsigned i = 0; i < 2; i++) begin
      if (!max) pairs[i] = words[2*i] + words[2*i+1];
      else pairs[i] = ($signed(words[2*i]) > $signed(words[2*i+1])) ? words[2*i] : words[2*i+1];
    end
  end

  always_ff @(posedge clk_i) begin
    if (!rst_ni) begin
      valid_q <= 1'b0;
      two_q   <= '0;
      pairs_q <= '0;
      nan_q   <= 1'b0;
    end else begin
      valid_q <= go && reduces && !start_i && !drop_i;
      if (go) begin
        pairs_q <= pairs;
        nan_q   <= nan;
        for (int unsigned i = 0; i < 8; i++) begin
          two_q[i] <= products[2*i][16:0] + products[2*i+1][16:0];
        end
      end
    end
  end

  // ---------------------------------------------------------------------------------------------
  // Second cycle: all that came
  // ---------------------------------------------------------------------------------------------
  logic [SumBits-1:0] sum_q, sum;
  logic [31:0] word_q, larger_pair;
  logic any_nan_q;

  always_comb begin
    sum = '0;
    for (int unsigned i = 0; i < 8; i++) sum = sum + SumBits'($signed(two_q[i]));
  end

  assign larger_pair = ($signed(pairs_q[0]) > $signed(pairs_q[1])) ? pairs_q[0] : pairs_q[1];

  always_ff @(posedge clk_i) begin
    if (!rst_ni) begin
      sum_q     <= '0;
      word_q    <= '0;
      any_nan_q <= 1'b0;
    end else if (start_i) begin
      sum_q     <= '0;
      word_q    <= '0;
      any_nan_q <= 1'b0;
      if (unit_i == UnitMax) word_q <= 32'h8000_0000;
      if (unit_i == UnitFloatMax) word_q <= order_key({1'b1, FloatInf[30:0]});
    end else if (valid_q) begin
      sum_q     <= sum_q + sum;
      any_nan_q <= any_nan_q || nan_q;
      if (!max) word_q <= word_q + pairs_q[0] + pairs_q[1];
      else if ($signed(larger_pair) > $signed(word_q)) word_q <= larger_pair;
    end
  end

  assign sum_o = 64'($signed(sum_q));

  // ---------------------------------------------------------------------------------------------
  // Bytes times the accumulator, in Q16.16, and elements that move
  // ---------------------------------------------------------------------------------------------
  function automatic logic [7:0] saturated(logic [15:0] x);
    return (x[15:7] == {9{x[15]}}) ? x[7:0] : {x[15], {7{!x[15]}}};
  endfunction

  // Multipliers and saturation are not in one path.
  logic group_valid_q;
  logic [63:0] moved_q;
  logic [7:0][15:0] scaled_q;

  always_ff @(posedge clk_i) begin
    if (!rst_ni) begin
      group_valid_q <= 1'b0;
      moved_q       <= '0;
      scaled_q      <= '0;
    end else if (start_i || drop_i) begin
      group_valid_q <= 1'b0;
    end else if (go && group_go) begin
      group_valid_q <= writes_i;
      moved_q       <= piece_i.a[63:0];
      for (int unsigned i = 0; i < 8; i++) scaled_q[i] <= products[i][31:16];
    end else if (ready_i) begin
      group_valid_q <= 1'b0;
    end
  end

  always_comb begin
    group_o = '{valid: group_valid_q, data: moved_q};
    for (int unsigned i = 0; i < 8; i++) begin
      if (scales_q) group_o.data[8*i+:8] = saturated(scaled_q[i]);
    end
  end

  always_comb begin
    unique case (unit_i)
      UnitFloatMax: result_o = any_nan_q ? FloatNan : order_key(word_q);
      UnitMove:     result_o = moved_q[31:0];
      default:      result_o = word_q;
    endcase
  end

endmodule
