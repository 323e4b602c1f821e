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

  // The same, saturated to 16 bits or to 8. The longest step is taken first: what no shorter one
  // brings down to the result must be copies of the sign, and needs not be shifted any further.
  function automatic logic signed [15:0] round_saturate(acc_t x, logic [5:0] shift, logic is_16);
    logic negative, fits;
    logic [15:0] most;
    logic signed [AccBits:0] y, above;
    negative = x[AccBits-1];
    most     = is_16 ? 16'h7fff : 16'h007f;
    fits     = 1'b1;
    y        = {x, 1'b0};
    for (int unsigned step = 32; step != 0; step >>= 1) begin
      if ((32'(shift) & step) != 0) y >>>= step;
      above = y >>> (15 + step);
      fits &= above == {(AccBits + 1) {negative}};
      y = (y <<< (AccBits - 15 - step)) >>> (AccBits - 15 - step);
    end
    fits &= is_16 || y[15:8] == {8{negative}};
    if (!fits) return negative ? ~most : most;
    if (y[16:1] == most) return most;
    return y[16:1] + 16'(y[0]);
  endfunction

  // The same, saturated to 20 bits, of a product of 47
  function automatic logic signed [19:0] round_saturate_20(logic signed [46:0] x,
                                                           logic [5:0] shift);
    logic negative, fits;
    logic signed [47:0] y, above;
    negative = x[46];
    fits     = 1'b1;
    y        = {x, 1'b0};
    for (int unsigned step = 32; step != 0; step >>= 1) begin
      if ((32'(shift) & step) != 0) y >>>= step;
      if (step < 28) begin
        above = y >>> (19 + step);
        fits &= above == {48{negative}};
        y = (y <<< (28 - step)) >>> (28 - step);
      end
    end
    if (!fits) return {negative, {19{!negative}}};
    if (y[20:1] == 20'h7ffff) return 20'h7ffff;
    return y[20:1] + 20'(y[0]);
  endfunction

endpackage
