// SPDX-License-Identifier: Apache-2.0
//
// Memory side of the descriptor ring: single words of 16 bytes over one AXI4 master port, which it
// guards like the core's. Two clients read, descriptors (0) and stream (1, goes first); one writes.
// A client learns of its own errors, in the order of its words, because a descriptor that was read
// ahead must not fail before its turn. While `drain_i` is high nothing new is issued and nobody
// receives what comes back; `idle_o` tells when the memory owes nothing any more.

module npu_cmd_mem
  import npu_pkg::*;
  import npu_axi_pkg::*;
  import npu_cmd_pkg::*;
#(
  parameter int unsigned MaxOutstanding = 16
) (
  input logic clk_i,
  input logic rst_ni,

  input  read_req_t  read_i [2],
  output read_rsp_t  read_o [2],
  input  write_req_t write_i,
  output write_rsp_t write_o,

  // Protection
  input region_t          regions_i      [NumRegions],
  input mem_addr_t        stream_base_i,
  input logic      [31:0] stream_length_i,

  input  logic drain_i,
  output logic idle_o,
  output logic silent_o, // the memory owes something, and nothing is accepted in this cycle

  output axi_req_t axi_req_o,
  input  axi_rsp_t axi_rsp_i
);

  localparam int unsigned CountW = $clog2(MaxOutstanding + 1);

  // Words asked for and not answered, in the registers below and at the memory
  logic [CountW-1:0] reads_q, writes_q;
  logic r_take, b_take, progress;

  assign r_take = axi_rsp_i.rvalid && axi_rsp_i.rlast;
  assign b_take = axi_rsp_i.bvalid;
  assign idle_o = reads_q == '0 && writes_q == '0;
  assign progress = (axi_req_o.arvalid && axi_rsp_i.arready) || axi_rsp_i.rvalid ||
                    (axi_req_o.awvalid && axi_rsp_i.awready) ||
                    (axi_req_o.wvalid && axi_rsp_i.wready) || axi_rsp_i.bvalid;
  assign silent_o = !idle_o && !progress;

  // ---------------------------------------------------------------------------------------------
  // Reads
  // ---------------------------------------------------------------------------------------------
  logic ar_valid_q, ar_client_q, client, read_allowed, read;
  mem_addr_t ar_addr_q;

  assign client = read_i[1].valid;

  npu_mem_guard #(
    .Write(1'b0)
  ) u_read_guard (
    .addr_i         (read_i[client].addr),
    .len_i          ('0),
    .regions_i,
    .stream_base_i  ('0),
    .stream_length_i('0),
    .allowed_o      (read_allowed)
  );

  assign read = read_i[client].valid && read_allowed && !drain_i &&
                (!ar_valid_q || axi_rsp_i.arready) && reads_q != CountW'(MaxOutstanding);

  for (genvar c = 0; c < 2; c++) begin : gen_client
    logic mine;
    assign mine             = client == 1'(c);
    assign read_o[c].ready  = read && mine;
    assign read_o[c].denied = read_i[c].valid && mine && !read_allowed;
    assign read_o[c].valid  = axi_rsp_i.rvalid && axi_rsp_i.rid == 4'(c) && !drain_i;
    assign read_o[c].error  = axi_rsp_i.rresp[1];
    assign read_o[c].data   = axi_rsp_i.rdata;
  end

  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) begin
      ar_valid_q  <= 1'b0;
      ar_client_q <= 1'b0;
      ar_addr_q   <= '0;
      reads_q     <= '0;
    end else begin
      if (read) begin
        ar_valid_q  <= 1'b1;
        ar_client_q <= client;
        ar_addr_q   <= read_i[client].addr;
      end else if (axi_rsp_i.arready) begin
        ar_valid_q <= 1'b0;
      end
      reads_q <= reads_q + CountW'(read) - CountW'(r_take);
    end
  end

  assign axi_req_o.arvalid = ar_valid_q;
  assign axi_req_o.arid    = {3'b0, ar_client_q};
  assign axi_req_o.araddr  = ar_addr_q;
  assign axi_req_o.arlen   = '0;
  assign axi_req_o.rready  = 1'b1;

  // ---------------------------------------------------------------------------------------------
  // Writes: address and data are offered together and taken independently
  // ---------------------------------------------------------------------------------------------
  logic aw_valid_q, w_valid_q, write_allowed, write;
  mem_addr_t aw_addr_q;
  word_t w_data_q;
  logic [15:0] w_strb_q;

  npu_mem_guard #(
    .Write(1'b1)
  ) u_write_guard (
    .addr_i   (write_i.addr),
    .len_i    ('0),
    .regions_i,
    .stream_base_i,
    .stream_length_i,
    .allowed_o(write_allowed)
  );

  assign write = write_i.valid && write_allowed && !drain_i && (!aw_valid_q || axi_rsp_i.awready) &&
                 (!w_valid_q || axi_rsp_i.wready) && writes_q != CountW'(MaxOutstanding);
  assign write_o.ready = write;
  assign write_o.denied = write_i.valid && !write_allowed;

  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) begin
      aw_valid_q <= 1'b0;
      aw_addr_q  <= '0;
      w_valid_q  <= 1'b0;
      w_data_q   <= '0;
      w_strb_q   <= '0;
      writes_q   <= '0;
    end else begin
      if (axi_rsp_i.awready) aw_valid_q <= 1'b0;
      if (axi_rsp_i.wready) w_valid_q <= 1'b0;
      if (write) begin
        aw_valid_q <= 1'b1;
        aw_addr_q  <= write_i.addr;
        w_valid_q  <= 1'b1;
        w_data_q   <= write_i.data;
        w_strb_q   <= write_i.strb;
      end
      writes_q <= writes_q + CountW'(write) - CountW'(b_take);
    end
  end

  assign axi_req_o.awvalid = aw_valid_q;
  assign axi_req_o.awid    = '0;
  assign axi_req_o.awaddr  = aw_addr_q;
  assign axi_req_o.awlen   = '0;
  assign axi_req_o.wvalid  = w_valid_q;
  assign axi_req_o.wdata   = w_data_q;
  assign axi_req_o.wstrb   = w_strb_q;
  assign axi_req_o.wlast   = 1'b1;
  assign axi_req_o.bready  = 1'b1;

  assign write_o.valid     = axi_rsp_i.bvalid && !drain_i;
  assign write_o.error     = axi_rsp_i.bresp[1];

endmodule
