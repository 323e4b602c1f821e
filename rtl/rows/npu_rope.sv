// SPDX-License-Identifier: Apache-2.0
//
// ROPE: turns pairs of int8 lanes by the angles of their row's cos/sin pairs, in halves or
// neighbours, two or four pairs per cycle. A walker issues words of lanes and of cos/sin pairs, the
// datapath turns, the packer puts words together. Words are fetched and stored by the engine around
// this, and the multipliers are those of the norms.

module npu_rope #(
  parameter int unsigned Pairs = 4  // pairs in a cycle, 2 or 4
) (
  input logic clk_i,  // clock
  input logic rst_ni, // reset, active low

  input logic start_i,  // pulse: a new operation, only while busy_o is low
  input npu_operation_pkg::nrm_operation_t op_i,  // ROPE, with start_i
  output logic busy_o,  // work inside or to be asked for; not words being fetched

  // What to fetch, and what came
  output npu_pkg::row_step_t step_o,  // every step reads a word; stays until it is taken
  input logic step_ready_i,  // taken; may depend on step_o.valid
  output npu_rows_pkg::rope_tag_t step_tag_o,  // what the word is for; comes back as fetch_tag_i
  input logic fetch_valid_i,  // in that order; stays until ready, all stable
  output logic fetch_ready_o,  // taken; independent of fetch_valid_i
  input npu_rows_pkg::rope_tag_t fetch_tag_i,  // what it is for, with fetch_valid_i
  input npu_pkg::word_t fetch_word_i,  // 16 lanes of int8, or four cos/sin pairs

  // Multipliers
  output npu_rows_pkg::rope_work_t work_o,  // what they do in this cycle
  output logic [2*Pairs-1:0][7:0] work_lanes_o,  // int8, with work_o.load
  output npu_rows_pkg::rope_turn_t [Pairs-1:0] work_turns_o,  // zero unless operands wait
  // From the cycle after work_o.multiply to that of the next
  input npu_rows_pkg::rope_product_t [2*Pairs-1:0] products_i,

  // Words of the output
  output npu_sram_pkg::sram_wr_req_t word_o,       // 16 lanes of int8; stays until ready
  input  logic                       word_ready_i  // taken; may depend on word_o.valid
);

  import npu_pkg::*;
  import npu_rows_pkg::*;

  rope_form_t form, form_q;
  dim_t pairs;  // of a head
  logic walk_active, turn_valid, turn_ready, turn_empty, pack_empty;
  rope_tag_t turn_tag;
  logic [Pairs-1:0][7:0] turn_a, turn_b;

  assign busy_o = walk_active || !turn_empty || !pack_empty;

  // Form of the instruction
  assign pairs  = op_i.cols >> 1;

  // An idle walk has the form of the operation in its place before it starts.
  always_comb begin
    form = form_q;
    if (!walk_active) begin
      form.pairs      = op_i.pairs;
      form.last_chunk = (pairs >> 4) - dim_t'(pairs[3:0] == '0);
      form.tail       = {pairs[3:0] == '0, pairs[3:0]};
      form.words      = dim_t'((17'(op_i.cols) + 17'd15) >> 4);
    end
  end

  always_ff @(posedge clk_i) begin
    if (!rst_ni) form_q <= '0;
    else if (start_i) form_q <= form;
  end

  npu_rope_walk u_walk (
    .clk_i,
    .rst_ni,
    .start_i,
    .op_i,
    .form_i  (form),
    .active_o(walk_active),
    .step_o,
    .step_ready_i,
    .step_tag_o
  );

  npu_rope_turn #(
    .Pairs(Pairs)
  ) u_turn (
    .clk_i,
    .rst_ni,
    .neighbours_i(form_q.pairs),
    .tail_i      (form_q.tail),
    .valid_i     (fetch_valid_i),
    .ready_o     (fetch_ready_o),
    .tag_i       (fetch_tag_i),
    .word_i      (fetch_word_i),
    .work_o,
    .work_lanes_o,
    .work_turns_o,
    .products_i,
    .valid_o     (turn_valid),
    .ready_i     (turn_ready),
    .tag_o       (turn_tag),
    .a_o         (turn_a),
    .b_o         (turn_b),
    .empty_o     (turn_empty)
  );

  npu_rope_pack #(
    .Pairs(Pairs)
  ) u_pack (
    .clk_i,
    .rst_ni,
    .start_i,
    .dst_i  (op_i.dst),
    .pitch_i(op_i.dst_pitch),
    .form_i (form_q),
    .valid_i(turn_valid),
    .ready_o(turn_ready),
    .tag_i  (turn_tag),
    .a_i    (turn_a),
    .b_i    (turn_b),
    .word_o,
    .word_ready_i,
    .empty_o(pack_empty)
  );

`ifndef SYNTHESIS
  StartWhenIdle_A :
  assert property (@(posedge clk_i) disable iff (!rst_ni) start_i |-> !busy_o)
  else $error("npu_rope: started before the last operation is through");
`endif

endmodule
