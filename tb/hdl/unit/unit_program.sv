// SPDX-License-Identifier: Apache-2.0
//
// Runs a program for the bench of an engine: the chip's own sequencer turns any legal word into the
// engine's operation; program and stream come from behavioural memories. A word for an engine that the
// bench lacks waits for ever.

module unit_program
  import npu_pkg::*;
  import npu_mem_pkg::*;
  import npu_operation_pkg::*;
  import npu_stream_pkg::*;
  import npu_start_pkg::*;
  import npu_isa_pkg::*;
#(
  parameter int unsigned ArrayDim = 16  // rows and columns of the systolic array: 4, 8, 16 or 32
) (
  input logic               clk_i,
  input logic               rst_ni,
  input unit_pkg::world_t   world_i,
  input unit_pkg::program_t program_i,

  input  logic start_i,
  output logic end_o,

  // To and from the engines
  output logic        [NumEngines-1:0] op_valid_o,
  input  logic        [NumEngines-1:0] op_ready_i,
  output operations_t                  operations_o,
  input  logic        [NumEngines-1:0] done_i,
  input  argmax_t                      argmax_i,
  output logic                         argmax_clear_o,

  // Stream
  output logic  line_valid_o,
  output line_t line_data_o,
  input  logic  line_ready_i,
  input  logic  line_last_i
);

  start_state_t start_state;
  start_value_t start_value;
  logic [4:0] number_q;
  mem_req_t rd_req;
  mem_rd_rsp_t rd_rsp;
  logic ticket_valid, ticket_ready;
  ticket_t ticket;
  npu_seq_pkg::progress_t progress;
  error_t error;

  assign error = progress.error;
  assign end_o = progress.ended;

  // Base registers as in tb.stimulus.simple_cases.DMA_BASES
  always_comb begin
    start_state                      = '0;
    start_state.image.ucode_base     = unit_pkg::ProgramAt;
    start_state.image.ucode_len      = program_i.words;
    start_state.image.stream_len     = program_i.stream_bytes;
    start_state.machine.kv_in_memory = !program_i.cache_in_sram;
  end

  always_comb begin
    unique case (16'(number_q)) inside
      SetEos:                start_value.value = '1;
      SetBase0:              start_value.value = 32'h0010_0000;
      [SetBase1 : SetBase7]: start_value.value = 32'h0020_0000;
      default:               start_value.value = '0;
    endcase
    start_value.valid  = number_q < FirstNoted;
    start_value.last   = number_q == FirstNoted - 1'b1;
    start_value.number = number_q;
  end

  always_ff @(posedge clk_i) begin
    if (!rst_ni) number_q <= FirstNoted;
    else if (start_i) number_q <= '0;
    else if (start_value.valid) number_q <= number_q + 1'b1;
  end

  npu_seq #(
    .ArrayDim(ArrayDim)
  ) u_seq (
    .clk_i,
    .rst_ni,
    .start_i,
    .stop_i        (1'b0),
    .start_state_i (start_state),
    .start_value_i (start_value),
    .rd_req_o      (rd_req),
    .rd_rsp_i      (rd_rsp),
    .regs_o        (),
    .argmax_i,
    .argmax_clear_o,
    .ticket_valid_o(ticket_valid),
    .ticket_ready_i(ticket_ready),
    .ticket_o      (ticket),
    .op_valid_o,
    .op_ready_i,
    .operations_o,
    .done_i,
    .progress_o    (progress),
    .fire_o        (),
    .busy_o        ()
  );

  unit_memory_read u_program_memory (
    .clk_i,
    .rst_ni,
    .world_i,
    .req_i(rd_req),
    .rsp_o(rd_rsp)
  );

  unit_stream u_stream (
    .clk_i,
    .rst_ni,
    .world_i,
    .ticket_valid_i(ticket_valid),
    .ticket_ready_o(ticket_ready),
    .ticket_i      (ticket),
    .line_valid_o,
    .line_data_o,
    .line_ready_i,
    .line_last_i
  );

  always @(posedge clk_i) begin
    if (rst_ni && error.valid) begin
      $fatal(1, "unit_program: a legal program was refused: %s at word %0d", error.code.name(),
             error.instr);
    end
  end

endmodule
