// SPDX-License-Identifier: Apache-2.0
//
// Post-processing of one beat of a row of sums per cycle, in four stages: combine (partial sums, high
// and low passes, bias); multiply; shift, round and saturate, with ReLU; the byte of the activation
// table, and the sum with the second operand. A beat that is multiplied by its second operand takes
// one stage more, which others go past: the product, which the last one rounds. What is written as
// raw sums is multiplied by one and passes through.

module npu_gemm_post
  import npu_pkg::*;
  import npu_isa_pkg::*;
  import npu_fixed_pkg::*;
  import npu_gemm_pkg::*;
#(
  parameter int unsigned Lanes = 16  // columns in a beat, at least 1
) (
  input logic clk_i,  // clock
  input logic rst_ni, // reset, active low

  input  logic        table_write_i,  // writes a word of the table; only while busy_o is low
  input  logic  [3:0] table_word_i,   // which of its 16 words
  input  word_t       table_data_i,   // 16 entries, the first in the lowest byte
  output logic        busy_o,         // a beat is inside; from registers
  output logic        product_o,      // the first stage has a beat with op MUL; from a register

  input logic beat_valid_i,  // need not stay until beat_ready_o
  output logic beat_ready_o,  // depends on out_ready_i, not on beat_valid_i
  // Count where beat_valid_i and beat_ready_o meet. None without op MUL comes while product_o is high:
  // it would run into the product in front of it.
  input beat_ctrl_t beat_ctrl_i,  // what to do with the beat, and where its row goes
  input post_column_t [Lanes-1:0] beat_columns_i,  // sums and what belongs to each
  input post_second_t [Lanes-1:0] beat_second_i,  // second operand, if there is one

  // Four cycles after the beat came, five if it is multiplied by its second operand, plus
  // those in which out_ready_i held the pipe
  output logic                         out_valid_o,  // stays until out_ready_i
  input  logic                         out_ready_i,  // may depend on out_valid_o
  output beat_ctrl_t                   out_ctrl_o,   // stable while out_valid_o
  output logic       [Lanes-1:0][31:0] out_o         // with sign, 0 past the row end, stable
);

  logic [4:0] valid_q;
  beat_ctrl_t ctrl_q[5];
  beat_ctrl_t result_ctrl;
  logic step, multiplies;

  assign multiplies   = ctrl_q[2].op == GemmOpMul;
  assign step         = !valid_q[4] || out_ready_i;
  assign result_ctrl  = valid_q[3] ? ctrl_q[3] : ctrl_q[2];
  assign beat_ready_o = step;
  assign out_valid_o  = valid_q[4];
  assign out_ctrl_o   = ctrl_q[4];
  assign busy_o       = |valid_q;

  always_ff @(posedge clk_i) begin
    if (!rst_ni) begin
      valid_q   <= '0;
      product_o <= 1'b0;
      for (int unsigned s = 0; s < 5; s++) ctrl_q[s] <= '0;
    end else if (step) begin
      valid_q[2:0] <= {valid_q[1:0], beat_valid_i};
      product_o <= beat_valid_i && beat_ctrl_i.op == GemmOpMul;
      valid_q[3] <= valid_q[2] && multiplies;
      valid_q[4] <= valid_q[3] || (valid_q[2] && !multiplies);
      if (beat_valid_i) ctrl_q[0] <= beat_ctrl_i;
      for (int unsigned s = 1; s < 4; s++) if (valid_q[s-1]) ctrl_q[s] <= ctrl_q[s-1];
      if (valid_q[3] || valid_q[2]) ctrl_q[4] <= result_ctrl;
    end
  end

  sum_t value_q[Lanes];  // stage 0
  logic [15:0] mult_q[Lanes];
  logic [5:0] shift0_q[Lanes], shift1_q[Lanes];
  acc_t scaled_q[Lanes];  // stage 1
  logic signed [31:0] rounded_q[Lanes];  // stage 2
  logic signed [15:0] d0_q[Lanes], d1_q[Lanes];
  logic signed [23:0] factor_q[Lanes];
  element_product_t product_q[Lanes];  // stage 3
  logic [31:0] result_q[Lanes];  // stage 4

  // Stage 0: add up
  always_ff @(posedge clk_i) begin
    if (step && beat_valid_i) begin
      for (int unsigned l = 0; l < Lanes; l++) begin
        value_q[l] <= total(
            beat_ctrl_i,
            beat_columns_i[l].high,
            beat_columns_i[l].low,
            beat_second_i[l].partial_high,
            beat_second_i[l].partial_low,
            beat_columns_i[l].bias
        );
        mult_q[l] <= beat_columns_i[l].mult;
        shift0_q[l] <= beat_columns_i[l].shift;
        d0_q[l] <= beat_second_i[l].element;
      end
    end
  end

  // Stage 1: multiply
  always_ff @(posedge clk_i) begin
    if (step && valid_q[0]) begin
      for (int unsigned l = 0; l < Lanes; l++) begin
        scaled_q[l] <= acc_t'(value_q[l]) * acc_t'($signed({1'b0, mult_q[l]}));
        shift1_q[l] <= shift0_q[l];
        d1_q[l] <= d0_q[l];
      end
    end
  end

  // Stage 2: shift, round, saturate, ReLU; the word of the table; what the elementwise operation takes
  logic signed [15:0] bounded[Lanes];
  logic [Lanes-1:0][3:0] table_row, table_byte;
  logic [Lanes-1:0][7:0] table_value;

  always_comb begin
    for (int unsigned l = 0; l < Lanes; l++) begin
      bounded[l] = '0;
      if (!(ctrl_q[1].relu && scaled_q[l] < 0)) begin
        bounded[l] = round_saturate(scaled_q[l], shift1_q[l], is_out16(ctrl_q[1].out));
      end
      table_row[l]  = bounded[l][7:4];
      table_byte[l] = rounded_q[l][3:0];
    end
  end

  npu_lookup_table #(
    .Lanes(Lanes)
  ) u_table (
    .clk_i,
    .write_i(table_write_i),
    .word_i (table_word_i),
    .data_i (table_data_i),
    .read_i (step && valid_q[1]),
    .row_i  (table_row),
    .byte_i (table_byte),
    .value_o(table_value)
  );

  always_ff @(posedge clk_i) begin
    if (step && valid_q[1]) begin
      for (int unsigned l = 0; l < Lanes; l++) begin
        rounded_q[l] <= ctrl_q[1].requant ? 32'(bounded[l]) : scaled_q[l][31:0];
        factor_q[l]  <= element_factor(ctrl_q[1], d1_q[l]);
      end
    end
  end

  // Stage 3: the byte of the table; the product
  logic signed [31:0] value[Lanes];

  always_comb begin
    for (int unsigned l = 0; l < Lanes; l++) begin
      value[l] = ctrl_q[2].activation ? 32'($signed(table_value[l])) : rounded_q[l];
    end
  end

  always_ff @(posedge clk_i) begin
    if (step && valid_q[2] && multiplies) begin
      for (int unsigned l = 0; l < Lanes; l++) begin
        product_q[l] <= element_product(value[l][7:0], factor_q[l]);
      end
    end
  end

  // Stage 4: round the product, or add; columns past the row end are zero
  always_ff @(posedge clk_i) begin
    if (step && (valid_q[3] || valid_q[2])) begin
      for (int unsigned l = 0; l < Lanes; l++) begin
        if (6'(l) >= result_ctrl.columns) result_q[l] <= '0;
        else if (valid_q[3]) begin
          result_q[l] <= 32'(element_rounded(product_q[l], ctrl_q[3].mul_shift));
        end else result_q[l] <= element_sum(ctrl_q[2], value[l], factor_q[l][15:0]);
      end
    end
  end

  for (genvar l = 0; l < int'(Lanes); l++) begin : gen_out
    assign out_o[l] = result_q[l];
  end

`ifndef SYNTHESIS
  NoRowInWrites_A :
  assert property (@(posedge clk_i) disable iff (!rst_ni) table_write_i |-> !busy_o)
  else $error("npu_gemm_post: the table is written under a row");
  InOrder_A :
  assert property (@(posedge clk_i) disable iff (!rst_ni) valid_q[3] && valid_q[2] |-> multiplies)
  else $error("npu_gemm_post: a beat goes past a product");
`endif

endmodule
