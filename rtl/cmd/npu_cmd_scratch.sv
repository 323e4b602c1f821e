// SPDX-License-Identifier: Apache-2.0
//
// The scratchpad: registers with one write port for up to sixteen bytes anywhere, and for each
// reader the multiplexers that it needs. All reads are answered in the same cycle. Only one of the
// writers is at work at a time; the host's writes come with the lowest priority.

module npu_cmd_scratch
  import npu_cmd_pkg::*;
#(
  parameter int unsigned ScratchBytes = 64,  // bytes of the scratchpad: 64, 128 or 256
  localparam int unsigned ByteW = $clog2(ScratchBytes)  // width of a byte address
) (
  input logic clk_i,  // clock
  input logic rst_ni, // reset, active low

  // Operation unit: eight bytes side by side, eight anywhere
  input  scratch_write_t             unit_write_i,      // up to sixteen bytes, at once
  input  logic           [ByteW-1:0] window_addr_i,     // first of eight bytes
  output logic           [     63:0] window_o,          // eight bytes, first lowest, same cycle
  input  logic           [ByteW-1:0] gather_addr_i[8],  // eight single bytes
  output logic           [      7:0] gather_o     [8],  // the bytes, same cycle

  // Ring of descriptors
  input  scratch_write_t             ring_write_i,  // up to four 32-bit words
  input  logic           [ByteW-3:0] ring_raddr_i,  // 32-bit word to read
  output logic           [     31:0] ring_rdata_o,  // in the same cycle

  // Host: one 32-bit word
  input scratch_write_t host_write_i,  // counts unless unit or ring write; addr: to read, too
  output logic [31:0] host_rdata_o  // in the same cycle
);

  localparam int unsigned Beat = 16;
  localparam int unsigned Window = 8;

  logic [7:0] bytes_q[ScratchBytes];

  // ---------------------------------------------------------------------------------------------
  // Write: the bytes are turned to the lanes they belong to; those that wrap around belong to the
  // next sixteen bytes.
  // ---------------------------------------------------------------------------------------------
  scratch_write_t write;
  always_comb begin
    write = host_write_i;
    if (ring_write_i.we != '0) write = ring_write_i;
    if (unit_write_i.we != '0) write = unit_write_i;
  end

  logic [ByteW-5:0] block;
  logic [Beat-1:0] lane_we;
  logic [7:0] lane_data[Beat];
  assign block = write.addr[ByteW-1:4];

  always_comb begin
    for (int unsigned l = 0; l < Beat; l++) begin
      automatic logic [3:0] from = 4'(l) - write.addr[3:0];
      lane_we[l]   = write.we[from];
      lane_data[l] = write.data[8*from+:8];
    end
  end

  always_ff @(posedge clk_i) begin
    if (!rst_ni) begin
      bytes_q <= '{default: '0};
    end else begin
      for (int unsigned n = 0; n < ScratchBytes; n++) begin
        automatic logic wrapped = 4'(n % Beat) < write.addr[3:0];
        automatic logic here = (ByteW - 4)'(n / Beat) == block + (ByteW - 4)'(wrapped);
        if (lane_we[n%Beat] && here) bytes_q[n] <= lane_data[n%Beat];
      end
    end
  end

  // ---------------------------------------------------------------------------------------------
  // Reads
  // ---------------------------------------------------------------------------------------------
  logic [7:0] bank[Window];
  always_comb begin
    for (int unsigned l = 0; l < Window; l++) begin
      automatic logic wrapped = 3'(l) < window_addr_i[2:0];
      automatic logic [ByteW-4:0] row = window_addr_i[ByteW-1:3] + (ByteW - 3)'(wrapped);
      bank[l] = bytes_q[{row, 3'(l)}];
    end
    for (int unsigned i = 0; i < Window; i++) begin
      window_o[8*i+:8] = bank[3'(i)+window_addr_i[2:0]];
      gather_o[i]      = bytes_q[gather_addr_i[i]];
    end
    for (int unsigned i = 0; i < 4; i++) begin
      ring_rdata_o[8*i+:8] = bytes_q[{ring_raddr_i, 2'(i)}];
      host_rdata_o[8*i+:8] = bytes_q[{host_write_i.addr[ByteW-1:2], 2'(i)}];
    end
  end

`ifndef SYNTHESIS
  OneWriter_A :
  assert property (@(posedge clk_i) disable iff (!rst_ni) $onehot0(
      {unit_write_i.we != '0, ring_write_i.we != '0, host_write_i.we != '0}
  ))
  else $error("npu_cmd_scratch: two writers at once");
`endif

endmodule
