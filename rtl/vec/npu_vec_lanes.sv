// SPDX-License-Identifier: Apache-2.0
//
// Datapath of VEC, 16 or 8 lanes of int8 or 8 of int16 in three stages: operands, exact result (or the
// word of the table), and rounding shift, saturation and packing, or the byte of the table. Lanes past
// the row end give zero. Two steps of 8 elements make one int8 word.

module npu_vec_lanes #(
  parameter int unsigned Lanes = 16  // 16 or 8
) (
  input logic clk_i,  // clock
  input logic rst_ni, // reset, active low

  // The operation; addresses and sizes are of no use here
  /* verilator lint_off UNUSEDSIGNAL */
  // From the cycle after start_i until the last word is taken
  input npu_operation_pkg::vec_operation_t op_i,
  /* verilator lint_on UNUSEDSIGNAL */
  // Bytes of the table that the lanes look up
  output logic read_o,  // they read words
  output logic [Lanes-1:0][3:0] row_o,  // which word, with read_o
  output logic [Lanes-1:0][3:0] byte_o,  // which byte of it, a cycle later
  input logic [Lanes-1:0][7:0] value_i,  // that byte, with byte_o

  input  logic                  start_i,  // pulse: an operation begins; only while empty_o
  input  logic                  valid_i,  // stays until ready_o, tag_i and word_i stable
  output logic                  ready_o,  // depends on word_ready_i, not on valid_i
  input  npu_vec_pkg::vec_tag_t tag_i,    // what word_i is; never a word of the table
  input  npu_pkg::word_t        word_i,   // 16 elements of int8 or 8 of int16; not with tag_i.upper

  // Two cycles after its last operand, plus those in which word_ready_i held the lanes
  output npu_pkg::row_word_t word_o,       // stays until word_ready_i
  input  logic               word_ready_i, // may depend on word_o.valid

  output logic empty_o  // no result is under way
);

  import npu_pkg::*;
  import npu_fixed_pkg::*;
  import npu_vec_pkg::*;

  logic advance, operand_valid_q, operand_last_q, upper_q, exact_valid_q, exact_last_q;
  logic [4:0] operand_lanes_q, exact_lanes_q;
  word_t older_q, newer_q;  // the two words that came last
  word_t a, b;
  logic [Lanes-1:0][31:0] exact_q;

  vec_mode_t mode_q;
  logic [Lanes-1:0][7:0] narrow;
  logic [7:0][15:0] wide;
  logic halves;  // results are halves of words of int8
  logic half_q, word_valid;
  logic [63:0] low_q;

  // Element of a lane, sign-extended. Lanes 8 and up are of use for whole words of int8 only.
  function automatic logic signed [15:0] element(word_t word, int unsigned lane, logic is_wide,
                                                 logic upper);
    if (lane < 8) begin
      if (is_wide) return $signed(word[16*(lane%8)+:16]);
      if (upper) return 16'($signed(word[64+8*(lane%8)+:8]));
    end
    return 16'($signed(word[8*lane+:8]));
  endfunction

  assign advance = !word_valid || word_ready_i;
  assign ready_o = advance;
  assign empty_o = !operand_valid_q && !exact_valid_q;

  always_ff @(posedge clk_i) begin
    if (!rst_ni) begin
      operand_valid_q <= 1'b0;
      exact_valid_q   <= 1'b0;
    end else if (advance) begin
      operand_valid_q <= valid_i && !tag_i.hold;
      exact_valid_q   <= operand_valid_q;
    end
  end

  // Decoded before the first operand has come
  always_ff @(posedge clk_i) mode_q <= mode_of(op_i);

  // Operands
  assign a = mode_q.two ? older_q : newer_q;
  assign b = newer_q;

  always_ff @(posedge clk_i) begin
    if (advance && valid_i) begin
      if (!tag_i.upper) begin
        newer_q <= word_i;
        older_q <= newer_q;
      end
      upper_q         <= tag_i.upper;
      operand_last_q  <= tag_i.last;
      operand_lanes_q <= tag_i.lanes;
    end
  end

  // Exact result, and the word of the table
  logic signed [15:0] x[Lanes], y[Lanes];

  always_comb begin
    for (int unsigned l = 0; l < Lanes; l++) begin
      x[l] = element(a, l, op_i.a16, upper_q);
      y[l] = element(b, l, op_i.a16, upper_q);
      row_o[l] = x[l][7:4];
      byte_o[l] = exact_q[l][3:0];
    end
  end

  assign read_o = advance && operand_valid_q && mode_q.look_up;

  always_ff @(posedge clk_i) begin
    if (advance && operand_valid_q) begin
      exact_last_q  <= operand_last_q;
      exact_lanes_q <= operand_lanes_q;
      for (int unsigned l = 0; l < Lanes; l++) begin
        exact_q[l] <= exact(mode_q, x[l], y[l]);
      end
    end
  end

  // Rounding, saturation or the byte of the table, and packing
  always_comb begin
    narrow = '0;
    wide   = '0;
    for (int unsigned l = 0; l < Lanes; l++) begin
      automatic logic is_16 = op_i.c16 && l < 8;
      automatic
      logic signed [15:0]
      z = round_saturate(
          acc_t'($signed(exact_q[l])), mode_q.shift, is_16
      );
      if (exact_valid_q && 5'(l) < exact_lanes_q) begin
        narrow[l] = mode_q.look_up ? value_i[l] : z[7:0];
        if (l < 8) wide[l%8] = z;
      end
    end
  end

  assign halves     = op_i.a16 || Lanes == 8;
  assign word_valid = exact_valid_q && (op_i.c16 || !halves || half_q || exact_last_q);

  always_comb begin
    word_o.valid = word_valid;
    word_o.last  = exact_last_q;
    if (op_i.c16) word_o.data = word_t'(wide);
    else if (!halves) word_o.data = word_t'(narrow);
    else if (half_q) word_o.data = {narrow[7:0], low_q};
    else word_o.data = {64'd0, narrow[7:0]};
  end

  always_ff @(posedge clk_i) begin
    if (!rst_ni) half_q <= 1'b0;
    else if (start_i) half_q <= 1'b0;
    else if (advance && exact_valid_q) half_q <= !half_q && !exact_last_q;
  end

  always_ff @(posedge clk_i) begin
    if (advance && exact_valid_q) low_q <= 64'(narrow[7:0]);
  end

`ifndef SYNTHESIS
  ModeKnown_A :
  assert property (@(posedge clk_i) disable iff (!rst_ni) operand_valid_q |-> mode_q == mode_of(
      op_i
  ))
  else $error("npu_vec_lanes: an operand comes before its operation is decoded");
  OnlyOperands_A :
  assert property (@(posedge clk_i) disable iff (!rst_ni) valid_i |-> !tag_i.param)
  else $error("npu_vec_lanes: a word of the table comes as an operand");
`endif

endmodule
