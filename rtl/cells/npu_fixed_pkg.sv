// SPDX-License-Identifier: Apache-2.0
//
// Fixed point: the one definition of rounding and saturation that every engine shares.

package npu_fixed_pkg;

  // The widest value that is shifted: a sum of 41 bits (two passes, each of 32, one of them 8 places
  // up, and a bias of 32) times an unsigned multiplier of 16.
  localparam int unsigned SumBits = 41;
  localparam int unsigned AccBits = SumBits + 16;
  typedef logic signed [SumBits-1:0] sum_t;
  typedef logic signed [AccBits-1:0] acc_t;

  // x / 2^shift, rounding half up: what the shift leaves, plus the bit that it drops last. A shift of
  // zero returns x.
  function automatic acc_t round_shift(acc_t x, logic [5:0] shift);
    logic signed [AccBits:0] y;
    y = $signed({x, 1'b0}) >>> shift;
    return y[AccBits:1] + acc_t'({1'b0, y[0]});
  endfunction

  // x / 2^shift as far as a result of 16 bits needs it
  typedef struct packed {
    logic        negative;
    logic        fits;      // bits holds all of it
    logic [16:0] bits;      // the lowest is the one that is dropped last
  } shifted_t;

  // The longest step is taken first: what no shorter one brings down to the result must be copies of
  // the sign, and needs not be shifted any further.
  function automatic shifted_t shift_narrow(acc_t x, logic [5:0] shift);
    logic negative, fits;
    logic signed [AccBits:0] y, above;
    negative = x[AccBits-1];
    fits     = 1'b1;
    y        = {x, 1'b0};
    for (int unsigned step = 32; step != 0; step >>= 1) begin
      if ((32'(shift) & step) != 0) y >>>= step;
      above = y >>> (15 + step);
      fits &= above == {(AccBits + 1) {negative}};
      y = (y <<< (AccBits - 15 - step)) >>> (AccBits - 15 - step);
    end
    return '{negative: negative, fits: fits, bits: y[16:0]};
  endfunction

  // What was shifted, rounded half up, saturated to 16 bits or to 8
  function automatic logic signed [15:0] round_narrow(shifted_t x, logic is_16);
    logic [15:0] most;
    most = is_16 ? 16'h7fff : 16'h007f;
    if (!x.fits || !(is_16 || x.bits[15:8] == {8{x.negative}})) return x.negative ? ~most : most;
    if (x.bits[16:1] == most) return most;
    return x.bits[16:1] + 16'(x.bits[0]);
  endfunction

  // x / 2^shift, rounding half up, saturated to 16 bits or to 8
  function automatic logic signed [15:0] round_saturate(acc_t x, logic [5:0] shift, logic is_16);
    return round_narrow(shift_narrow(x, shift), is_16);
  endfunction

endpackage
