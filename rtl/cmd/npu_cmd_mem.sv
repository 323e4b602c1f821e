// SPDX-License-Identifier: Apache-2.0
//
// Memory side of the descriptor ring: single words of 16 bytes over one AXI4 master port, which it
// guards like the core's. Two clients read, descriptors (0) and stream (1, goes first); one writes.
// A word is accepted before it is known whether it may go: in the next cycle it is compared with
// the regions, then it is on the bus or denied. A client learns of its own errors, in the order of
// its words, because a descriptor that was read ahead must not fail before its turn. While
// `drain_i` is high nothing new is accepted and nobody receives what comes back; `idle_o` tells
// when the memory owes nothing any more.

module npu_cmd_mem
  import npu_pkg::*;
  import npu_mem_pkg::*;
  import npu_stream_pkg::*;
  import npu_axi_pkg::*;
  import npu_cmd_pkg::*;
#(
  parameter int unsigned MaxOutstanding = 16  // words of a direction without an answer, at least 1
) (
  input logic clk_i,  // clock
  input logic rst_ni, // reset, active low

  input  read_req_t  read_i [2],  // may be withdrawn
  output read_rsp_t  read_o [2],  // ready only with valid; answers are never refused
  input  write_req_t write_i,     // may be withdrawn
  output write_rsp_t write_o,     // ready only with valid; an answer per word, in order

  // Protection
  input regions_t      regions_i,  // what the pages of memory permit; counts a cycle after ready
  input stream_range_t stream_i,   // a level: no writes to these bytes; none if the length is 0

  input  logic drain_i,  // a level: takes nothing, drops what comes back
  output logic idle_o,   // a level: the memory owes nothing and nothing is asked for
  output logic silent_o, // a level: it owes something and does nothing in this cycle

  output axi_req_t axi_req_o,  // single beats; stays until taken, stable; answers always taken
  input  axi_rsp_t axi_rsp_i   // ready may depend on valid
);

  localparam int unsigned CountW = $clog2(MaxOutstanding + 1);

  // Words accepted and not answered, in the registers below and at the memory
  logic [CountW-1:0] reads_q, writes_q;
  logic r_take, b_take, progress;
  logic ar_new_q, ar_denied_q, aw_new_q, aw_denied_q;

  assign r_take = axi_rsp_i.rd.rvalid && axi_rsp_i.rd.rlast;
  assign b_take = axi_rsp_i.wr.bvalid;
  assign idle_o = reads_q == '0 && writes_q == '0;
  assign progress = ar_new_q || aw_new_q ||
                    (axi_req_o.rd.arvalid && axi_rsp_i.rd.arready) || axi_rsp_i.rd.rvalid ||
                    (axi_req_o.wr.awvalid && axi_rsp_i.wr.awready) ||
                    (axi_req_o.wr.wvalid && axi_rsp_i.wr.wready) || axi_rsp_i.wr.bvalid;
  assign silent_o = !idle_o && !progress;

  // ---------------------------------------------------------------------------------------------
  // Reads
  // ---------------------------------------------------------------------------------------------
  logic ar_valid_q, ar_client_q, client, read_allowed, read;
  mem_addr_t ar_addr_q;

  assign client = read_i[1].valid;
  assign read   = read_i[client].valid && !drain_i && !ar_new_q && !ar_denied_q &&
                  (!ar_valid_q || axi_rsp_i.rd.arready) && reads_q != CountW'(MaxOutstanding);

  npu_mem_guard #(
    .Write(1'b0)
  ) u_read_guard (
    .addr_i   (ar_addr_q),
    .len_i    ('0),
    .regions_i,
    .stream_i ('0),
    .allowed_o(read_allowed)
  );

  for (genvar c = 0; c < 2; c++) begin : gen_client
    assign read_o[c].ready  = read && client == 1'(c);
    assign read_o[c].denied = ar_denied_q && ar_client_q == 1'(c);
    assign read_o[c].valid  = axi_rsp_i.rd.rvalid && axi_rsp_i.rd.rid == 4'(c) && !drain_i;
    assign read_o[c].error  = axi_rsp_i.rd.rresp[1];
    assign read_o[c].data   = axi_rsp_i.rd.rdata;
  end

  always_ff @(posedge clk_i) begin
    if (!rst_ni) begin
      ar_new_q    <= 1'b0;
      ar_denied_q <= 1'b0;
      ar_valid_q  <= 1'b0;
      ar_client_q <= 1'b0;
      ar_addr_q   <= '0;
      reads_q     <= '0;
    end else begin
      ar_new_q    <= read;
      ar_denied_q <= ar_new_q && !read_allowed;
      if (ar_new_q) ar_valid_q <= read_allowed;
      else if (axi_rsp_i.rd.arready) ar_valid_q <= 1'b0;
      if (read) begin
        ar_client_q <= client;
        ar_addr_q   <= read_i[client].addr;
      end
      reads_q <= reads_q + CountW'(read) - CountW'(r_take) - CountW'(ar_denied_q);
    end
  end

  assign axi_req_o.rd.arvalid = ar_valid_q;
  assign axi_req_o.rd.arid    = {3'b0, ar_client_q};
  assign axi_req_o.rd.araddr  = ar_addr_q;
  assign axi_req_o.rd.arlen   = '0;
  assign axi_req_o.rd.rready  = 1'b1;

  // ---------------------------------------------------------------------------------------------
  // Writes: address and data are offered together and taken independently
  // ---------------------------------------------------------------------------------------------
  logic aw_valid_q, w_valid_q, write_allowed, write;
  mem_addr_t aw_addr_q;
  word_t w_data_q;
  logic [15:0] w_strb_q;

  assign write = write_i.valid && !drain_i && !aw_new_q && !aw_denied_q &&
                 (!aw_valid_q || axi_rsp_i.wr.awready) && (!w_valid_q || axi_rsp_i.wr.wready) &&
                 writes_q != CountW'(MaxOutstanding);

  npu_mem_guard #(
    .Write(1'b1)
  ) u_write_guard (
    .addr_i   (aw_addr_q),
    .len_i    ('0),
    .regions_i,
    .stream_i,
    .allowed_o(write_allowed)
  );

  assign write_o.ready  = write;
  assign write_o.denied = aw_denied_q;

  always_ff @(posedge clk_i) begin
    if (!rst_ni) begin
      aw_new_q    <= 1'b0;
      aw_denied_q <= 1'b0;
      aw_valid_q  <= 1'b0;
      aw_addr_q   <= '0;
      w_valid_q   <= 1'b0;
      w_data_q    <= '0;
      w_strb_q    <= '0;
      writes_q    <= '0;
    end else begin
      aw_new_q    <= write;
      aw_denied_q <= aw_new_q && !write_allowed;
      if (aw_new_q) aw_valid_q <= write_allowed;
      else if (axi_rsp_i.wr.awready) aw_valid_q <= 1'b0;
      if (aw_new_q) w_valid_q <= write_allowed;
      else if (axi_rsp_i.wr.wready) w_valid_q <= 1'b0;
      if (write) begin
        aw_addr_q <= write_i.addr;
        w_data_q  <= write_i.data;
        w_strb_q  <= write_i.strb;
      end
      writes_q <= writes_q + CountW'(write) - CountW'(b_take) - CountW'(aw_denied_q);
    end
  end

  assign axi_req_o.wr.awvalid = aw_valid_q;
  assign axi_req_o.wr.awid    = '0;
  assign axi_req_o.wr.awaddr  = aw_addr_q;
  assign axi_req_o.wr.awlen   = '0;
  assign axi_req_o.wr.wvalid  = w_valid_q;
  assign axi_req_o.wr.wdata   = w_data_q;
  assign axi_req_o.wr.wstrb   = w_strb_q;
  assign axi_req_o.wr.wlast   = 1'b1;
  assign axi_req_o.wr.bready  = 1'b1;

  assign write_o.valid        = axi_rsp_i.wr.bvalid && !drain_i;
  assign write_o.error        = axi_rsp_i.wr.bresp[1];

endmodule
