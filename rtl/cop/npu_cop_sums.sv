// SPDX-License-Identifier: Apache-2.0
//
// Double sums, and the float accumulator. The unit of sums holds the accumulator between instructions,
// so that one that adds to it begins at once; whoever leaves something else there has it loaded again
// by the next one.

module npu_cop_sums
  import npu_cop_pkg::*;
  import npu_cop_isa_pkg::*;
  import npu_cop_float_pkg::*;
(
  input logic clk_i,  // clock
  input logic rst_ni, // reset, active low

  input logic clear_i,  // pulse: the accumulator is +0 from the next cycle on

  // The oldest instruction
  input  cop_op_t    op_i,
  input  logic       sent_i,   // a level: FMACC has given its operands
  input  logic       ended_i,  // pulse: one on registers ends
  input  logic       drop_i,   // pulse: one on memory has failed, forget what is inside
  input  logic       done_i,   // pulse: one on memory ends, well or not
  input  logic       keep_i,   // with done_i: the accumulator is the sum
  input  cop_piece_t piece_i,  // elements
  output logic       ready_o,  // takes them; low for other units'
  output logic       taken_o,  // takes the operands of FMACC, or elements

  output logic    idle_o,         // a level: all that was taken is in the sum
  output logic    idle_next_o,    // a level: sum_o in the next cycle has all that was taken
  output float_t  sum_o,          // rounded
  output double_t facc_o,         // the accumulator
  output float_t  facc_rounded_o  // likewise, rounded
);

  localparam float_t One = 32'h3f80_0000;

  typedef enum logic [1:0] {
    HoldsFacc,
    HoldsZero,
    HoldsOther
  } holds_e;

  cop_op_e op;
  holds_e holds_q, wanted, wanted_q;
  logic on_registers, sums, begun_q, load, valid, ready, idle, idle_next, done, zero;
  logic in_sums_q, reduces_q;  // elements go here; their products are with one
  double_t sum, facc_q;
  float_t rounded, rounded_q, facc_rounded_q;

  assign op = op_i.decoded.op;
  assign on_registers = op_i.decoded.element_bytes == '0;
  assign sums = op_i.valid && op_i.cop_unit == UnitFacc;
  assign wanted = (op == CopFvreduce) ? HoldsZero : HoldsFacc;
  assign load = sums && !begun_q && holds_q != wanted && idle && !drop_i;
  assign valid = sums && (begun_q || holds_q == wanted) &&
                 ((op == CopFmacc) ? !sent_i : piece_i.valid);
  assign done = keep_i || (ended_i && op == CopFmacc);
  assign zero = clear_i || (ended_i && op == CopFrstacc);

  npu_cop_facc u_facc (
    .clk_i,
    .rst_ni,
    .clear_i    (drop_i),
    .load_i     (load),
    .value_i    ((wanted == HoldsZero) ? '0 : facc_q),
    .valid_i    (valid),
    .ready_o    (ready),
    .a_i        (on_registers ? op_i.rs[0] : piece_i.a[31:0]),
    .b_i        (on_registers ? op_i.rs[1] : reduces_q ? One : piece_i.b[31:0]),
    .idle_o     (idle),
    .idle_next_o(idle_next),
    .value_o    (sum)
  );

  assign rounded = narrow(sum);

  // Rounding waits in registers: that of the accumulator changes with it, that of a sum is not looked
  // at before the cycle after it is idle. A sum of nothing is there when the zero has been loaded.
  always_ff @(posedge clk_i) begin
    if (!rst_ni) begin
      facc_q         <= '0;
      facc_rounded_q <= '0;
      rounded_q      <= '0;
      holds_q        <= HoldsFacc;
      begun_q        <= 1'b0;
    end else begin
      rounded_q <= load ? '0 : rounded;
      if (load) holds_q <= wanted;
      if (valid && ready) begin
        holds_q <= HoldsOther;
        begun_q <= 1'b1;
      end
      if (done) begin
        facc_q         <= sum;
        facc_rounded_q <= rounded;
        holds_q        <= HoldsFacc;
      end
      if (done || done_i || drop_i) begun_q <= 1'b0;
      if (drop_i) holds_q <= HoldsOther;
      if (zero) begin
        facc_q         <= '0;
        facc_rounded_q <= '0;
        holds_q        <= HoldsOther;
      end
    end
  end

  // Elements come later than their instruction.
  always_ff @(posedge clk_i) begin
    if (!rst_ni) begin
      {in_sums_q, reduces_q} <= '0;
      wanted_q <= HoldsFacc;
    end else begin
      in_sums_q <= op_i.cop_unit == UnitFacc;
      reduces_q <= op == CopFvreduce;
      wanted_q  <= wanted;
    end
  end

  assign ready_o        = in_sums_q && ready && (begun_q || holds_q == wanted_q);
  assign taken_o        = valid && ready;
  assign idle_o         = idle;
  assign idle_next_o    = reduces_q ? idle : idle_next;
  assign sum_o          = rounded_q;
  assign facc_o         = facc_q;
  assign facc_rounded_o = facc_rounded_q;

`ifndef SYNTHESIS
  KeepsWholeSum_A :
  assert property (@(posedge clk_i) disable iff (!rst_ni) done |-> idle)
  else $error("npu_cop_sums: the accumulator is kept while a term is on its way");
`endif

endmodule
