// SPDX-License-Identifier: Apache-2.0
//
// The rules of valid/ready at the shell of an engine: the operations that it is offered, and the SRAM
// writes that it asks for.

module engine_checker #(
  parameter type OperationT = logic  // of the engine
) (
  input logic clk_i,  // clock
  input logic rst_ni, // reset, active low

  input logic      valid_i,     // an operation is offered
  input logic      ready_i,     // the engine takes it
  input OperationT operation_i, // with valid_i

  input npu_sram_pkg::sram_wr_req_t write_i,       // what it asks the SRAM for
  input logic                       write_ready_i  // the SRAM takes it
);

  stream_checker #(
    .DataT(OperationT)
  ) u_operation (
    .clk_i,
    .rst_ni,
    .valid_i,
    .ready_i,
    .data_i(operation_i)
  );

  stream_checker #(
    .DataT(npu_sram_pkg::sram_wr_req_t)
  ) u_write (
    .clk_i,
    .rst_ni,
    .valid_i(write_i.valid),
    .ready_i(write_ready_i),
    .data_i (write_i)
  );

endmodule
