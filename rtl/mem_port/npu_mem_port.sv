// SPDX-License-Identifier: Apache-2.0
//
// The memory port: one AXI4 master for all clients, with everything that guards it. Read and write
// side work on their own; what goes wrong on either is reported as one error that names the
// client's engine, its instruction and the address.

module npu_mem_port
  import npu_pkg::*;
  import npu_mem_pkg::*;
  import npu_stream_pkg::*;
#(
  parameter int unsigned NumRd = 3,  // clients that read, at least 1; lower numbers go first
  parameter int unsigned NumWr = 1,  // clients that write, at least 1; lower numbers go first
  parameter logic [NumRd-1:0][2:0] RdEngines = '0,  // engine of each client, all different
  parameter logic [NumWr-1:0][2:0] WrEngines = '0  // engine of each client, all different
) (
  input logic clk_i,  // clock
  input logic rst_ni, // reset, active low

  // Clients
  input  mem_req_t    rd_req_i[NumRd],  // a burst inside a 4 KiB page; may be withdrawn
  output mem_rd_rsp_t rd_rsp_o[NumRd],  // ready only with valid; words cannot be refused
  input  mem_req_t    wr_req_i[NumWr],  // a burst inside a 4 KiB page; may be withdrawn
  input  mem_wdata_t  w_i     [NumWr],  // words of the bursts, in order; may be withdrawn
  output mem_wr_rsp_t wr_rsp_o[NumWr],  // ready only with valid, word_ready without

  // Protection
  input mem_settings_t settings_i,  // levels: regions for new requests, limit of waits in cycles
  input stream_range_t stream_i,    // a level: no writes to these bytes; none if the length is 0

  // End of a program
  input  logic        drain_i,  // a level: nothing new is begun, nobody is told of what comes back
  output bus_status_t bus_o,    // stuck: falls with its limit; error: counts while drain_i is low

  // How the memory answers
  output logic [8:0] latency_o,  // cycles from a burst's acceptance to its first word; 0: unknown
  output logic       word_o,     // pulse: a word arrives, dropped and bad ones too

  // Bus
  output npu_axi_pkg::axi_req_t axi_req_o,  // stays until taken, stable; answers always taken
  input  npu_axi_pkg::axi_rsp_t axi_rsp_i   // ready may depend on valid
);

  logic rd_idle, wr_idle, rd_stuck, wr_stuck, rd_on_bus;
  error_t rd_error, wr_error;

  npu_axi_read #(
    .NumClients(NumRd),
    .Engines   (RdEngines)
  ) u_read (
    .clk_i,
    .rst_ni,
    .req_i    (rd_req_i),
    .rsp_o    (rd_rsp_o),
    .settings_i,
    .drain_i,
    .idle_o   (rd_idle),
    .stuck_o  (rd_stuck),
    .error_o  (rd_error),
    .on_bus_o (rd_on_bus),
    .axi_req_o(axi_req_o.rd),
    .axi_rsp_i(axi_rsp_i.rd)
  );

  assign word_o = axi_rsp_i.rd.rvalid && axi_req_o.rd.rready;

  npu_mem_latency u_latency (
    .clk_i,
    .rst_ni,
    .accepted_i(axi_req_o.rd.arvalid && axi_rsp_i.rd.arready),
    .alone_i   (!rd_on_bus),
    .word_i    (word_o),
    .latency_o
  );

  npu_axi_write #(
    .NumClients(NumWr),
    .Engines   (WrEngines)
  ) u_write (
    .clk_i,
    .rst_ni,
    .req_i    (wr_req_i),
    .w_i,
    .rsp_o    (wr_rsp_o),
    .settings_i,
    .stream_i,
    .drain_i,
    .idle_o   (wr_idle),
    .stuck_o  (wr_stuck),
    .error_o  (wr_error),
    .axi_req_o(axi_req_o.wr),
    .axi_rsp_i(axi_rsp_i.wr)
  );

  assign bus_o = '{
          idle: rd_idle && wr_idle,
          stuck: rd_stuck || wr_stuck,
          error: rd_error.valid ? rd_error : wr_error
      };

endmodule
