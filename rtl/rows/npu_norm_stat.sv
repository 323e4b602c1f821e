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

  input npu_rows_pkg::norm_part_t part_i,  // octets of the summing pass

  output npu_rows_pkg::norm_result_t result_o,  // one per row
  input  logic                       pop_i      // taken; only with result_o.valid
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
    if (part_i.valid)
      for (int unsigned l = 0; l < RowLanes; l++) octet_sum2 += 44'(part_i.square[l]);
  end

  // Row sums
  assign octet_sum  = rms_i ? '0 : norm_sum_t'(part_i.sum);
  assign take_ready = !prod_valid_q || eps_valid_i;
  assign take       = row_done_q && take_ready;

  always_ff @(posedge clk_i) begin
    if (!rst_ni) begin
      row_done_q <= 1'b0;
      sum_q      <= '0;
      sum2_q     <= '0;
    end else begin
      if (take) row_done_q <= 1'b0;
      if (part_i.valid) begin
        sum_q      <= part_i.first ? octet_sum : sum_q + octet_sum;
        sum2_q     <= part_i.first ? octet_sum2 : sum2_q + octet_sum2;
        row_done_q <= part_i.last;
      end
    end
  end

  // V
  assign variance = 65'(n_sum2_q - sum_sq_q) + 65'(eps_i);

  always_ff @(posedge clk_i) begin
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
    .data_o (result_o.sum)
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
    .data_o (result_o.scale)
  );

  assign result_o.valid = scale_valid;

`ifndef SYNTHESIS
  SumsTaken_A :
  assert property (@(posedge clk_i) disable iff (!rst_ni)
                   part_i.valid && part_i.first |-> !row_done_q || take)
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
  assert property (@(posedge clk_i) disable iff (!rst_ni) pop_i |-> result_o.valid)
  else $error("npu_norm_stat: a result is taken that is not there");
`endif

endmodule
