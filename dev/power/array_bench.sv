// SPDX-License-Identifier: Apache-2.0
//
// The array of 16 x 16 under its own clock gates: a tile of Gaussian weights is loaded, then rows of
// Gaussian activations enter in every cycle, or with +idle=1 none. toggles.saif has +cycles=<n> of them.

module array_bench;

  localparam int unsigned Deviation = 30;  // of 127
  localparam int unsigned Settled = 64;  // cycles before what is recorded

  logic clk = 1'b0;
  logic rst_n = 1'b0;
  logic act_valid = 1'b0;
  logic signed [8:0] act[16];
  logic signed [31:0] psum[16];
  npu_gemm_pkg::weights_t weights = '0;
  int unsigned cycles, idle;

  always #5 clk = ~clk;

  npu_systolic_array u_array (
    .clk_i      (clk),
    .rst_ni     (rst_n),
    .act_valid_i(act_valid),
    .act_sel_i  ('0),
    .act_i      (act),
    .channels_valid_i(1'b0),
    .channels_i ('{default: '0}),
    .held_o     (),
    .psum_o     (psum),
    .weights_i  (weights)
  );

  // A sum of twelve even numbers of [0, 1), less its mean, deviates by one.
  function automatic logic signed [7:0] gaussian();
    int sum;
    sum = -6000;
    for (int unsigned i = 0; i < 12; i++) sum += int'($urandom_range(0, 999));
    sum = sum * int'(Deviation) / 1000;
    return (sum > 127) ? 8'sd127 : (sum < -127) ? -8'sd127 : 8'(sum);
  endfunction

  initial begin
    if ($value$plusargs("cycles=%d", cycles) == 0) cycles = 1000;
    if ($value$plusargs("idle=%d", idle) == 0) idle = 0;
    act = '{default: '0};
    repeat (4) @(negedge clk);
    rst_n = 1'b1;
    for (int unsigned line = 0; line < 4; line++) begin
      weights.strip_valid = '1;
      weights.index = 4'(line);
      for (int unsigned place = 0; place < 64; place++) weights.data[8*place+:8] = gaussian();
      @(negedge clk);
    end
    weights.strip_valid = '0;
    for (int unsigned cycle = 0; cycle < Settled + cycles; cycle++) begin
      if (cycle == Settled) begin
        $dumpfile("toggles.saif");
        $dumpvars(0, u_array);
      end
      if (idle == 0) begin
        act_valid = 1'b1;
        for (int unsigned lane = 0; lane < 16; lane++) act[lane] = 9'(gaussian());
      end
      @(negedge clk);
    end
    $finish;
  end

endmodule
