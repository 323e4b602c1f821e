// SPDX-License-Identifier: Apache-2.0
//
// The bench of an engine: control, the sequencer that gives it operations and shares of the stream,
// and the SRAM.

module unit_engine #(
  parameter int unsigned ArrayDim = 16,  // rows and columns of the systolic array: 4, 8, 16 or 32
  parameter int unsigned NumRd = 1,  // SRAM ports that read, as the interface has them
  parameter int unsigned NumWr = 1  // SRAM ports that write, as the interface has them
) (
  unit_engine_if bench  // to the engine
);

  logic start, ended;
  unit_pkg::program_t program_start;

  unit_control u_control (
    .clk_o    (bench.clk),
    .rst_no   (bench.rst_n),
    .world_o  (bench.world),
    .program_o(program_start),
    .start_o  (start),
    .end_i    (ended)
  );

  unit_program #(
    .ArrayDim(ArrayDim)
  ) u_program (
    .clk_i         (bench.clk),
    .rst_ni        (bench.rst_n),
    .world_i       (bench.world),
    .program_i     (program_start),
    .start_i       (start),
    .end_o         (ended),
    .op_valid_o    (bench.op_valid),
    .op_ready_i    (bench.op_ready),
    .operations_o  (bench.operations),
    .done_i        (bench.done),
    .argmax_i      (bench.argmax),
    .argmax_clear_o(bench.argmax_clear),
    .line_valid_o  (bench.share.valid),
    .line_data_o   (bench.share.data),
    .line_ready_i  (bench.take.ready),
    .line_last_i   (bench.take.last)
  );

  unit_sram_model #(
    .NumRd(NumRd),
    .NumWr(NumWr)
  ) u_sram (
    .clk_i     (bench.clk),
    .rst_ni    (bench.rst_n),
    .world_i   (bench.world),
    .rd_req_i  (bench.rd_req),
    .rd_rsp_o  (bench.rd_rsp),
    .wr_req_i  (bench.wr_req),
    .wr_ready_o(bench.wr_ready)
  );

endmodule
