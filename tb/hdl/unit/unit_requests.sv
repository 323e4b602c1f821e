// SPDX-License-Identifier: Apache-2.0
//
// Plays a list of requests on a valid/ready port: each is offered some cycles after the one before it
// was accepted, and stays until it is accepted; the cycles of both are written down. The list of slot
// `Slot` lies in memory, a word of 16 bytes for each request: payload, and in the upper 16 bits the
// cycles to wait.

module unit_requests #(
  parameter int unsigned Slot = 0
) (
  input logic clk_i,
  input logic rst_ni,

  input  logic        start_i,
  input  logic [31:0] count_i,  // requests, at least one
  output logic        end_o,    // all have been accepted

  output logic         valid_o,
  input  logic         ready_i,
  output logic [111:0] payload_o
);

  localparam logic [31:0] List = unit_pkg::ProgramAt + Slot * unit_pkg::SlotBytes;
  localparam logic [31:0] Notes = unit_pkg::ObservedAt + Slot * unit_pkg::SlotBytes;

  logic [31:0] cycle, offered, index;
  logic [15:0] wait_cycles;
  logic active;

  // A behavioural model: state is updated in program order within one clock edge.
  /* verilator lint_off BLKSEQ */
  always @(posedge clk_i) begin
    if (!rst_ni) begin
      {cycle, offered, index, wait_cycles} = '0;
      active = 1'b0;
      valid_o   <= 1'b0;
      payload_o <= '0;
      end_o     <= 1'b0;
    end else begin
      automatic logic fetch = start_i;

      if (valid_o && ready_i) begin
        tb_pkg::tb_memory_now(Notes + 16 * index, {64'd0, cycle, offered});
        index = index + 32'd1;
        fetch = index != count_i;
        valid_o <= 1'b0;
        if (!fetch) end_o <= 1'b1;
      end else if (active && wait_cycles != '0) begin
        wait_cycles = wait_cycles - 16'd1;
      end
      if (fetch) begin
        automatic bit [127:0] request;
        tb_pkg::tb_memory_read(List + 16 * index, request);
        payload_o <= request[111:0];
        wait_cycles = request[127:112];
        active = 1'b1;
      end
      if (active && wait_cycles == '0) begin
        valid_o <= 1'b1;
        offered = cycle + 32'd1;
        active  = 1'b0;
      end
      cycle = cycle + 32'd1;
    end
  end
  /* verilator lint_on BLKSEQ */

endmodule
