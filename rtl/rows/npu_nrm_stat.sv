// SPDX-License-Identifier: Apache-2.0
//
// Statistics of the norms: S1 = sum x and S2 = sum x^2 of a row, exact, then
// V = max(1, N * S2 - S1^2 + E) and its reciprocal square root, in stages of their own beside the
// rows, so that rows may follow each other without a gap. RMSNorm is the case of S1 = 0. The results wait in order for the second
// pass. The walker never runs more than two rows ahead of it, which bounds what can pile up here.

module npu_nrm_stat (
  input logic clk_i,
  input logic rst_ni,

  input npu_pkg::dim_t        cols_i,
  input logic                 rms_i,
  input logic                 eps_valid_i,
  input logic          [63:0] eps_i,

  // An octet of the summing pass
  input logic                                           valid_i,
  input logic                                           first_i,
  input logic                                           last_i,
  input logic signed [                      18:0]       sum_i,
  input logic        [npu_rows_pkg::RowLanes-1:0][31:0] square_i,

  // Results, one per row
  output logic                     valid_o,
  input  logic                     pop_i,
  output npu_rows_pkg::nrm_sum_t   sum_o,
  output npu_rows_pkg::nrm_scale_t scale_o
);

  import npu_rows_pkg::*;

  nrm_sum_t octet_sum, sum_q;
  logic [43:0] sum2_q, octet_sum2;
  logic row_done_q, take, take_ready, sum_ready, sum_valid, scale_ready, scale_valid;

  logic prod_valid_q, var_valid_q, rsqrt_valid;
  logic [57:0] n_sum2_q, sum_sq_q;
  logic [64:0] variance, variance_q;
  nrm_scale_t rsqrt;

  always_comb begin
    octet_sum2 = '0;
    if (valid_i) for (int unsigned l = 0; l < RowLanes; l++) octet_sum2 += 44'(square_i[l]);
  end

  // Row sums
  assign octet_sum  = rms_i ? '0 : nrm_sum_t'(sum_i);
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
    .DataT(nrm_sum_t),
    .Depth(4)
  ) u_sums (
    .clk_i,
    .rst_ni,
    .valid_i(take),
    .ready_o(sum_ready),
    .data_i (sum_q),
    .valid_o(sum_valid),
    .ready_i(pop_i),
    .data_o (sum_o),
    .count_o()
  );

  npu_fifo #(
    .DataT(nrm_scale_t),
    .Depth(4)
  ) u_scales (
    .clk_i,
    .rst_ni,
    .valid_i(rsqrt_valid),
    .ready_o(scale_ready),
    .data_i (rsqrt),
    .valid_o(scale_valid),
    .ready_i(pop_i),
    .data_o (scale_o),
    .count_o()
  );

  assign valid_o = scale_valid;

`ifndef SYNTHESIS
  assert property (@(posedge clk_i) disable iff (!rst_ni)
                   valid_i && first_i |-> !row_done_q || take);
  assert property (@(posedge clk_i) disable iff (!rst_ni) take |-> sum_ready);
  assert property (@(posedge clk_i) disable iff (!rst_ni) rsqrt_valid |-> scale_ready);
  assert property (@(posedge clk_i) disable iff (!rst_ni) scale_valid |-> sum_valid);
  assert property (@(posedge clk_i) disable iff (!rst_ni) pop_i |-> valid_o);
`endif

endmodule
