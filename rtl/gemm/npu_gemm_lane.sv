// SPDX-License-Identifier: Apache-2.0
//
// Expands one weight of a narrow format to int8: w = v * f / 2^(8 + t), rounded half up. v and t follow
// from the element's code, f from the side byte of its group and column. Dividing by 2^t happens in
// front of the multiplier, by a smaller f: only minifloats of MX have a t, their f is a power of two,
// and where f / 2^t is no integer any more the weight is zero. Combinational.

module npu_gemm_lane
  import npu_gemm_pkg::*;
(
  input code_e        kind_i,    // what codes mean
  input logic         scaled_i,  // v is multiplied, else it is the weight
  input logic   [7:0] code_i,    // of the element; a nibble in the low bits
  input scale_t       scale_i,   // of its group and column, with scaled_i

  output logic [7:0] weight_o  // int8
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
  // v / 2^t of the magnitudes 0, 1/2, 1, 3/2, 2, 3, 4, 6
  localparam logic [7:0][7:0] E2m1 = {8'd96, 8'd64, 8'd48, 8'd32, 8'd24, 8'd16, 8'd8, 8'd0};

  // ---------------------------------------------------------------------------------------------
  // Minifloats: sign, exponent field, mantissa
  // ---------------------------------------------------------------------------------------------
  logic short_mantissa, hidden;
  logic [4:0] exponent;
  logic signed [4:0] mantissa;
  assign short_mantissa = kind_i == CodeM2;

  always_comb begin
    exponent = {1'b0, code_i[6:3]};
    if (short_mantissa) exponent = (code_i[6:2] == '1) ? 5'd30 : code_i[6:2];  // no number: as 30
    hidden   = exponent != '0;
    mantissa = {1'b0, short_mantissa ? {hidden, code_i[1:0], 1'b0} : {hidden, code_i[2:0]}};
    if (code_i[7]) mantissa = -mantissa;
  end

  // ---------------------------------------------------------------------------------------------
  // v
  // ---------------------------------------------------------------------------------------------
  logic signed [7:0] nibble, v;

  always_comb begin
    unique case (kind_i[1:0])
      2'(CodeInt4):    nibble = {{4{code_i[3]}}, code_i[3:0]};
      2'(CodeInt4x16): nibble = {code_i[3:0], 4'b0};
      2'(CodeNf4):     nibble = Nf4[code_i[3:0]];
      default:         nibble = code_i[3] ? -E2m1[code_i[2:0]] : E2m1[code_i[2:0]];
    endcase
    unique case (kind_i)
      CodeInt8:       v = code_i;
      CodeM3, CodeM2: v = {mantissa, 3'b0};
      default:        v = nibble;
    endcase
  end

  // ---------------------------------------------------------------------------------------------
  // f / 2^t, and the product
  // ---------------------------------------------------------------------------------------------
  logic [5:0] shift;
  logic [8:0] factor;
  logic signed [17:0] product;

  assign shift = scale_i.shift - 6'(exponent) - 6'(!hidden);
  assign factor = scale_i.factor | ((shift < 6'd16) ? 9'd256 >> shift[3:0] : '0);
  assign product = 18'(v) * 18'($signed({1'b0, factor}));

  assign weight_o = scaled_i ? product[15:8] + 8'(product[7]) : v;

endmodule
