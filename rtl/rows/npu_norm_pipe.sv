// SPDX-License-Identifier: Apache-2.0
//
// Datapath of the norms. Both passes share the front: unpack an octet, and one multiplier per lane
// that gives x^2 for the sums or N * x for the output. The output goes on as d = N * x - S1, d * R,
// q = sat20(rs(d * R, 2 + j)), q * G, and y = sat(rs(q * G, shG) + bias), packed into words. The
// front waits until the scale of the row and the parameters of the octet have arrived; the rest
// stands still only while the write queue is full. ROPE, which never works at the same time, has its
// products from the first and the last multipliers.

module npu_norm_pipe (
  input logic clk_i,  // clock
  input logic rst_ni, // reset, active low

  input npu_pkg::dim_t cols_i,  // columns of a row, N; steady during an operation
  input logic          out16_i, // int16 output instead of int8; steady during an operation

  // Octets of rows
  input  logic                    valid_i,  // stays until ready, data stable
  output logic                    ready_o,  // taken; independent of valid_i
  input  npu_rows_pkg::norm_tag_t tag_i,    // pass and place in the row, with valid_i
  input  npu_pkg::word_t          word_i,   // columns of int16; from lane tag_i.lanes on ignored

  output npu_rows_pkg::norm_part_t part_o,  // octets of the summing pass, to the statistics

  // Statistics of the row and parameters
  input npu_rows_pkg::norm_result_t stat_i,  // of the oldest row
  output logic stat_pop_o,  // the row needs them no more; only with stat_i.valid
  input logic [10:0] octets_i,  // octets of the row whose parameters can be read
  output logic param_read_o,  // read the parameters of an octet
  output logic [9:0] param_octet_o,  // index inside the row, with param_read_o
  // Of its columns, one cycle after param_read_o, until the next
  input npu_rows_pkg::norm_record_t [npu_rows_pkg::RowLanes-1:0] record_i,

  // Words of the output
  output npu_pkg::row_word_t word_o,       // 8 or 16 columns; stays until ready
  input  logic               word_ready_i, // taken; may depend on word_o.valid

  output logic empty_o,  // no stage holds an octet

  // Multipliers for ROPE
  input logic rope_i,  // they are lent: a level, only while empty_o and !valid_i
  input npu_rows_pkg::rope_work_t work_i,  // only with rope_i
  // One cycle after work_i.multiply, until the next
  output npu_rows_pkg::rope_products_t products_o
);

  import npu_pkg::*;
  import npu_fixed_pkg::*;
  import npu_rows_pkg::*;

  typedef struct packed {
    logic       last;
    logic [3:0] lanes;
    logic [9:0] octet;
  } out_tag_t;

  logic front, back;  // the two parts move
  logic word_valid;
  logic early;  // the front waits for statistics or parameters

  // Front: unpacked, multiplied
  logic unpack_valid_q, mul_valid_q;
  norm_tag_t unpack_tag_q, mul_tag_q;
  octet_t unpack_q;
  logic signed [18:0] octet_sum, octet_sum_q;
  logic [RowLanes-1:0][31:0] mul_q;

  // Back: difference, scaled, quotient, product
  logic diff_valid_q, scaled_valid_q, quot_valid_q, prod_valid_q;
  out_tag_t diff_tag_q, scaled_tag_q, quot_tag_q;
  logic prod_last_q, prod_upper_q;  // of the row; octet that fills a word of int8
  norm_scale_t diff_scale_q;
  logic [5:0] scaled_half_q;
  logic [RowLanes-1:0][31:0] diff_q;
  logic [RowLanes-1:0][46:0] scaled_q;
  logic [RowLanes-1:0][19:0] quot_q;
  norm_halves_t [RowLanes-1:0] prod_q;
  norm_record_t [RowLanes-1:0] record_q;

  // Factors
  octet_t mul_factor;
  logic [RowLanes-1:0][16:0] prod_factor;
  logic [RowLanes-1:0][5:0] prod_shift;

  // Packing
  octet_t octet;
  logic [63:0] narrow, low_q;

  assign early = mul_valid_q && mul_tag_q.kind == NormPassOut &&
                 !(stat_i.valid && 11'(mul_tag_q.octet) < octets_i);
  assign back = !word_valid || word_ready_i;
  assign front = back && !early;
  assign ready_o = front;
  assign empty_o = !(unpack_valid_q || mul_valid_q || diff_valid_q || scaled_valid_q ||
                     quot_valid_q || prod_valid_q);

  assign part_o = '{
          valid: front && mul_valid_q && mul_tag_q.kind == NormPassSum,
          first: mul_tag_q.first,
          last: mul_tag_q.last,
          sum: octet_sum_q,
          square: mul_q
      };
  assign stat_pop_o = front && mul_valid_q && mul_tag_q.kind == NormPassOut && mul_tag_q.last;
  assign param_read_o = back && scaled_valid_q;
  assign param_octet_o = scaled_tag_q.octet;

  always_ff @(posedge clk_i) begin
    if (!rst_ni) begin
      unpack_valid_q <= 1'b0;
      mul_valid_q    <= 1'b0;
      diff_valid_q   <= 1'b0;
      scaled_valid_q <= 1'b0;
      quot_valid_q   <= 1'b0;
      prod_valid_q   <= 1'b0;
    end else if (back) begin
      if (front) begin
        unpack_valid_q <= valid_i;
        mul_valid_q    <= unpack_valid_q;
      end
      diff_valid_q   <= front && mul_valid_q && mul_tag_q.kind == NormPassOut;
      scaled_valid_q <= diff_valid_q;
      quot_valid_q   <= scaled_valid_q;
      prod_valid_q   <= quot_valid_q;
    end
  end

  // Factors
  always_comb begin
    for (int unsigned l = 0; l < RowLanes; l++) begin
      mul_factor[l]  = (unpack_tag_q.kind == NormPassSum) ? unpack_q[l] : cols_i;
      prod_factor[l] = {1'b0, record_i[l].gain};
      prod_shift[l]  = record_i[l].shift;
      if (rope_i) begin
        mul_factor[l]  = work_i.turns[l%4][0];
        prod_factor[l] = 17'($signed(work_i.turns[l%4][1]));
        prod_shift[l]  = '0;
      end
    end
  end

  // Front
  always_ff @(posedge clk_i) begin
    if (front && valid_i) unpack_tag_q <= tag_i;
    if ((front && valid_i) || work_i.load) begin
      for (int unsigned l = 0; l < RowLanes; l++) begin
        unpack_q[l] <= (4'(l) < tag_i.lanes) ? word_i[16*l+:16] : '0;
        if (rope_i) unpack_q[l] <= 16'($signed(work_i.lanes[l]));
      end
    end
  end

  always_comb begin
    octet_sum = '0;
    if (unpack_valid_q) begin
      for (int unsigned l = 0; l < RowLanes; l++) octet_sum += 19'($signed(unpack_q[l]));
    end
  end

  always_ff @(posedge clk_i) begin
    if (front && unpack_valid_q) begin
      mul_tag_q   <= unpack_tag_q;
      octet_sum_q <= octet_sum;
    end
    if ((front && unpack_valid_q) || work_i.multiply) begin
      for (int unsigned l = 0; l < RowLanes; l++) begin
        mul_q[l] <= 32'($signed(unpack_q[l])) * 32'($signed(mul_factor[l]));
      end
    end
  end

  // Back
  always_ff @(posedge clk_i) begin
    if (front && mul_valid_q) begin
      diff_tag_q   <= '{last: mul_tag_q.last, lanes: mul_tag_q.lanes, octet: mul_tag_q.octet};
      diff_scale_q <= stat_i.scale;
      for (int unsigned l = 0; l < RowLanes; l++) diff_q[l] <= mul_q[l] - 32'(stat_i.sum);
    end
    if (back && diff_valid_q) begin
      scaled_tag_q  <= diff_tag_q;
      scaled_half_q <= diff_scale_q.half;
      for (int unsigned l = 0; l < RowLanes; l++) begin
        scaled_q[l] <= 47'($signed(diff_q[l])) * 47'(diff_scale_q.recip);
      end
    end
    if (back && scaled_valid_q) quot_tag_q <= scaled_tag_q;
    if ((back && scaled_valid_q) || work_i.load) begin
      for (int unsigned l = 0; l < RowLanes; l++) begin
        quot_q[l] <= round_saturate_20(scaled_q[l], scaled_half_q + 6'd2);
        if (rope_i) quot_q[l] <= 20'($signed(work_i.lanes[l]));
      end
    end
    if ((back && quot_valid_q) || work_i.multiply) begin
      prod_last_q  <= quot_tag_q.last;
      prod_upper_q <= quot_tag_q.octet[0];
      record_q     <= record_i;
      for (int unsigned l = 0; l < RowLanes; l++) begin
        prod_q[l] <= norm_coarse(
            37'($signed(quot_q[l])) * 37'($signed(prod_factor[l])), prod_shift[l]
        );
        if (!rope_i && 4'(l) >= quot_tag_q.lanes) begin
          prod_q[l]        <= '0;
          record_q[l].bias <= '0;
        end
      end
    end
  end

  always_comb begin
    for (int unsigned l = 0; l < RowLanes; l++) begin
      products_o[l] = {prod_q[l][24:1], mul_q[l][23:0]};
    end
  end

  always_comb begin
    octet = '0;
    if (prod_valid_q) begin
      for (int unsigned l = 0; l < RowLanes; l++) begin
        octet[l] = norm_output(prod_q[l], record_q[l].shift[3:0], record_q[l].bias, out16_i);
      end
    end
    for (int unsigned l = 0; l < RowLanes; l++) narrow[8*l+:8] = octet[l][7:0];
  end

  // Words: one octet of int16, or two of int8
  assign word_valid = prod_valid_q && (out16_i || prod_upper_q || prod_last_q);

  always_comb begin
    word_o.valid = word_valid;
    word_o.last  = prod_last_q;
    if (out16_i) word_o.data = word_t'(octet);
    else if (prod_upper_q) word_o.data = {narrow, low_q};
    else word_o.data = {64'd0, narrow};
  end

  always_ff @(posedge clk_i) begin
    if (back && prod_valid_q) low_q <= narrow;
  end

`ifndef SYNTHESIS
  LentWhenIdle_A :
  assert property (@(posedge clk_i) disable iff (!rst_ni) rope_i |-> empty_o && !valid_i)
  else $error("npu_norm_pipe: a norm works while ROPE has its multipliers");
  WorkWhenLent_A :
  assert property (@(posedge clk_i) disable iff (!rst_ni) work_i.load || work_i.multiply |-> rope_i)
  else $error("npu_norm_pipe: ROPE uses multipliers that it does not have");
`endif

endmodule
