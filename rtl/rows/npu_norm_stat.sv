// SPDX-License-Identifier: Apache-2.0
//
// Statistics of the norms: S1 = sum x and S2 = sum x^2 of a row, exact, then
// V = max(1, N * S2 - S1^2 + E) and its reciprocal square root, in stages of their own beside the
// rows, so that rows may follow each other without a gap. RMSNorm is the case of S1 = 0. The
// multipliers of V then give what the second pass needs: N and S1 times the reciprocal. The walker
// never runs more than two rows ahead of that pass, which bounds what can pile up here.

module npu_norm_stat #(
  parameter int unsigned Lanes   = 8,    // columns that come at once
  parameter int unsigned NormMax = 8192  // longest row in columns, at most 8192
) (
  input logic clk_i,  // clock
  input logic rst_ni, // reset, active low

  // Columns of a row, N, at most 8192; steady during an operation
  input logic [13:0] cols_i,
  input logic        rms_i,        // RMSNORM: S1 counts as zero; steady in an operation
  input logic        eps_valid_i,  // eps_i is known: a level; rows wait for it
  input logic [63:0] eps_i,        // E, unsigned, with eps_valid_i

  input npu_rows_pkg::norm_part_t part_i,  // columns of the summing pass
  input logic [Lanes-1:0][31:0] square_i,  // their squares, unsigned, with part_i.valid

  output npu_rows_pkg::norm_result_t result_o,  // one per row
  input  logic                       pop_i      // taken; only with result_o.valid
);

  import npu_rows_pkg::*;

  localparam int unsigned MaxW = $clog2(NormMax);
  localparam int unsigned SumW = MaxW + 16;  // of S1, signed
  localparam int unsigned Sum2W = MaxW + 31;  // of S2
  localparam int unsigned ProdW = 2 * MaxW + 32;  // of S1^2 and N * S2
  localparam int unsigned LowW = 16;  // of the reciprocal

  typedef logic signed [SumW-1:0] sum_t;

  sum_t part_sum, sum_q, sum_head, sum;
  logic [Sum2W-1:0] sum2_q, part_sum2;
  logic row_done_q, take, take_ready, sum_ready, sum_valid;

  logic prod_valid_q, var_valid_q, scale_soon;
  logic [Sum2W-1:0] with_cols;
  logic [ LowW-1:0] with_sum;
  logic [ProdW-1:0] cols_prod, n_sum2_q;
  logic [SumW+LowW-1:0] sum_low, sum_sq_low_q;  // product of the low bits
  logic [ProdW-LowW-1:0] sum_sq_high_q;  // and of those above them
  logic [ProdW-1:0] sum_sq;
  logic [64:0] variance, variance_q;
  norm_scale_t scale;
  logic scaled_q, finish;  // scaled_q: the scale of a row waits
  norm_result_t result_q;

  always_comb begin
    part_sum2 = '0;
    if (part_i.valid) for (int unsigned l = 0; l < Lanes; l++) part_sum2 += Sum2W'(square_i[l]);
  end

  // Row sums
  assign part_sum   = rms_i ? '0 : sum_t'(part_i.sum);
  assign take_ready = (!prod_valid_q || eps_valid_i) && !scaled_q;
  assign take       = row_done_q && take_ready;

  always_ff @(posedge clk_i) begin
    if (!rst_ni) begin
      row_done_q <= 1'b0;
      sum_q      <= '0;
      sum2_q     <= '0;
    end else begin
      if (take) row_done_q <= 1'b0;
      if (part_i.valid) begin
        sum_q      <= part_i.first ? part_sum : sum_q + part_sum;
        sum2_q     <= part_i.first ? part_sum2 : sum2_q + part_sum2;
        row_done_q <= part_i.last;
      end
    end
  end

  // Products: for V, or with the reciprocal of its root. What S1 has above the width of the
  // reciprocal is multiplied apart, and added in V.
  assign with_cols = scaled_q ? Sum2W'(scale.recip) : sum2_q;
  assign sum = scaled_q ? sum_head : sum_q;
  assign with_sum = scaled_q ? scale.recip : sum_q[LowW-1:0];
  assign cols_prod = ProdW'(cols_i[MaxW:0]) * ProdW'(with_cols);
  assign sum_low = (SumW + LowW)'(sum) * (SumW + LowW)'($signed({1'b0, with_sum}));

  // V
  assign sum_sq = {sum_sq_high_q, {LowW{1'b0}}} + ProdW'($signed(sum_sq_low_q));
  assign variance = 65'(n_sum2_q - sum_sq) + 65'(eps_i);

  always_ff @(posedge clk_i) begin
    if (!rst_ni) begin
      prod_valid_q <= 1'b0;
      var_valid_q  <= 1'b0;
    end else begin
      if (!prod_valid_q || eps_valid_i) prod_valid_q <= take;
      var_valid_q <= prod_valid_q && eps_valid_i;
    end
  end

  always_ff @(posedge clk_i) begin
    if (take) begin
      n_sum2_q      <= cols_prod;
      sum_sq_low_q  <= sum_low;
      sum_sq_high_q <= (ProdW - LowW)'(sum_q) * (ProdW - LowW)'($signed(sum_q[SumW-1:LowW]));
    end
    if (prod_valid_q) begin
      variance_q <= variance;
      if (variance == '0) variance_q[0] <= 1'b1;
    end
  end

  npu_rsqrt u_rsqrt (
    .clk_i,
    .rst_ni,
    .valid_i(var_valid_q),
    .value_i(variance_q),
    .soon_o (scale_soon),
    .scale_o(scale)
  );

  // S1 waits for the scale of its row.
  npu_fifo #(
    .DataT(sum_t),
    .Depth(2)
  ) u_sums (
    .clk_i,
    .rst_ni,
    .valid_i(take),
    .ready_o(sum_ready),
    .data_i (sum_q),
    .valid_o(sum_valid),
    .ready_i(finish),
    .data_o (sum_head)
  );

  // Results. The scale of a row waits until the row before needs its own no more.
  assign finish   = scaled_q && (!result_q.valid || pop_i);
  assign result_o = result_q;

  always_ff @(posedge clk_i) begin
    if (!rst_ni) begin
      scaled_q <= 1'b0;
      result_q <= '0;
    end else begin
      scaled_q <= scale_soon || (scaled_q && !finish);
      if (finish) begin
        result_q <= '{
            valid: 1'b1,
            factor: 29'(cols_prod[MaxW+15:0]),
            offset: 45'($signed(sum_low)),
            half: scale.half
        };
      end else if (pop_i) begin
        result_q.valid <= 1'b0;
      end
    end
  end

`ifndef SYNTHESIS
  SumsTaken_A :
  assert property (@(posedge clk_i) disable iff (!rst_ni)
                   part_i.valid && part_i.first |-> !row_done_q || take)
  else $error("npu_norm_stat: a row begins before the sums of the last one are taken");
  SumRoom_A :
  assert property (@(posedge clk_i) disable iff (!rst_ni) take |-> sum_ready)
  else $error("npu_norm_stat: no room for the sum of a row");
  ScaleRoom_A :
  assert property (@(posedge clk_i) disable iff (!rst_ni) scale_soon |-> !scaled_q || finish)
  else $error("npu_norm_stat: the scale of a row comes while another one waits");
  SumBeforeScale_A :
  assert property (@(posedge clk_i) disable iff (!rst_ni) scaled_q |-> sum_valid)
  else $error("npu_norm_stat: the scale of a row came before its sum");
  ColsFit_A :
  assert property (@(posedge clk_i) disable iff (!rst_ni) part_i.valid |-> 32'(cols_i) <= NormMax)
  else $error("npu_norm_stat: a row has more columns than the products are wide for");
  PopOnlyValid_A :
  assert property (@(posedge clk_i) disable iff (!rst_ni) pop_i |-> result_o.valid)
  else $error("npu_norm_stat: a result is taken that is not there");
`endif

endmodule
