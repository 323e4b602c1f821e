// SPDX-License-Identifier: Apache-2.0
//
// Post-processing of one row of sums per cycle, in four stages: combine (partial sums, high and low
// passes, bias), multiply, round and saturate (then ReLU or the activation table), and the
// elementwise operation with the second operand. A row that is written as raw sums passes through.

module npu_gemm_post
  import npu_pkg::*;
  import npu_fixed_pkg::*;
  import npu_gemm_pkg::*;
#(
  parameter int unsigned Edge = 16,  // tile edge in elements, 16 or 32
  localparam int unsigned DWords = Edge / 2  // words of D in a row: two planes of int32
) (
  input logic clk_i,  // clock
  input logic rst_ni, // reset, active low

  input  logic        table_write_i,  // writes a line of the table; only while busy_o is low
  input  logic  [1:0] table_line_i,   // which of its four lines, in order
  input  line_t       table_data_i,   // 64 entries, the first in the lowest byte
  output logic        busy_o,         // a row is inside; from registers

  input logic row_valid_i,  // need not stay until row_ready_o
  output logic row_ready_o,  // depends on out_ready_i, not on row_valid_i
  // Count where row_valid_i and row_ready_o meet
  input row_ctrl_t row_ctrl_i,  // what to do with the row, and where it goes
  input word_t [DWords-1:0] row_d_i,  // second operand, or partial sums, low from word Edge / 4
  input post_column_t [Edge-1:0] row_columns_i,  // sums and what belongs to each

  // Four cycles after the row came, plus those in which out_ready_i held the pipe
  output logic                       out_valid_o,  // stays until out_ready_i
  input  logic                       out_ready_i,  // may depend on out_valid_o
  output row_ctrl_t                  out_ctrl_o,   // stable while out_valid_o
  output logic      [Edge-1:0][31:0] out_o         // with sign, 0 past the row end, stable
);

  logic [3:0] valid_q;
  row_ctrl_t ctrl_q[4];
  logic step;

  assign step        = !valid_q[3] || out_ready_i;
  assign row_ready_o = step;
  assign out_valid_o = valid_q[3];
  assign out_ctrl_o  = ctrl_q[3];
  assign busy_o      = |valid_q;

  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) begin
      valid_q <= '0;
      for (int unsigned s = 0; s < 4; s++) ctrl_q[s] <= '0;
    end else if (step) begin
      valid_q <= {valid_q[2:0], row_valid_i};
      if (row_valid_i) ctrl_q[0] <= row_ctrl_i;
      for (int unsigned s = 1; s < 4; s++) if (valid_q[s-1]) ctrl_q[s] <= ctrl_q[s-1];
    end
  end

  // Second operand as bytes and as 16-bit values
  logic signed [15:0] d_byte[Edge];
  logic signed [15:0] d_half[Edge];
  logic [31:0] d_high[Edge];
  logic [31:0] d_low[Edge];
  always_comb begin
    for (int unsigned c = 0; c < Edge; c++) begin
      d_byte[c] = 16'($signed(row_d_i[c/16][8*(c%16)+:8]));
      d_half[c] = row_d_i[c/8][16*(c%8)+:16];
      d_high[c] = row_d_i[c/4][32*(c%4)+:32];
      d_low[c]  = row_d_i[Edge/4+c/4][32*(c%4)+:32];
    end
  end

  sum_t value_q[Edge];  // stage 0
  logic [15:0] mult_q[Edge];
  logic [5:0] shift0_q[Edge], shift1_q[Edge];
  acc_t product_q[Edge];  // stage 1
  logic signed [31:0] rounded_q[Edge];  // stage 2
  logic signed [15:0] d0_q[Edge], d1_q[Edge];
  logic signed [23:0] factor_q[Edge];
  logic [31:0] result_q[Edge];  // stage 3

  // Stage 0: add up. Raw sums are multiplied by one.
  always_ff @(posedge clk_i) begin
    if (step && row_valid_i) begin
      for (int unsigned c = 0; c < Edge; c++) begin
        value_q[c] <= total(
            row_ctrl_i,
            row_columns_i[c].high,
            row_columns_i[c].low,
            d_high[c],
            d_low[c],
            row_columns_i[c].bias
        );
        mult_q[c] <= row_ctrl_i.requant ? row_columns_i[c].mult : 16'd1;
        shift0_q[c] <= row_ctrl_i.requant ? row_columns_i[c].shift : '0;
        d0_q[c] <= is_out16(row_ctrl_i.out) ? d_half[c] : d_byte[c];
      end
    end
  end

  // Stage 1: multiply
  always_ff @(posedge clk_i) begin
    if (step && valid_q[0]) begin
      for (int unsigned c = 0; c < Edge; c++) begin
        product_q[c] <= acc_t'(value_q[c]) * acc_t'($signed({1'b0, mult_q[c]}));
        shift1_q[c]  <= shift0_q[c];
        d1_q[c]      <= d0_q[c];
      end
    end
  end

  // Stage 2: round, saturate, ReLU, table; what the elementwise operation takes
  logic signed [15:0] bounded[Edge];
  logic [Edge-1:0][7:0] table_index, table_value;

  always_comb begin
    for (int unsigned c = 0; c < Edge; c++) begin
      bounded[c] = '0;
      if (valid_q[1]) begin
        bounded[c] = round_saturate(product_q[c], shift1_q[c], is_out16(ctrl_q[1].out));
        if (ctrl_q[1].relu && bounded[c] < 0) bounded[c] = '0;
      end
      table_index[c] = bounded[c][7:0];
    end
  end

  npu_lookup_table #(
    .Lanes(Edge)
  ) u_table (
    .clk_i,
    .rst_ni,
    .line_valid_i(table_write_i),
    .line_i      (table_line_i),
    .line_data_i (table_data_i),
    .word_valid_i(1'b0),
    .word_i      ('0),
    .word_data_i ('0),
    .lookup_i    (valid_q[1] && ctrl_q[1].activation),
    .index_i     (table_index),
    .value_o     (table_value)
  );

  always_ff @(posedge clk_i) begin
    if (step && valid_q[1]) begin
      for (int unsigned c = 0; c < Edge; c++) begin
        if (!ctrl_q[1].requant) rounded_q[c] <= product_q[c][31:0];
        else if (ctrl_q[1].activation) rounded_q[c] <= 32'($signed(table_value[c]));
        else rounded_q[c] <= 32'(bounded[c]);
        factor_q[c] <= element_factor(ctrl_q[1], d1_q[c]);
      end
    end
  end

  // Stage 3: elementwise operation; columns past the row end are zero
  always_ff @(posedge clk_i) begin
    if (step && valid_q[2]) begin
      for (int unsigned c = 0; c < Edge; c++) begin
        result_q[c] <= (6'(c) < ctrl_q[2].columns) ?
            elementwise(ctrl_q[2], rounded_q[c], factor_q[c]) : '0;
      end
    end
  end

  for (genvar c = 0; c < int'(Edge); c++) begin : gen_out
    assign out_o[c] = result_q[c];
  end

endmodule
