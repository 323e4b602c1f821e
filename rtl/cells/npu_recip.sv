// SPDX-License-Identifier: Apache-2.0
//
// Reciprocal of a softmax row sum, combinational: recip = round(65536 / (1 + (idx + 0.5) / 128))
// with idx the seven bits below the highest set bit of the sum, so that
// 1 / sum = recip / 2^(16 + msb) to within 0.4 %. A sum of zero gives zero.

module npu_recip (
  input  logic [31:0] sum_i,    // unsigned
  output logic [15:0] recip_o,  // 32832 to 65281, 0 for a sum of 0; in the same cycle
  output logic [ 4:0] msb_o     // place of the highest set bit, 0 for a sum of 0
);

  localparam int unsigned Entries = 128;

  typedef logic [Entries-1:0][15:0] table_t;

  // 65536 / (1 + (i + 0.5) / 128) = 2^24 / d with d = 257 + 2i. As d is odd there are no ties.
  function automatic table_t recip_table();
    for (int unsigned i = 0; i < Entries; i++) begin
      recip_table[i] = 16'((33554432 + (257 + 2 * i)) / (2 * (257 + 2 * i)));
    end
  endfunction

  localparam table_t Table = recip_table();

  logic [6:0] idx;

  always_comb begin
    msb_o   = '0;
    idx     = '0;
    recip_o = '0;
    if (sum_i != '0) begin
      for (int unsigned i = 0; i < 32; i++) if (sum_i[i]) msb_o = 5'(i);
      idx     = 7'((39'(sum_i) << 7) >> msb_o);
      recip_o = Table[idx];
    end
  end

endmodule
