// SPDX-License-Identifier: Apache-2.0
//
// The coprocessor: instructions of a RISC-V host on registers, on its accumulators, and on arrays in
// memory. It shares nothing with the core but the bus.

module npu_cop
  import npu_mem_pkg::*;
  import npu_stream_pkg::*;
  import npu_cop_pkg::*;
  import npu_cop_isa_pkg::*;
#(
  parameter int unsigned NumRs = 3  // operands that the host delivers: 2 or 3
) (
  input logic clk_i,  // clock
  input logic rst_ni, // reset, active low

  // Port of the host
  input  x_req_t x_req_i,  // keeps the rules of CV-X-IF
  output x_rsp_t x_rsp_o,  // issue and operands are answered in the same cycle

  // Register window
  input  npu_host_pkg::window_req_t req_i,  // an access to the window
  output npu_host_pkg::window_rsp_t rsp_o,  // acknowledged in the cycle of req_i.valid

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

  cop_op_t op;
  cop_end_t int_end, relu_end, ended;
  cop_control_t control;
  cop_state_t   state;
  cop_events_t  events;
  cop_report_t  report;
  logic room, fault;

  npu_cop_window #(
    .NumRs(NumRs)
  ) u_window (
    .clk_i,
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

  npu_cop_issue #(
    .NumRs(NumRs)
  ) u_issue (
    .clk_i,
    .rst_ni,
    .x_req_i,
    .x_rsp_o,
    .refuse_i(fault && control.trap),
    .op_o    (op),
    .end_i   (ended),
    .room_o  (room),
    .busy_o  (events.busy),
    .taken_o (events.instr)
  );

  npu_cop_int u_int (
    .clk_i,
    .rst_ni,
    .op_i   (op),
    .room_i (room),
    .end_o  (int_end),
    .clear_i(control.clear_acc || soft_reset_i),
    .add_i  (1'b0),
    .sum_i  ('0),
    .acc_o  (state.acc)
  );

  // What no unit takes ends at once; of those FRELU has a result.
  logic [31:0] x;
  logic in_int, is_nan;
  assign x = op.rs[0];
  assign is_nan = x[30:0] > 31'h7f80_0000;
  assign in_int = op.decoded.op inside {CopMacc, CopRelu, CopQmul, CopClamp, CopGelu, CopRstacc};
  always_comb begin
    relu_end      = '0;
    relu_end.done = op.valid && room && !in_int;
    if (relu_end.done && op.decoded.op == CopFrelu)
      relu_end.data = is_nan ? 32'h7fc0_0000 : x[31] ? '0 : x;
  end

  assign state.facc  = '0;
  assign state.vregs = '0;
  // Memory is not used yet.
  logic memory_used;
  assign memory_used = ^{settings_i, stream_i, axi_rsp_i, control};
  assign axi_req_o = memory_used ? '0 : '0;
  assign events.read_beat = 1'b0;
  assign events.write_beat = 1'b0;

  // Each instruction ends in one of the units; the others say 0.
  assign ended = int_end | relu_end;
  assign report = '{fault: ended.fault, instr: op.instr};

endmodule
