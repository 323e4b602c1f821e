// SPDX-License-Identifier: Apache-2.0
//
// The AXI4 master port as two structs, for modules that pass it on. Bursts are INCR bursts of
// 16-byte beats, so size and type are not part of it.

package npu_axi_pkg;

  import npu_pkg::*;

  // What the master says
  typedef struct packed {
    logic        arvalid;
    logic [3:0]  arid;
    mem_addr_t   araddr;
    logic [7:0]  arlen;
    logic        rready;
    logic        awvalid;
    logic [3:0]  awid;
    mem_addr_t   awaddr;
    logic [7:0]  awlen;
    logic        wvalid;
    word_t       wdata;
    logic [15:0] wstrb;
    logic        wlast;
    logic        bready;
  } axi_req_t;

  // What the memory says
  typedef struct packed {
    logic       arready;
    logic       rvalid;
    logic [3:0] rid;
    word_t      rdata;
    logic [1:0] rresp;
    logic       rlast;
    logic       awready;
    logic       wready;
    logic       bvalid;
    logic [3:0] bid;
    logic [1:0] bresp;
  } axi_rsp_t;

endpackage
