// SPDX-License-Identifier: Apache-2.0
//
// Statistics of the norms: S1 = sum x and S2 = sum x^2 of a row, exact, then
// V = max(1, N * S2 - S1^2 + E) and its reciprocal square root, in stages of their own beside the
// rows, so that rows may follow each other without a gap. RMSNorm is the case of S1 = 0. The
// results wait in order for the second pass. The walker never runs more than two rows ahead of it,
// which bounds what can pile up here.

module npu_norm_stat (
  input logic clk_i,  // clock
  input logic rst_ni, // reset, active low

  input npu_pkg::dim_t        cols_i,       // columns of a row, N; steady during an operation
  input logic                 rms_i,        // RMSNORM: S1 counts as zero; steady in an operation
  input logic                 eps_valid_i,  // eps_i is known: a level; rows wait for it
  input logic          [63:0] eps_i,        // E, unsigned, with eps_valid_i

  // An octet of the summing pass
  input logic valid_i,  // at most one per cycle; never refused
  input logic first_i,  // first of its row, with valid_i
  input logic last_i,  // last of its row, with valid_i
  input logic signed [18:0] sum_i,  // sum of its columns, with valid_i
  // Square of each column, unsigned, with valid_i
  input logic [npu_rows_pkg::RowLanes-1:0][31:0] square_i,

  // Results, one per row
  output logic                      valid_o,  // the oldest row's; stays until pop_i, all stable
  input  logic                      pop_i,    // taken; only with valid_o
  output npu_rows_pkg::norm_sum_t   sum_o,    // S1, with valid_o
  output npu_rows_pkg::norm_scale_t scale_o   // recip and j, with valid_o
);

  import npu_rows_pkg::*;

  norm_sum_t octet_sum, sum_q;
  logic [43:0] sum2_q, octet_sum2;
  logic row_done_q, take, take_ready, sum_ready, sum_valid, scale_ready, scale_valid;

  logic prod_valid_q, var_valid_q, rsqrt_valid;
  logic [57:0] n_sum2_q, sum_sq_q;
  logic [64:0] variance, variance_q;
  norm_scale_t rsqrt;

  always_comb begin
    octet_sum2 = '0;
    if (valid_i) for (int unsigned l = 0; l < RowLanes; l++) octet_sum2 += 44'(square_i[l]);
  end

  // Row sums
  assign octet_sum  = rms_i ? '0 : norm_sum_t'(sum_i);
  assign take_ready = !prod_valid_q || eps_valid_i;
  assign take       = row_done_q && take_ready;

  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) begin
      row_done_q <= 1'b0;
      sum_q      <= '0;
      sum2_q     <= '0;
    end else begin
      if (take) row_done_q <= 1'b0;
      if (valid_i) begin
        sum_q      <= first_i ? octet_sum : sum_q + octet_sum;
        sum2_q     <= first_i ? octet_sum2 : sum2_q + octet_sum2;
        row_done_q <= last_i;
      end
    end
  end

  // V
  assign variance = 65'(n_sum2_q - sum_sq_q) + 65'(eps_i);

  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) begin
      prod_valid_q <= 1'b0;
      var_valid_q  <= 1'b0;
    end else begin
      if (take_ready) prod_valid_q <= row_done_q;
      var_valid_q <= prod_valid_q && eps_valid_i;
    end
  end

  always_ff @(posedge clk_i) begin
    if (take) begin
      n_sum2_q <= 58'(cols_i) * 58'(sum2_q);
      sum_sq_q <= 58'(sum_q) * 58'(sum_q);
    end
    if (prod_valid_q) variance_q <= (variance == '0) ? 65'd1 : variance;
  end

  npu_rsqrt u_rsqrt (
    .clk_i,
    .rst_ni,
    .valid_i(var_valid_q),
    .value_i(variance_q),
    .valid_o(rsqrt_valid),
    .scale_o(rsqrt)
  );

  // Results. S1 comes earlier than the scale of the same row.
  npu_fifo #(
    .DataT(norm_sum_t),
    .Depth(4)
  ) u_sums (
    .clk_i,
    .rst_ni,
    .valid_i(take),
    .ready_o(sum_ready),
    .data_i (sum_q),
    .valid_o(sum_valid),
    .ready_i(pop_i),
    .data_o (sum_o)
  );

  npu_fifo #(
    .DataT(norm_scale_t),
    .Depth(4)
  ) u_scales (
    .clk_i,
    .rst_ni,
    .valid_i(rsqrt_valid),
    .ready_o(scale_ready),
    .data_i (rsqrt),
    .valid_o(scale_valid),
    .ready_i(pop_i),
    .data_o (scale_o)
  );

  assign valid_o = scale_valid;

`ifndef SYNTHESIS
  SumsTaken_A :
  assert property (@(posedge clk_i) disable iff (!rst_ni)
                   valid_i && first_i |-> !row_done_q || take)
  else $error("npu_norm_stat: a row begins before the sums of the last one are taken");
  SumRoom_A :
  assert property (@(posedge clk_i) disable iff (!rst_ni) take |-> sum_ready)
  else $error("npu_norm_stat: no room for the sum of a row");
  ScaleRoom_A :
  assert property (@(posedge clk_i) disable iff (!rst_ni) rsqrt_valid |-> scale_ready)
  else $error("npu_norm_stat: no room for the scale of a row");
  SumBeforeScale_A :
  assert property (@(posedge clk_i) disable iff (!rst_ni) scale_valid |-> sum_valid)
  else $error("npu_norm_stat: the scale of a row came before its sum");
  PopOnlyValid_A :
  assert property (@(posedge clk_i) disable iff (!rst_ni) pop_i |-> valid_o)
  else $error("npu_norm_stat: a result is taken that is not there");
`endif

endmodule
