// SPDX-License-Identifier: Apache-2.0
//
// The coprocessor: instructions of a RISC-V host on registers, on its accumulators, and on arrays in
// memory. It shares nothing with the core but the bus.

module npu_cop
  import npu_mem_pkg::*;
  import npu_stream_pkg::*;
  import npu_cop_pkg::*;
  import npu_cop_isa_pkg::*;
  import npu_cop_float_pkg::*;
#(
  parameter int unsigned NumRs = 3,  // X_NUM_RS: operands that the host delivers, 2 or 3
  parameter int unsigned IdWidth = 4,  // X_ID_WIDTH: bits of an identifier, 3 to 32
  parameter int unsigned HartIdWidth = 1,  // X_HARTID_WIDTH: bits of a hart's number, 1 to 32
  parameter bit Split = 1'b0  // X_ISSUE_REGISTER_SPLIT: operands come behind the issue
) (
  input logic clk_i,  // clock
  input logic rst_ni, // reset, active low

  // Port of the host
  input x_req_t x_req_i,  // keeps the rules of CV-X-IF
  input x_commit_t x_commit_i,  // likewise; may depend on the answer to the issue
  output x_rsp_t x_rsp_o,  // issue and operands are answered in the same cycle
  output x_result_t x_result_o,  // in the order of issue

  // Register window
  input  npu_host_pkg::window_req_t req_i,  // an access to the window
  output npu_host_pkg::window_rsp_t rsp_o,  // ack in the cycle of a read, a cycle behind a write

  output logic irq_o,        // a level, while a fault stands
  input  logic soft_reset_i, // pulse: ends an instruction that uses memory; state is cleared

  // Protection
  input mem_settings_t settings_i,  // levels: regions for new requests, limit of waits in cycles
  input stream_range_t stream_i,    // a level: no writes to these bytes; none if the length is 0

  // Memory port
  output npu_axi_pkg::axi_req_t axi_req_o,  // stays until taken, stable; answers always taken
  input  npu_axi_pkg::axi_rsp_t axi_rsp_i   // ready may depend on valid
);

  if (!(NumRs inside {2, 3})) begin : gen_bad_num_rs
    $fatal(1, "npu_cop: NumRs = %0d, must be 2 or 3", NumRs);
  end
  if (!(IdWidth inside {[3 : 32]})) begin : gen_bad_id_width
    $fatal(1, "npu_cop: IdWidth = %0d, must be 3 to 32", IdWidth);
  end
  if (!(HartIdWidth inside {[1 : 32]})) begin : gen_bad_hart_id_width
    $fatal(1, "npu_cop: HartIdWidth = %0d, must be 1 to 32", HartIdWidth);
  end

  cop_op_t op;
  cop_end_t int_end, float_end, walk_end, ending;
  cop_control_t control;
  cop_state_t   state;
  cop_events_t  events;
  cop_report_t  report;
  logic ended, room, fault;
  logic [3:0][31:0] vregs_q;

  // ---------------------------------------------------------------------------------------------
  // Clock of all below: it stands still where nothing is under way and nobody speaks
  // ---------------------------------------------------------------------------------------------
  logic clk, bus, working, awake;

  assign bus = axi_req_o.rd.arvalid || axi_req_o.wr.awvalid || axi_req_o.wr.wvalid ||
               axi_rsp_i.rd.rvalid || axi_rsp_i.wr.bvalid;
  assign awake = working || x_req_i.issue.valid || x_commit_i.valid || req_i.valid ||
                 soft_reset_i || bus;

  npu_block_clock u_clock (
    .clk_i,
    .rst_ni,
    .awake_i(awake),
    .clk_o  (clk)
  );

  npu_cop_window #(
    .NumRs(NumRs)
  ) u_window (
    .clk_i(clk),
    .rst_ni,
    .req_i,
    .rsp_o,
    .control_o(control),
    .fault_o  (fault),
    .state_i  (state),
    .busy_i   (events.busy),
    .report_i (report),
    .events_i (events)
  );

  assign irq_o = fault;

  // An accumulator that the host clears while an instruction works with it is cleared when that ends.
  logic clear_acc_q, clear_facc_q, free;

  assign free = !op.valid || ended;

  always_ff @(posedge clk) begin
    if (!rst_ni) begin
      clear_acc_q  <= 1'b0;
      clear_facc_q <= 1'b0;
    end else begin
      clear_acc_q  <= control.clear_acc || (clear_acc_q && !free);
      clear_facc_q <= control.clear_facc || (clear_facc_q && !free);
    end
  end

  npu_cop_issue #(
    .NumRs(NumRs),
    .IdWidth(IdWidth),
    .HartIdWidth(HartIdWidth),
    .Split(Split)
  ) u_issue (
    .clk_i   (clk),
    .rst_ni,
    .x_req_i,
    .x_commit_i,
    .x_rsp_o,
    .x_result_o,
    .refuse_i(fault && control.trap),
    .op_o    (op),
    .end_i   (ending),
    .ended_o (ended),
    .room_o  (room),
    .awake_o (working),
    .busy_o  (events.busy),
    .taken_o (events.instr)
  );

  // ---------------------------------------------------------------------------------------------
  // Instructions on registers, and the accumulators
  // ---------------------------------------------------------------------------------------------
  logic start, drop, walk_done, well_done;
  logic [63:0] products;
  cop_piece_t piece;

  npu_cop_int u_int (
    .clk_i(clk),
    .rst_ni,
    .op_i   (op),
    .end_o  (int_end),
    .ended_i(ended),
    .clear_i((clear_acc_q && free) || soft_reset_i),
    .add_i  (well_done && op.decoded.op == CopVmac),
    .sum_i  (products),
    .acc_o  (state.acc)
  );

  logic float_ready, float_idle, group_ready;
  logic [31:0] float_result;
  cop_group_t float_group;

  npu_cop_float u_float (
    .clk_i   (clk),
    .rst_ni,
    .op_i    (op),
    .room_i  (room),
    .end_o   (float_end),
    .ended_i (ended),
    .clear_i ((clear_facc_q && free) || soft_reset_i),
    .facc_o  (state.facc),
    .start_i (start),
    .drop_i  (drop),
    .done_i  (walk_done),
    .keep_i  (well_done && op.decoded.op == CopFvmac),
    .piece_i (piece),
    .ready_o (float_ready),
    .idle_o  (float_idle),
    .group_o (float_group),
    .ready_i (group_ready),
    .result_o(float_result)
  );

  // ---------------------------------------------------------------------------------------------
  // Instructions on memory
  // ---------------------------------------------------------------------------------------------
  logic vector_ready, vector_idle;
  logic [31:0] vector_result;
  cop_group_t vector_group;
  cop_fault_t walk_fault;

  npu_cop_vector u_vector (
    .clk_i(clk),
    .rst_ni,
    .start_i (start),
    .drop_i  (drop),
    .unit_i  (op.cop_unit),
    .writes_i(op.decoded.writes_d),
    .factor_i(state.acc[31:0]),
    .piece_i (piece),
    .ready_o (vector_ready),
    .idle_o  (vector_idle),
    .group_o (vector_group),
    .ready_i (group_ready),
    .sum_o   (products),
    .result_o(vector_result)
  );

  npu_cop_walk u_walk (
    .clk_i(clk),
    .rst_ni,
    .op_i   (op),
    .room_i (room),
    .limit_i(control.limit),
    .vreg_i (vregs_q[op.instr[21:20]]),
    .done_o (walk_done),
    .fault_o(walk_fault),
    .soft_reset_i,
    .start_o(start),
    .drop_o (drop),
    .piece_o(piece),
    .ready_i(vector_ready || float_ready),
    .idle_i (vector_idle && float_idle),
    .group_i(vector_group.valid ? vector_group : float_group),
    .ready_o(group_ready),
    .settings_i,
    .stream_i,
    .axi_req_o,
    .axi_rsp_i
  );

  assign well_done = walk_done && !walk_fault.valid;

  // Each instruction ends in one of the units; the others say 0. Data may be there before the end.
  always_comb begin
    walk_end = '{ready: walk_done, data: '0, fault: walk_fault};
    walk_end.fault.valid = walk_done && walk_fault.valid;
    if (op.decoded.element_bytes != '0) begin
      walk_end.data = (op.cop_unit inside {UnitFacc, UnitRoot}) ? float_result : vector_result;
      if (walk_fault.valid) walk_end.data = op.decoded.is_float[2] ? FloatNan : '0;
    end
  end

  assign ending = int_end | float_end | walk_end;
  assign report = '{fault: ending.fault, instr: op.instr};

  // ---------------------------------------------------------------------------------------------
  // Vector registers
  // ---------------------------------------------------------------------------------------------
  always_ff @(posedge clk) begin
    if (!rst_ni) vregs_q <= '0;
    else if (soft_reset_i) vregs_q <= '0;
    else if (well_done && op.decoded.op == CopLdvec) vregs_q[op.instr[8:7]] <= vector_result;
  end

  assign state.vregs = vregs_q;
  assign events.read_beat = axi_rsp_i.rd.rvalid && axi_req_o.rd.rready;
  assign events.write_beat = axi_req_o.wr.wvalid && axi_rsp_i.wr.wready;

endmodule
