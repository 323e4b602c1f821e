// SPDX-License-Identifier: Apache-2.0
//
// The AXI4 master port and the AXI4-Lite slave port as two structs each, for modules that pass them
// on, and the numbers of the memory port's clients. Bursts are INCR bursts of 16-byte beats, so size
// and type are not part of it.

package npu_axi_pkg;

  import npu_pkg::*;

  // Read side: what the master says
  typedef struct packed {
    logic arvalid;  // an address; stays until arready, the fields of AR stable
    logic [3:0] arid;     // who asks: engine; on the bus see npu_axi_mux
    mem_addr_t araddr;  // first byte, a multiple of 16
    logic [7:0] arlen;  // beats - 1
    logic rready;  // takes a beat; always high at the masters of the chip
  } axi_rd_req_t;

  // Read side: what the memory says
  typedef struct packed {
    logic       arready;  // takes the address; may depend on arvalid
    logic       rvalid;   // a beat; stays until rready, the fields of R stable
    logic [3:0] rid;      // that of the burst's address
    word_t      rdata;    // the word, unless rresp tells an error
    logic [1:0] rresp;    // bit 1: error; of this beat
    logic       rlast;    // with the last beat of a burst
  } axi_rd_rsp_t;

  // Write side: what the master says
  typedef struct packed {
    logic        awvalid;  // an address; stays until awready, the fields of AW stable
    logic [3:0]  awid;     // who asks, as arid
    mem_addr_t   awaddr;   // first byte, a multiple of 16
    logic [7:0]  awlen;    // beats - 1
    logic        wvalid;   // a beat, in the order of addresses; stays until wready, all stable
    word_t       wdata;    // the word
    logic [15:0] wstrb;    // bit i: byte i is written
    logic        wlast;    // with the last beat of a burst
    logic        bready;   // takes an answer; always high at the masters of the chip
  } axi_wr_req_t;

  // Write side: what the memory says
  typedef struct packed {
    logic       awready;  // takes the address; may depend on awvalid
    logic       wready;   // takes the beat; may depend on wvalid
    logic       bvalid;   // a burst is answered; stays until bready, the fields of B stable
    logic [3:0] bid;      // that of the burst's address
    logic [1:0] bresp;    // bit 1: error
  } axi_wr_rsp_t;

  typedef struct packed {
    axi_rd_req_t rd;  // read addresses, ready for read data
    axi_wr_req_t wr;  // write addresses and data, ready for answers
  } axi_req_t;

  typedef struct packed {
    axi_rd_rsp_t rd;  // read addresses taken, read data
    axi_wr_rsp_t wr;  // write addresses and data taken, answers to writes
  } axi_rsp_t;

  // AXI4-Lite: what the host says
  typedef struct packed {
    logic        awvalid;  // an address; stays until awready, stable
    logic [11:0] awaddr;   // bytes
    logic        wvalid;   // data; stays until wready, stable
    logic [31:0] wdata;    // a register of 32 bits
    logic [3:0]  wstrb;    // bit i: byte i is written
    logic        bready;   // takes the answer to a write
    logic        arvalid;  // an address; stays until arready, stable
    logic [11:0] araddr;   // bytes
    logic        rready;   // takes the answer to a read
  } axil_req_t;

  // AXI4-Lite: what the chip says
  typedef struct packed {
    logic        awready;  // takes the address; only together with wready, with both valid
    logic        wready;   // takes the data; as awready
    logic        bvalid;   // a write is answered; stays until bready
    logic [1:0]  bresp;    // SLVERR for an address that is no multiple of 4, with bvalid
    logic        arready;  // takes the address; only with arvalid
    logic        rvalid;   // a read is answered; stays until rready, stable
    logic [31:0] rdata;    // the register's value; 0 with an error
    logic [1:0]  rresp;    // as bresp, with rvalid
  } axil_rsp_t;

  // Bits of the number of a client of the memory port; it has no more than there are engines
  function automatic int unsigned client_bits(int unsigned num_clients);
    return (num_clients > 1) ? $clog2(num_clients) : 1;
  endfunction

  // The lowest number in a set of clients, 0 for none
  function automatic logic [2:0] first_of(logic [7:0] clients);
    logic [2:0] first;
    first = '0;
    for (int unsigned c = 8; c > 0; c--) if (clients[c-1]) first = 3'(c - 1);
    return first;
  endfunction

endpackage
