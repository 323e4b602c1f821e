// SPDX-License-Identifier: Apache-2.0
//
// The float side: units of float32 and double, the float accumulator, and instructions on registers.
// The unit of double sums holds the accumulator between instructions, so that one that adds to it
// begins at once; whoever leaves something else there has it loaded again by the next one.

module npu_cop_float
  import npu_cop_pkg::*;
  import npu_cop_isa_pkg::*;
  import npu_cop_float_pkg::*;
(
  input logic clk_i,  // clock
  input logic rst_ni, // reset, active low

  input  cop_op_t  op_i,    // the oldest instruction
  input  logic     room_i,  // a level: an instruction may end
  output cop_end_t end_o,   // of an instruction of these on registers

  input  logic    clear_i,  // pulse: the accumulator is +0 from the next cycle on
  output double_t facc_o,   // the accumulator

  // Instructions on memory
  input  cop_unit_e  unit_i,   // a level: who works on the elements
  input  logic       start_i,  // pulse: one begins, forget what was before
  input  logic       drop_i,   // pulse: it has failed, forget what is inside
  input  logic       done_i,   // pulse: it ends, well or not
  input  logic       keep_i,   // with done_i: the accumulator is the sum
  input  cop_piece_t piece_i,  // elements
  output logic       ready_o,  // takes them
  // A level: facc_o with keep_i and result_o in the next cycle hold everything that was taken
  output logic       idle_o,
  output cop_group_t group_o,  // results to write, in order
  input  logic       ready_i,  // takes them
  output float_t     result_o  // sum or root
);

  localparam float_t One = 32'h3f80_0000;

  cop_op_e op;
  float_t x, a, b, narrowed, narrowed_q, facc_float_q;
  double_t facc_q;
  logic clear, on_registers, scalar, sent_q, ends;
  logic pairs_q, reduces_q;  // elements have a partner; the products are with one

  assign op    = op_i.decoded.op;
  assign x     = op_i.rs[0];
  assign a     = piece_i.a[31:0];
  assign b     = piece_i.b[31:0];
  assign clear = start_i || drop_i;

  // ---------------------------------------------------------------------------------------------
  // Instructions on registers. Those that take longer send their operand and wait.
  // ---------------------------------------------------------------------------------------------
  logic facc_ready, facc_idle, facc_idle_next, facc_valid;
  logic root_ready, root_valid, func_ready, func_valid;
  double_t sum;
  float_t root, func;

  assign on_registers = op_i.decoded.element_bytes == '0;
  assign scalar = op_i.valid && op inside {CopFmacc, CopFrsqrt, CopFrelu, CopFgelu, CopFrstacc};

  always_comb begin
    unique case (op)
      CopFmacc:  ends = sent_q && facc_idle;
      CopFrsqrt: ends = sent_q && root_valid;
      CopFgelu:  ends = sent_q && func_valid;
      default:   ends = 1'b1;
    endcase
    end_o      = '0;
    end_o.done = scalar && ends && room_i;
    unique case (op)
      CopFrsqrt:  end_o.data = root;
      CopFgelu:   end_o.data = func;
      CopFrelu:   end_o.data = relu(x);
      CopFrstacc: end_o.data = facc_float_q;
      default:    end_o.data = '0;
    endcase
  end

  always_ff @(posedge clk_i) begin
    if (!rst_ni) sent_q <= 1'b0;
    else if (end_o.done) sent_q <= 1'b0;
    else if ((op == CopFmacc && facc_valid && facc_ready) ||
             (scalar && op == CopFrsqrt && root_ready) || (scalar && op == CopFgelu && func_ready))
      sent_q <= 1'b1;
  end

  // ---------------------------------------------------------------------------------------------
  // Double sums
  // ---------------------------------------------------------------------------------------------
  typedef enum logic [1:0] {
    HoldsFacc,
    HoldsZero,
    HoldsOther
  } holds_e;

  holds_e holds_q, wanted, wanted_q;
  logic sums, begun_q, load, facc_done, facc_zero;

  assign sums = op_i.valid && unit_i == UnitFacc;
  assign wanted = (op == CopFvreduce) ? HoldsZero : HoldsFacc;
  assign load = sums && !begun_q && holds_q != wanted && facc_idle && !drop_i;
  assign facc_valid = sums && (begun_q || holds_q == wanted) &&
                      ((op == CopFmacc) ? !sent_q : piece_i.valid);
  assign facc_done = keep_i || (end_o.done && op == CopFmacc);
  assign facc_zero = clear_i || (end_o.done && op == CopFrstacc);

  npu_cop_facc u_facc (
    .clk_i,
    .rst_ni,
    .clear_i    (drop_i),
    .load_i     (load),
    .value_i    ((wanted == HoldsZero) ? '0 : facc_q),
    .valid_i    (facc_valid),
    .ready_o    (facc_ready),
    .a_i        (on_registers ? x : a),
    .b_i        (on_registers ? op_i.rs[1] : reduces_q ? One : b),
    .idle_o     (facc_idle),
    .idle_next_o(facc_idle_next),
    .value_o    (sum)
  );

  assign narrowed = narrow(sum);

  // Rounding waits in registers: that of the accumulator changes with it, that of a sum is not looked
  // at before the cycle after idle_o. A sum of nothing is there when the zero has been loaded.
  always_ff @(posedge clk_i) begin
    if (!rst_ni) begin
      facc_q       <= '0;
      facc_float_q <= '0;
      narrowed_q   <= '0;
      holds_q      <= HoldsFacc;
      begun_q      <= 1'b0;
    end else begin
      narrowed_q <= load ? '0 : narrowed;
      if (load) holds_q <= wanted;
      if (facc_valid && facc_ready) begin
        holds_q <= HoldsOther;
        begun_q <= 1'b1;
      end
      if (facc_done) begin
        facc_q       <= sum;
        facc_float_q <= narrowed;
        holds_q      <= HoldsFacc;
      end
      if (facc_done || done_i || drop_i) begun_q <= 1'b0;
      if (drop_i) holds_q <= HoldsOther;
      if (facc_zero) begin
        facc_q       <= '0;
        facc_float_q <= '0;
        holds_q      <= HoldsOther;
      end
    end
  end

  assign facc_o = facc_q;

  // ---------------------------------------------------------------------------------------------
  // Lanes, and quotients
  // ---------------------------------------------------------------------------------------------
  lane_op_e lane_op, lane_op_q;
  logic [1:0] lane_ready, lane_valid;
  float_t [1:0] lane_y;
  logic is_lanes, is_divide, divide_load_q, divide_ready;
  unrounded_t dividend;
  logic [50:0] reciprocal;

  assign is_lanes  = unit_i == UnitLanes;
  assign is_divide = unit_i == UnitDivide;

  npu_cop_divide u_divide (
    .clk_i,
    .rst_ni,
    .clear_i     (clear),
    .load_i      (divide_load_q),
    .divisor_i   (facc_float_q),
    .ready_o     (divide_ready),
    .reciprocal_o(reciprocal),
    .a_i         (a),
    .dividend_o  (dividend)
  );

  always_comb begin
    unique case (op)
      CopFvmul:                 lane_op = LaneMul;
      CopFvsub, CopFvsubScalar: lane_op = LaneSub;
      CopFvrelu:                lane_op = LaneRelu;
      CopFvdiv:                 lane_op = LaneDiv;
      default:                  lane_op = LaneAdd;
    endcase
  end

  // The first lane divides, the other one has nothing to do meanwhile.
  for (genvar l = 0; l < 2; l++) begin : gen_lane
    npu_cop_lane #(
      .Divides(l == 0)
    ) u_lane (
      .clk_i,
      .rst_ni,
      .clear_i     (clear),
      .valid_i     (piece_i.valid && (is_lanes || (l == 0 && is_divide && divide_ready))),
      .ready_o     (lane_ready[l]),
      .op_i        (lane_op_q),
      .a_i         (piece_i.a[32*l+:32]),
      .b_i         (pairs_q ? piece_i.b[32*l+:32] : facc_float_q),
      .dividend_i  (dividend),
      .reciprocal_i(reciprocal),
      .valid_o     (lane_valid[l]),
      .ready_i     (ready_i),
      .y_o         (lane_y[l])
    );
  end

  // ---------------------------------------------------------------------------------------------
  // Functions, roots
  // ---------------------------------------------------------------------------------------------
  logic is_func, is_root, root_busy_q;
  func_e func_op, func_op_q;

  assign is_func = unit_i == UnitFunc && !on_registers;
  assign is_root = unit_i == UnitRoot && !on_registers;

  // Of the functions, GELU alone is on registers; arrays are counted.
  always_comb begin
    unique case (op)
      CopFvgelu: func_op = FuncGelu;
      CopVexp:   func_op = FuncExpFixed;
      default:   func_op = FuncExpFloat;
    endcase
  end

  npu_cop_func u_func (
    .clk_i,
    .rst_ni,
    .clear_i(clear),
    .valid_i(on_registers ? scalar && op == CopFgelu && !sent_q : piece_i.valid && is_func),
    .ready_o(func_ready),
    .func_i (op_i.decoded.counted ? func_op_q : FuncGelu),
    .x_i    (on_registers ? x : a),
    .valid_o(func_valid),
    .ready_i(on_registers ? sent_q && room_i : ready_i),
    .y_o    (func)
  );

  npu_cop_root u_root (
    .clk_i,
    .rst_ni,
    .clear_i(clear),
    .valid_i(on_registers ? scalar && op == CopFrsqrt && !sent_q : piece_i.valid && is_root),
    .ready_o(root_ready),
    .op_i   ((op == CopVrsqrt) ? RootFixed : RootFloat),
    .x_i    (on_registers ? x : a),
    .valid_o(root_valid),
    .ready_i(!on_registers || (sent_q && room_i)),
    .y_o    (root)
  );

  always_ff @(posedge clk_i) begin
    if (!rst_ni) begin
      divide_load_q <= 1'b0;
      root_busy_q   <= 1'b0;
    end else begin
      divide_load_q <= start_i && is_divide;
      if (clear || root_valid) root_busy_q <= 1'b0;
      else if (piece_i.valid && is_root && root_ready) root_busy_q <= 1'b1;
    end
  end

  // ---------------------------------------------------------------------------------------------
  // Of all units: where the elements go. They come later than their instruction.
  // ---------------------------------------------------------------------------------------------
  logic in_facc_q, in_root_q, in_lanes_q, in_divide_q, in_func_q;

  always_ff @(posedge clk_i) begin
    if (!rst_ni) begin
      {in_facc_q, in_root_q, in_lanes_q, in_divide_q, in_func_q, pairs_q, reduces_q} <= '0;
      wanted_q <= HoldsFacc;
      lane_op_q <= LaneAdd;
      func_op_q <= FuncExpFloat;
    end else begin
      wanted_q    <= wanted;
      lane_op_q   <= lane_op;
      func_op_q   <= func_op;
      pairs_q     <= op inside {CopFvadd, CopFvsub};
      reduces_q   <= op == CopFvreduce;
      in_facc_q   <= unit_i == UnitFacc;
      in_root_q   <= unit_i == UnitRoot;
      in_lanes_q  <= is_lanes;
      in_divide_q <= is_divide;
      in_func_q   <= is_func;
    end
  end

  assign result_o = is_root ? root : narrowed_q;
  assign idle_o = (reduces_q ? facc_idle : facc_idle_next) && !root_busy_q;

  assign ready_o = (in_facc_q && facc_ready && (begun_q || holds_q == wanted_q)) ||
                   (in_root_q && root_ready) || (in_func_q && func_ready) ||
                   ((in_lanes_q || (in_divide_q && divide_ready)) && lane_ready[0]);

  assign group_o = '{
          valid: ((in_lanes_q || in_divide_q) && lane_valid[0]) || (in_func_q && func_valid),
          data: {in_lanes_q ? lane_y[1] : '0, in_func_q ? func : lane_y[0]}
      };

`ifndef SYNTHESIS
  KeepsWholeSum_A :
  assert property (@(posedge clk_i) disable iff (!rst_ni) facc_done |-> facc_idle)
  else $error("npu_cop_float: the accumulator is kept while a term is on its way");
  LanesTogether_A :
  assert property (@(posedge clk_i) disable iff (!rst_ni)
                   in_lanes_q |->
                   lane_ready[0] == lane_ready[1] && lane_valid[0] == lane_valid[1])
  else $error("npu_cop_float: one lane is ahead of the other");
`endif

endmodule
