// SPDX-License-Identifier: Apache-2.0
//
// The float side: units of float32 and double, and instructions on registers. Elements go to the unit
// that works on them; instructions on registers give it their operands and wait.

module npu_cop_float
  import npu_cop_pkg::*;
  import npu_cop_isa_pkg::*;
  import npu_cop_float_pkg::*;
(
  input logic clk_i,  // clock
  input logic rst_ni, // reset, active low

  input  cop_op_t  op_i,    // the oldest instruction
  input  logic     room_i,  // a level: an instruction may end
  output cop_end_t end_o,   // of op_i, if it is one of these on registers
  input  logic     ended_i, // pulse: op_i ends, of whichever unit it is

  input  logic    clear_i,  // pulse: the accumulator is +0 from the next cycle on
  output double_t facc_o,   // the accumulator

  // Instructions on memory
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

  cop_op_e op;
  float_t x, a;
  logic clear, on_registers, mine, scalar, sent_q, ends;

  assign op    = op_i.decoded.op;
  assign x     = op_i.rs[0];
  assign a     = piece_i.a[31:0];
  assign clear = start_i || drop_i;

  // ---------------------------------------------------------------------------------------------
  // Instructions on registers. Those that take longer send their operand and wait.
  // ---------------------------------------------------------------------------------------------
  logic sums_taken, sums_idle, root_ready, root_valid, func_ready, func_valid;
  float_t root, func, facc_rounded;

  assign on_registers = op_i.decoded.element_bytes == '0;
  assign mine = op inside {CopFmacc, CopFrsqrt, CopFrelu, CopFgelu, CopFrstacc};
  assign scalar = op_i.valid && mine;

  always_comb begin
    unique case (op)
      CopFmacc:  ends = sent_q && sums_idle;
      CopFrsqrt: ends = sent_q && root_valid;
      CopFgelu:  ends = sent_q && func_valid;
      default:   ends = 1'b1;
    endcase
    end_o       = '0;
    end_o.ready = mine && ends;
    unique case (op)
      CopFrsqrt:  end_o.data = root;
      CopFgelu:   end_o.data = func;
      CopFrelu:   end_o.data = relu(x);
      CopFrstacc: end_o.data = facc_rounded;
      default:    end_o.data = '0;
    endcase
  end

  always_ff @(posedge clk_i) begin
    if (!rst_ni) sent_q <= 1'b0;
    else if (ended_i) sent_q <= 1'b0;
    else if ((op == CopFmacc && sums_taken) || (scalar && op == CopFrsqrt && root_ready) ||
             (scalar && op == CopFgelu && func_ready))
      sent_q <= 1'b1;
  end

  // ---------------------------------------------------------------------------------------------
  // Sums, and lanes
  // ---------------------------------------------------------------------------------------------
  logic sums_ready, sums_idle_next, lanes_ready, lanes_valid;
  float_t sum;
  float_t [1:0] lanes;

  npu_cop_sums u_sums (
    .clk_i,
    .rst_ni,
    .clear_i,
    .op_i,
    .sent_i        (sent_q),
    .ended_i,
    .drop_i,
    .done_i,
    .keep_i,
    .piece_i,
    .ready_o       (sums_ready),
    .taken_o       (sums_taken),
    .idle_o        (sums_idle),
    .idle_next_o   (sums_idle_next),
    .sum_o         (sum),
    .facc_o,
    .facc_rounded_o(facc_rounded)
  );

  npu_cop_lanes u_lanes (
    .clk_i,
    .rst_ni,
    .start_i,
    .clear_i (clear),
    .op_i    (op),
    .unit_i  (op_i.cop_unit),
    .scalar_i(facc_rounded),
    .piece_i,
    .ready_o (lanes_ready),
    .valid_o (lanes_valid),
    .ready_i,
    .y_o     (lanes)
  );

  // ---------------------------------------------------------------------------------------------
  // Functions, roots
  // ---------------------------------------------------------------------------------------------
  logic is_func, is_root, root_busy_q;
  func_e func_op, func_op_q;

  assign is_func = op_i.cop_unit == UnitFunc && !on_registers;
  assign is_root = op_i.cop_unit == UnitRoot && !on_registers;

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
    if (!rst_ni) root_busy_q <= 1'b0;
    else if (clear || root_valid) root_busy_q <= 1'b0;
    else if (piece_i.valid && is_root && root_ready) root_busy_q <= 1'b1;
  end

  // ---------------------------------------------------------------------------------------------
  // Of all units: where the elements go. They come later than their instruction.
  // ---------------------------------------------------------------------------------------------
  logic in_root_q, in_func_q;

  always_ff @(posedge clk_i) begin
    if (!rst_ni) begin
      {in_root_q, in_func_q} <= '0;
      func_op_q <= FuncExpFloat;
    end else begin
      in_root_q <= op_i.cop_unit == UnitRoot;
      in_func_q <= is_func;
      func_op_q <= func_op;
    end
  end

  assign result_o = is_root ? root : sum;
  assign idle_o = sums_idle_next && !root_busy_q;
  assign ready_o  = sums_ready || lanes_ready || (in_root_q && root_ready) ||
                    (in_func_q && func_ready);
  assign group_o = '{
          valid: lanes_valid || (in_func_q && func_valid),
          data: {lanes[1], in_func_q ? func : lanes[0]}
      };

endmodule
