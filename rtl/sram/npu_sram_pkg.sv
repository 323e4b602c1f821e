// SPDX-License-Identifier: Apache-2.0
//
// Ports of the SRAM, and the bank of a word. A read is accepted when valid and ready meet; its data
// comes back in order, some cycles later, and cannot be refused. A write is visible to every later
// read once accepted.

package npu_sram_pkg;

  import npu_pkg::*;

  localparam int unsigned NumSramRd = 6;  // read ports of the engines
  localparam int unsigned NumSramWr = 4;  // write ports of the engines

  typedef struct packed {
    logic       valid;  // a read; the port says whether it may be withdrawn
    sram_addr_t addr;   // of the word, with valid
  } sram_rd_req_t;

  typedef struct packed {
    logic  ready;  // takes the request; only with its valid
    logic  valid;  // a word, in the order of the requests, which cannot be refused
    word_t data;   // all 16 bytes, with valid
  } sram_rd_rsp_t;

  typedef struct packed {
    logic       valid;  // a write; the port says whether it may be withdrawn
    sram_addr_t addr;   // of the word, with valid
    word_t      data;   // all 16 bytes, with valid
  } sram_wr_req_t;

  // Small arrays ask for fewer words at a time
  function automatic int unsigned sram_banks(int unsigned array_dim);
    return (array_dim < 16) ? 4 : 16;
  endfunction

  // Bank of a word: the address bits folded by XOR, so that power-of-two pitches spread out. Fewer
  // banks than 16 take the lower bits.
  function automatic logic [3:0] sram_bank(sram_addr_t addr);
    return addr[3:0] ^ addr[7:4] ^ addr[11:8] ^ addr[15:12];
  endfunction

endpackage
