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

  // The row behind another. No adder and no comparison here, whose carry chains are deeper.
  function automatic logic [5:0] behind(logic [5:0] index);
    logic carry;
    carry = 1'b1;
    for (int unsigned i = 0; i < 6; i++) begin
      behind[i] = index[i] ^ carry;
      carry     = carry && index[i];
    end
  endfunction

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

  logic [ByteW-5:0] block, next_block;
  logic [Beat-1:0] lane_we, lane_here;
  logic [8*Beat-1:0] lane_data;
  assign block      = write.addr[ByteW-1:4];
  assign next_block = (ByteW - 4)'(behind(6'(block)));
  assign lane_here  = '1 << write.addr[3:0];
  assign lane_we    = Beat'({2{write.we}} << write.addr[3:0] >> Beat);
  assign lane_data  = (8 * Beat)'({2{write.data}} << {write.addr[3:0], 3'b000} >> (8 * Beat));

  always_ff @(posedge clk_i) begin
    if (!rst_ni) begin
      bytes_q <= '{default: '0};
    end else begin
      for (int unsigned n = 0; n < ScratchBytes; n++) begin
        automatic logic [ByteW-5:0] place = lane_here[n%Beat] ? block : next_block;
        if (lane_we[n%Beat] && place == (ByteW - 4)'(n / Beat)) begin
          bytes_q[n] <= lane_data[8*(n%Beat)+:8];
        end
      end
    end
  end

  // ---------------------------------------------------------------------------------------------
  // Reads
  // ---------------------------------------------------------------------------------------------
  logic [8*Window-1:0] banks;
  logic [  Window-1:0] bank_here;
  logic [ByteW-4:0] row, next_row;
  assign row       = window_addr_i[ByteW-1:3];
  assign next_row  = (ByteW - 3)'(behind(6'(row)));
  assign bank_here = '1 << window_addr_i[2:0];

  always_comb begin
    for (int unsigned l = 0; l < Window; l++) begin
      banks[8*l+:8] = bytes_q[{bank_here[l]?row : next_row, 3'(l)}];
    end
    window_o = (8 * Window)'({2{banks}} >> {window_addr_i[2:0], 3'b000});
    for (int unsigned i = 0; i < Window; i++) gather_o[i] = bytes_q[gather_addr_i[i]];
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
