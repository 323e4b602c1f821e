// SPDX-License-Identifier: Apache-2.0
//
// Reciprocal of a softmax row sum, combinational: recip = round(65536 / (1 + (idx + 0.5) / 128))
// with idx the seven bits below the highest set bit of the sum, so that
// 1 / sum = recip / 2^(16 + msb) to within 0.4 %. A sum of zero gives zero. The highest nibble with
// a bit set is found among eight, while each of them says where its own highest bit is.

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

  typedef struct packed {
    logic       any;    // a bit of the nibble is set
    logic [1:0] place;  // of its highest set bit
    logic [6:0] idx;    // bits of the sum below that
  } nibble_t;

  logic [38:0] padded;
  nibble_t [7:0] nibbles;
  logic [7:0] first;  // one-hot: the highest nibble with a bit set
  logic [2:0] nibble;
  nibble_t found;

  assign padded = {sum_i, 7'd0};

  always_comb begin
    nibble = '0;
    found  = '0;
    for (int unsigned n = 0; n < 8; n++) begin
      nibbles[n].any   = |sum_i[4*n+:4];
      nibbles[n].place = {|sum_i[4*n+2+:2], sum_i[4*n+3] || (sum_i[4*n+1] && !sum_i[4*n+2])};
      nibbles[n].idx   = 7'(padded[4*n+:10] >> nibbles[n].place);
    end
    for (int unsigned n = 0; n < 8; n++) begin
      first[n] = nibbles[n].any;
      for (int unsigned above = n + 1; above < 8; above++) if (nibbles[above].any) first[n] = 1'b0;
      if (first[n]) nibble |= 3'(n);
      if (first[n]) found |= nibbles[n];
    end
  end

  assign msb_o   = {nibble, found.place};
  assign recip_o = found.any ? Table[found.idx] : '0;

endmodule
