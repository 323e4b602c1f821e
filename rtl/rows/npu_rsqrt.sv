// SPDX-License-Identifier: Apache-2.0
//
// Reciprocal square root for the norms, two pipeline stages: j = msb(V) / 2, then the leading bits
// idx = (V << 6) >> 2j, 64 to 255, select recip = round(65536 / sqrt((idx + 0.5) / 64)), at most
// 65,281 and so within 16 bits. 1 / sqrt(V) is about recip / 2^(16 + j). V is at least 1.

module npu_rsqrt (
  input logic clk_i,  // clock
  input logic rst_ni, // reset, active low

  input logic        valid_i,  // a value comes, at most one per cycle; never refused
  input logic [64:0] value_i,  // V, not zero, with valid_i

  output logic                      soon_o,  // a cycle after valid_i; cannot be held off
  // recip and j of the value, from the cycle after soon_o until two cycles after the next valid_i
  output npu_rows_pkg::norm_scale_t scale_o
);

  localparam int unsigned FirstIdx = 64;
  localparam int unsigned Entries = 192;

  typedef logic [Entries-1:0][15:0] table_t;

  // recip is the largest r with r - 0.5 <= 65536 / sqrt((idx + 0.5) / 64), that is
  // (2r - 1)^2 * (2 idx + 1) <= 2^41. Both factors are odd, so there are no ties.
  function automatic table_t rsqrt_table();
    for (int unsigned i = 0; i < Entries; i++) begin
      logic [63:0] r, odd, divisor;
      r = '0;
      divisor = 64'(i + FirstIdx) * 2 + 1;
      for (int b = 15; b >= 0; b--) begin
        odd = ((r | (64'd1 << b)) << 1) - 64'd1;
        if (odd * odd * divisor <= (64'd1 << 41)) r = r | (64'd1 << b);
      end
      rsqrt_table[i] = r[15:0];
    end
  endfunction

  localparam table_t Table = rsqrt_table();

  logic [64:0] value_q;
  logic [5:0] half, half_q;
  logic half_valid_q;
  npu_rows_pkg::norm_scale_t scale_q;
  logic [7:0] idx;

  assign soon_o  = half_valid_q;
  assign scale_o = scale_q;

  always_comb begin
    half = '0;
    if (valid_i) begin
      for (int unsigned i = 0; i < 33; i++) begin
        if (value_i[2*i] || (i < 32 && value_i[2*i+1])) half = 6'(i);
      end
    end
  end

  assign idx = 8'((71'(value_q) << 6) >> {half_q, 1'b0});

  always_ff @(posedge clk_i) begin
    if (!rst_ni) half_valid_q <= 1'b0;
    else half_valid_q <= valid_i;
  end

  always_ff @(posedge clk_i) begin
    if (valid_i) begin
      value_q <= value_i;
      half_q  <= half;
    end
    if (half_valid_q) scale_q <= '{recip: Table[idx-8'(FirstIdx)], half: half_q};
  end

`ifndef SYNTHESIS
  ValueNotZero_A :
  assert property (@(posedge clk_i) disable iff (!rst_ni) valid_i |-> value_i != '0)
  else $error("npu_rsqrt: V is zero");
  IndexInTable_A :
  assert property (@(posedge clk_i) disable iff (!rst_ni) half_valid_q |-> idx >= 8'(FirstIdx))
  else $error("npu_rsqrt: an index in front of the table");
`endif

endmodule
