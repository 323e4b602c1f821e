// SPDX-License-Identifier: Apache-2.0
//
// The machine's address map, and words of its memory: the bytes are those of the memory behind the
// chip (tb_pkg).

package soc_pkg;

  // What answers at an address, by its upper four bits
  localparam logic [3:0] HomeRam = 4'h0;
  localparam logic [3:0] HomeDevices = 4'h1;
  localparam logic [3:0] HomeCopWindow = 4'h2;  // coprocessor's window, as in the original
  localparam logic [3:0] HomeChip = 4'h4;  // all registers of the chip

  // Devices, by the lower bits
  localparam logic [11:0] DeviceUart = 12'h000;  // write: a byte out; read: the next one, or -1
  localparam logic [11:0] DeviceExit = 12'h004;  // write: ends the run with this code
  localparam logic [11:0] DeviceMicroseconds = 12'h008;
  localparam logic [11:0] DeviceCycles = 12'h00c;
  localparam logic [63:0] CyclesPerMicrosecond = 64'd100;

  // Registers of the chip
  localparam logic [11:0] CopWindow = 12'h200;  // 256 bytes
  localparam logic [11:0] SeqCtrl = 12'h100;  // bit 0 starts a program

  localparam int unsigned IrqExternal = 11;  // machine external interrupt

  // What the data bus asks for and gets; one access at a time
  typedef struct packed {
    logic we;
    logic [31:0] address;
    logic [3:0] be;
    logic [31:0] wdata;
  } access_t;

  typedef struct packed {
    logic [31:0] rdata;
    logic err;
  } answer_t;

  function automatic logic ram_has(logic [31:0] address);
    return tb_pkg::tb_memory_has({address[31:4], 4'h0});
  endfunction

  function automatic logic [31:0] ram_read(logic [31:0] address);
    bit [127:0] line;
    tb_pkg::tb_memory_read({address[31:4], 4'h0}, line);
    return line[32*address[3:2]+:32];
  endfunction

  function automatic void ram_write(access_t access);
    bit [127:0] line;
    tb_pkg::tb_memory_read({access.address[31:4], 4'h0}, line);
    for (int unsigned i = 0; i < 4; i++) begin
      if (access.be[i]) line[32*access.address[3:2]+8*i+:8] = access.wdata[8*i+:8];
    end
    tb_pkg::tb_memory_now({access.address[31:4], 4'h0}, line);
  endfunction

endpackage
