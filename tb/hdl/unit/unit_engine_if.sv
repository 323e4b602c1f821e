// SPDX-License-Identifier: Apache-2.0
//
// Between an engine and its bench, `unit_engine`. The bench drives what it offers, the wrapper around
// the engine the rest; what an engine has no use for is not connected, and what it lacks is zero.

interface unit_engine_if #(
  parameter int unsigned NumRd = 1,  // SRAM ports that read
  parameter int unsigned NumWr = 1   // SRAM ports that write
);
  import npu_pkg::*;
  import npu_sram_pkg::*;
  import npu_operation_pkg::*;
  import npu_stream_pkg::*;
  import npu_isa_pkg::*;

  logic clk;  // clock
  logic rst_n;  // reset, active low

  // Operations: offered to one engine each, `done` is a pulse for the oldest one
  logic [NumEngines-1:0] op_valid, op_ready, done;
  operations_t      operations;
  argmax_t          argmax;
  logic             argmax_clear;

  // Stream: the engine says with each line whether it is the last one of its share
  share_line_t      share;
  share_take_t      take;

  // SRAM
  sram_rd_req_t     rd_req                        [NumRd];
  sram_rd_rsp_t     rd_rsp                        [NumRd];
  sram_wr_req_t     wr_req                        [NumWr];
  logic             wr_ready                      [NumWr];

  unit_pkg::world_t world;  // for more neighbours

endinterface
