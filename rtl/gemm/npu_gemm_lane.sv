// SPDX-License-Identifier: Apache-2.0
//
// Reads one weight of a narrow format as a product: w = v * f / 2^(8 + t), where v and t follow from the
// element's code, f from the side byte of its group and column, or it is what leaves weights as they
// are. Dividing by 2^t is a smaller f: only minifloats of MX have a t, their f is a power of two, and
// where f / 2^t is 1 or less, |v| < 128 is rounded to 0. Combinational.

module npu_gemm_lane
  import npu_gemm_pkg::*;
(
  input code_e kind_i,  // what codes mean
  input logic [7:0] code_i,  // of the element; a nibble in the low bits
  input logic [7:0] whole_i,  // the same, where it is no part of a quad and has four bits or more
  input scale_t scale_i,  // of its group and column
  input logic odd_i,  // its lowest bit, 0 for minifloats

  output logic signed [7:0] v_o,  // v, whatever its format
  output logic [8:0] factor_o  // f / 2^t, at most 256
);

  // 127 times the table of NormalFloat, rounded
  localparam logic [15:0][7:0] Nf4 = {
    8'sd127,
    8'sd92,
    8'sd71,
    8'sd56,
    8'sd43,
    8'sd31,
    8'sd20,
    8'sd10,
    8'sd0,
    -8'sd12,
    -8'sd23,
    -8'sd36,
    -8'sd50,
    -8'sd67,
    -8'sd88,
    -8'sd127
  };
  // v / 2^t of the magnitudes 0, 1/2, 1, 3/2, 2, 3, 4, 6, then of their negatives
  localparam logic [15:0][7:0] E2m1 = {
    -8'sd96,
    -8'sd64,
    -8'sd48,
    -8'sd32,
    -8'sd24,
    -8'sd16,
    -8'sd8,
    8'sd0,
    8'sd96,
    8'sd64,
    8'sd48,
    8'sd32,
    8'sd24,
    8'sd16,
    8'sd8,
    8'sd0
  };

  // ---------------------------------------------------------------------------------------------
  // Minifloats: sign, exponent field, mantissa
  // ---------------------------------------------------------------------------------------------
  logic minifloat, short_mantissa, hidden, lower;
  logic [4:0] field, exponent, mantissa;
  assign {minifloat, short_mantissa} = {kind_i[2], kind_i[0]};

  always_comb begin
    field    = short_mantissa ? whole_i[6:2] : {1'b0, whole_i[6:3]};
    hidden   = field != '0;
    exponent = {field[4:1], (field[0] || !hidden) && field != '1};  // 1 to 30: no number is as 30
    mantissa = {1'b0, hidden, short_mantissa ? {whole_i[1:0], 1'b0} : whole_i[2:0]};
    // Negated: all bits above the lowest one turn over.
    lower    = 1'b0;
    for (int unsigned i = 0; i < 5; i++) begin
      {lower, mantissa[i]} = {lower || mantissa[i], mantissa[i] ^ (whole_i[7] && lower)};
    end
  end

  // ---------------------------------------------------------------------------------------------
  // v
  // ---------------------------------------------------------------------------------------------
  always_comb begin
    unique case (kind_i)
      CodeInt4: v_o = {code_i[3:0], 4'b0};
      CodeInt8: v_o = code_i;
      CodeNf4:  v_o = Nf4[whole_i[3:0]];
      CodeE2m1: v_o = E2m1[whole_i[3:0]];
      default:  v_o = {mantissa, 3'b0};
    endcase
  end

  // ---------------------------------------------------------------------------------------------
  // f / 2^t
  // ---------------------------------------------------------------------------------------------
  // The low three bits less those of the exponent, looked up: a carry chain would be longer
  typedef logic [63:0][3:0] less_t;

  function automatic less_t less_table();
    less_t table_of;
    for (int unsigned i = 0; i < 64; i++) table_of[i] = 4'(i / 8) - 4'(i % 8);
    return table_of;
  endfunction

  localparam less_t Less = less_table();
  localparam logic [3:0][2:0] Next = {3'd4, 3'd3, 3'd2, 3'd1};

  logic borrow, same, above, near;
  logic [2:0] shift;

  always_comb begin
    {borrow, shift} = Less[{scale_i[2:0], exponent[2:0]}];
    same = scale_i[5:3] == 3'(exponent[4:3]);
    above = scale_i[5:3] == Next[exponent[4:3]];
    near = borrow ? above : same;  // the borrow comes last
    factor_o = {minifloat ? 8'd0 : scale_i[8:1], odd_i};
    for (int unsigned i = 0; i < 8; i++) begin
      if (minifloat && near && shift == 3'(i)) factor_o[8-i] = 1'b1;
    end
  end

endmodule
