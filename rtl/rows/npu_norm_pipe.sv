// SPDX-License-Identifier: Apache-2.0
//
// Datapath of the norms, a slice of an octet's columns at a time. Both passes share the front:
// unpack a slice, and one multiplier per lane that gives x^2 for the sums, or for the output
// d * R = N * R * x - S1 * R, whose factors the statistics have. The output goes on as
// q = sat20(rs(d * R, 2 + j)), q * G, and y = sat(rs(q * G, shG) + bias), packed into words. A slice
// waits in front of its product until the scale of the row and its parameters have arrived; what is
// behind stands still only while the write queue is full. ROPE, which never works at the same time,
// has its products from the first and the last multipliers.

module npu_norm_pipe #(
  parameter int unsigned Lanes   = 8,    // columns of a slice, 4 or 8
  parameter int unsigned NormMax = 8192  // longest row in columns, at most 8192
) (
  input logic clk_i,  // clock
  input logic rst_ni, // reset, active low

  input logic out16_i,  // int16 output instead of int8; steady during an operation

  // Octets of rows
  input  logic                    valid_i,  // stays until ready, data stable
  output logic                    ready_o,  // taken; independent of valid_i
  input  npu_rows_pkg::norm_tag_t tag_i,    // pass and place in the row, with valid_i
  input  npu_pkg::word_t          word_i,   // columns of int16; from lane tag_i.lanes on ignored

  output npu_rows_pkg::norm_part_t                   part_o,   // slices of the summing pass
  output logic                     [Lanes-1:0][31:0] square_o, // their squares, with part_o.valid

  // Statistics of the row and parameters
  input npu_rows_pkg::norm_result_t stat_i,  // of the oldest row
  output logic stat_pop_o,  // the row needs them no more; only with stat_i.valid
  input logic [11:0] slices_i,  // slices of the row whose parameters can be read
  output logic param_read_o,  // read the parameters of a slice
  output logic [10:0] param_slice_o,  // index inside the row, with param_read_o
  // Of its columns, one cycle after param_read_o, until the next
  input npu_rows_pkg::norm_record_t [Lanes-1:0] record_i,

  // Words of the output
  output npu_pkg::row_word_t word_o,       // 8 or 16 columns; stays until ready
  input  logic               word_ready_i, // taken; may depend on word_o.valid

  output logic empty_o,  // no stage holds a slice

  // Multipliers for ROPE
  input logic rope_i,  // they are lent: a level, only while empty_o and !valid_i
  input npu_rows_pkg::rope_work_t work_i,  // only with rope_i
  input logic [Lanes-1:0][7:0] work_lanes_i,  // int8, with work_i.load
  input npu_rows_pkg::rope_turn_t [Lanes/2-1:0] work_turns_i,  // of the pairs; else zero
  // One cycle after work_i.multiply, until the next
  output npu_rows_pkg::rope_product_t [Lanes-1:0] products_o
);

  import npu_pkg::*;
  import npu_rows_pkg::*;

  localparam int unsigned Beats = RowLanes / Lanes;
  localparam int unsigned Slices = 16 / Lanes;  // of int8 in a word
  localparam int unsigned PlaceW = $clog2(Slices);
  localparam int unsigned FactorW = $clog2(NormMax) + 17;  // of N * R, signed
  localparam int unsigned ScaledW = FactorW + 16;  // of N * R * x

  typedef struct packed {
    logic             last;
    logic [Lanes-1:0] in_row;  // lanes of columns of the row
    logic [10:0]      slice;   // index inside the row
  } slice_tag_t;

  if (Lanes != 4 && Lanes != 8) begin : gen_bad_lanes
    $fatal(1, "npu_norm_pipe: Lanes = %0d, must be 4 or 8", Lanes);
  end

  logic front, back;  // the two parts move
  logic word_valid;
  logic early;  // the front waits for statistics or parameters
  logic beat_q;  // slice of the octet

  // Front: unpacked
  logic unpack_valid_q, unpack_first_q;
  slice_tag_t slice_tag, unpack_tag_q;
  logic unpack_sum_q, unpack_out_q, unpack_turn_q;  // by pass, or lanes of ROPE
  logic [Lanes-1:0][15:0] unpack_q;
  logic signed [18:0] slice_sum;

  // Back: square or scaled, quotient, product
  logic square_valid_q, scaled_valid_q, quot_valid_q, prod_valid_q;
  logic square_first_q;
  logic signed [18:0] slice_sum_q;
  slice_tag_t scaled_tag_q, quot_tag_q;
  logic prod_last_q;
  logic [PlaceW-1:0] prod_place_q;  // in a word
  logic [5:0] scaled_half_q;
  logic signed [44:0] scaled_offset_q;  // S1 * R
  logic [Lanes-1:0][ScaledW-1:0] scaled_q;
  logic [Lanes-1:0][19:0] quot_q;
  norm_halves_t [Lanes-1:0] prod_q;
  norm_record_t [Lanes-1:0] record_q;

  // Factors
  logic [FactorW-1:0] scale;
  logic [15:0] column, gain;
  rope_turn_t turns;
  logic [Lanes-1:0][FactorW-1:0] scale_factor;
  logic [Lanes-1:0][16:0] prod_factor;
  logic [Lanes-1:0][5:0] prod_shift;

  // Packing
  logic [16*Lanes-1:0] wide;  // the columns
  logic [8*Lanes-1:0] narrow;
  word_t word;
  logic [127-8*Lanes:0] held_q;  // slices of the word so far, zero behind them

  assign early = unpack_valid_q && !unpack_sum_q &&
                 !(stat_i.valid && 12'(unpack_tag_q.slice) < slices_i);
  assign back = !word_valid || word_ready_i;
  assign front = back && !early;
  assign ready_o = front && beat_q == 1'(Beats - 1);
  assign empty_o = !(unpack_valid_q || square_valid_q || scaled_valid_q || quot_valid_q ||
                     prod_valid_q);

  assign stat_pop_o = front && unpack_valid_q && !unpack_sum_q && unpack_tag_q.last;
  assign param_read_o = back && scaled_valid_q;
  assign param_slice_o = scaled_tag_q.slice;

  always_comb begin
    part_o = '{
        valid: back && square_valid_q,
        first: square_first_q,
        last: scaled_tag_q.last,
        sum: slice_sum_q
    };
    for (int unsigned l = 0; l < Lanes; l++) square_o[l] = scaled_q[l][31:0];
  end

  always_ff @(posedge clk_i) begin
    if (!rst_ni) begin
      beat_q         <= 1'b0;
      unpack_valid_q <= 1'b0;
      square_valid_q <= 1'b0;
      scaled_valid_q <= 1'b0;
      quot_valid_q   <= 1'b0;
      prod_valid_q   <= 1'b0;
    end else if (back) begin
      if (front) begin
        beat_q         <= valid_i && beat_q != 1'(Beats - 1);
        unpack_valid_q <= valid_i;
      end
      square_valid_q <= front && unpack_valid_q && unpack_sum_q;
      scaled_valid_q <= front && unpack_valid_q && !unpack_sum_q;
      quot_valid_q   <= scaled_valid_q;
      prod_valid_q   <= quot_valid_q;
    end
  end

  // Factors. What one does not take part in is zero, or made so.
  always_comb begin
    scale = unpack_out_q ? FactorW'(stat_i.factor) : '0;
    for (int unsigned l = 0; l < Lanes; l++) begin
      column = unpack_sum_q ? unpack_q[l] : '0;
      turns = work_turns_i[l%(Lanes/2)];
      gain = unpack_turn_q ? '0 : record_i[l].gain;
      scale_factor[l] = scale | $unsigned(FactorW'($signed(column | turns[0])));
      prod_shift[l] = unpack_turn_q ? '0 : record_i[l].shift;
      prod_factor[l] = {1'b0, gain} | $unsigned(17'($signed(turns[1])));
    end
  end

  // Front
  always_comb begin
    slice_tag.last  = tag_i.last && beat_q == 1'(Beats - 1);
    slice_tag.slice = (11'(tag_i.octet) << (Beats - 1)) | 11'(beat_q);
    for (int unsigned l = 0; l < Lanes; l++) begin
      slice_tag.in_row[l] = 4'(beat_q ? RowLanes - Lanes + l : l) < tag_i.lanes;
    end
  end

  always_ff @(posedge clk_i) begin
    if (front && valid_i) begin
      unpack_first_q <= tag_i.first && !beat_q;
      unpack_tag_q   <= slice_tag;
    end
    if ((front && valid_i) || work_i.load) begin
      unpack_turn_q <= rope_i;
      unpack_sum_q  <= !rope_i && tag_i.kind == NormPassSum;
      unpack_out_q  <= !rope_i && tag_i.kind == NormPassOut;
      for (int unsigned l = 0; l < Lanes; l++) begin
        unpack_q[l] <= slice_tag.in_row[l] ? word_i[16*(beat_q?RowLanes-Lanes+l : l)+:16] : '0;
        if (rope_i) unpack_q[l] <= 16'($signed(work_lanes_i[l]));
      end
    end
  end

  always_comb begin
    slice_sum = '0;
    if (unpack_valid_q) begin
      for (int unsigned l = 0; l < Lanes; l++) slice_sum += 19'($signed(unpack_q[l]));
    end
  end

  // Back
  always_ff @(posedge clk_i) begin
    if (front && unpack_valid_q) begin
      square_first_q  <= unpack_first_q;
      slice_sum_q     <= slice_sum;
      scaled_tag_q    <= unpack_tag_q;
      scaled_half_q   <= stat_i.half;
      scaled_offset_q <= stat_i.offset;
    end
    if ((front && unpack_valid_q) || work_i.multiply) begin
      for (int unsigned l = 0; l < Lanes; l++) begin
        scaled_q[l] <= ScaledW'($signed(scale_factor[l])) * ScaledW'($signed(unpack_q[l]));
      end
    end
    if (back && scaled_valid_q) quot_tag_q <= scaled_tag_q;
    if ((back && scaled_valid_q) || work_i.load) begin
      for (int unsigned l = 0; l < Lanes; l++) begin
        quot_q[l] <= norm_quotient(47'($signed(scaled_q[l])), scaled_offset_q, scaled_half_q);
        if (rope_i) quot_q[l] <= 20'($signed(work_lanes_i[l]));
      end
    end
    if ((back && quot_valid_q) || work_i.multiply) begin
      prod_last_q  <= quot_tag_q.last;
      prod_place_q <= quot_tag_q.slice[PlaceW-1:0];
      record_q     <= record_i;
      for (int unsigned l = 0; l < Lanes; l++) begin
        prod_q[l] <= norm_coarse(
            37'($signed(prod_factor[l])) * 37'($signed(quot_q[l])), prod_shift[l]
        );
        if (!unpack_turn_q && !quot_tag_q.in_row[l]) begin
          prod_q[l]        <= '0;
          record_q[l].bias <= '0;
        end
      end
    end
  end

  always_comb begin
    for (int unsigned l = 0; l < Lanes; l++) begin
      products_o[l] = {prod_q[l][24:1], scaled_q[l][23:0]};
    end
  end

  always_comb begin
    wide = '0;
    if (prod_valid_q) begin
      for (int unsigned l = 0; l < Lanes; l++) begin
        wide[16*l+:16] = norm_output(prod_q[l], record_q[l].shift[3:0], record_q[l].bias, out16_i);
      end
    end
    for (int unsigned l = 0; l < Lanes; l++) narrow[8*l+:8] = wide[16*l+:8];
  end

  // Words: of int16, the upper bit of a slice's place does not count.
  assign word_valid = prod_valid_q &&
                      (prod_last_q || (prod_place_q | (PlaceW'(out16_i) << (PlaceW - 1))) == '1);

  always_comb begin
    word = word_t'(held_q);
    for (int unsigned s = 0; s < Slices; s++) begin
      if (!out16_i && prod_place_q == PlaceW'(s)) word[8*Lanes*s+:8*Lanes] = narrow;
    end
    for (int unsigned s = 0; s < Slices / 2; s++) begin
      if (out16_i && (prod_place_q & PlaceW'(Slices / 2 - 1)) == PlaceW'(s)) begin
        word[16*Lanes*s+:16*Lanes] = wide;
      end
    end
  end

  assign word_o = '{valid: word_valid, data: word, last: prod_last_q};

  always_ff @(posedge clk_i) begin
    if (!rst_ni || (back && word_valid)) held_q <= '0;
    else if (back && prod_valid_q) held_q <= word[127-8*Lanes:0];
  end

`ifndef SYNTHESIS
  for (genvar l = 0; l < int'(Lanes); l++) begin : gen_lane
    SmallQuotient_A :
    assert property (@(posedge clk_i) disable iff (!rst_ni)
                     scaled_valid_q && scaled_tag_q.in_row[l] |->
                     (47'($signed(
        scaled_q[l]
    )) - 47'(scaled_offset_q)) >>> (6'd24 + scaled_half_q) inside {0, -1})
    else $error("npu_norm_pipe: a column is further from the mean than its variance allows");
  end
  LentWhenIdle_A :
  assert property (@(posedge clk_i) disable iff (!rst_ni) rope_i |-> empty_o && !valid_i)
  else $error("npu_norm_pipe: a norm works while ROPE has its multipliers");
  // A reset leaves the factors of a ROPE that it ends for a cycle, in which nothing is multiplied.
  FactorsApart_A :
  assert property (@(posedge clk_i) disable iff (!rst_ni)
                   unpack_valid_q || quot_valid_q |-> rope_i || work_turns_i == '0)
  else $error("npu_norm_pipe: factors of a norm and of ROPE at the same time");
  WorkWhenLent_A :
  assert property (@(posedge clk_i) disable iff (!rst_ni) work_i.load || work_i.multiply |-> rope_i)
  else $error("npu_norm_pipe: ROPE uses multipliers that it does not have");
`endif

endmodule
