// SPDX-License-Identifier: Apache-2.0
//
// Memory side of the coprocessor: bursts of words for two readers and single words of a writer over
// one AXI4 master port. Reads are guarded here, words were guarded before the writer made them. A
// word that fails must be known for itself, hence no bursts of writes. Readers with something to ask
// take turns.

module npu_cop_mem
  import npu_mem_pkg::*;
  import npu_axi_pkg::*;
  import npu_cop_pkg::*;
#(
  parameter int unsigned MaxOutstanding = 16  // bursts of a direction without an answer, at least 1
) (
  input logic clk_i,  // clock
  input logic rst_ni, // reset, active low

  input  cop_read_req_t  read_i [2],  // bursts of the readers
  output cop_read_rsp_t  read_o [2],  // words come whether or not the reader still wants them
  input  cop_write_req_t write_i,     // a word of the writer
  output cop_write_rsp_t write_o,     // answers come in order

  input  mem_settings_t settings_i,  // levels: regions for new requests, limit of waits in cycles
  output cop_bus_t      bus_o,       // what the memory owes

  output axi_req_t axi_req_o,  // writes are single beats; stays until taken, answers always taken
  input  axi_rsp_t axi_rsp_i   // ready may depend on valid
);

  localparam int unsigned CountW = $clog2(MaxOutstanding + 1);

  // ---------------------------------------------------------------------------------------------
  // Reads
  // ---------------------------------------------------------------------------------------------
  logic [CountW-1:0] reads_q;
  logic ar_valid_q, ar_client_q, turn_q, client, slot, read;
  logic [1:0] allowed, first;
  logic [27:0] ar_word_q;
  logic [ 2:0] ar_len_q;

  assign first = {
    read_i[1].valid && (turn_q || !read_i[0].valid),
    read_i[0].valid && (!turn_q || !read_i[1].valid)
  };
  assign client = first[1];
  assign slot = (!ar_valid_q || axi_rsp_i.rd.arready) && reads_q != CountW'(MaxOutstanding);
  assign read = (first & allowed) != '0 && slot;

  for (genvar c = 0; c < 2; c++) begin : gen_client
    npu_mem_guard #(
      .Write(1'b0)
    ) u_guard (
      .addr_i   ({read_i[c].word, 4'b0}),
      .len_i    ({5'b0, read_i[c].len}),
      .regions_i(settings_i.regions),
      .stream_i ('0),
      .allowed_o(allowed[c])
    );

    assign read_o[c].ready  = first[c] && allowed[c] && slot;
    assign read_o[c].denied = first[c] && !allowed[c];
    assign read_o[c].valid  = axi_rsp_i.rd.rvalid && axi_rsp_i.rd.rid == 4'(c);
    assign read_o[c].error  = axi_rsp_i.rd.rresp[1];
    assign read_o[c].data   = axi_rsp_i.rd.rdata;
  end

  always_ff @(posedge clk_i) begin
    if (!rst_ni) begin
      ar_valid_q  <= 1'b0;
      ar_client_q <= 1'b0;
      ar_word_q   <= '0;
      ar_len_q    <= '0;
      turn_q      <= 1'b0;
      reads_q     <= '0;
    end else begin
      if (read) begin
        ar_valid_q  <= 1'b1;
        ar_client_q <= client;
        ar_word_q   <= read_i[client].word;
        ar_len_q    <= read_i[client].len;
        turn_q      <= !client;
      end else if (axi_rsp_i.rd.arready) begin
        ar_valid_q <= 1'b0;
      end
      reads_q <= reads_q + CountW'(read) - CountW'(axi_rsp_i.rd.rvalid && axi_rsp_i.rd.rlast);
    end
  end

  assign axi_req_o.rd = '{
          arvalid: ar_valid_q,
          arid: {3'b0, ar_client_q},
          araddr: {ar_word_q, 4'b0},
          arlen: {5'b0, ar_len_q},
          rready: 1'b1
      };

  // ---------------------------------------------------------------------------------------------
  // Writes: address and data are offered together and taken independently
  // ---------------------------------------------------------------------------------------------
  logic [CountW-1:0] writes, writes_q;
  logic full_q;  // there are MaxOutstanding of them
  logic aw_valid_q, w_valid_q, write_slot, write;
  cop_write_req_t word_q;

  assign write_slot = (!aw_valid_q || axi_rsp_i.wr.awready) &&
                      (!w_valid_q || axi_rsp_i.wr.wready) && !full_q;
  assign write = write_i.valid && write_slot;
  assign writes = writes_q + CountW'(write) - CountW'(axi_rsp_i.wr.bvalid);
  assign write_o = '{ready: write_slot, done: axi_rsp_i.wr.bvalid, error: axi_rsp_i.wr.bresp[1]};

  always_ff @(posedge clk_i) begin
    if (!rst_ni) begin
      aw_valid_q <= 1'b0;
      w_valid_q  <= 1'b0;
      word_q     <= '0;
      writes_q   <= '0;
      full_q     <= 1'b0;
    end else begin
      if (axi_rsp_i.wr.awready) aw_valid_q <= 1'b0;
      if (axi_rsp_i.wr.wready) w_valid_q <= 1'b0;
      if (write) begin
        aw_valid_q <= 1'b1;
        w_valid_q  <= 1'b1;
        word_q     <= write_i;
      end
      writes_q <= writes;
      full_q   <= writes == CountW'(MaxOutstanding);
    end
  end

  assign axi_req_o.wr = '{
          awvalid: aw_valid_q,
          awid: '0,
          awaddr: {word_q.word, 4'b0},
          awlen: '0,
          wvalid: w_valid_q,
          wdata: word_q.data,
          wstrb: word_q.strb,
          wlast: 1'b1,
          bready: 1'b1
      };

  // ---------------------------------------------------------------------------------------------
  // Silence; whoever is told of it, a cycle behind, may wait once more
  // ---------------------------------------------------------------------------------------------
  logic progress, expired, told_q;

  assign progress = (ar_valid_q && axi_rsp_i.rd.arready) || axi_rsp_i.rd.rvalid ||
                    (aw_valid_q && axi_rsp_i.wr.awready) ||
                    (w_valid_q && axi_rsp_i.wr.wready) || axi_rsp_i.wr.bvalid;
  assign bus_o = '{reads: reads_q != '0, writes: writes_q != '0, expired: told_q};

  npu_mem_timer u_timer (
    .clk_i,
    .rst_ni,
    .waiting_i((bus_o.reads || bus_o.writes) && !progress && !told_q),
    .limit_i  (settings_i.timeout),
    .expired_o(expired)
  );

  always_ff @(posedge clk_i) begin
    if (!rst_ni) told_q <= 1'b0;
    else told_q <= expired;
  end

`ifndef SYNTHESIS
  NothingUnasked_A :
  assert property (@(posedge clk_i) disable iff (!rst_ni)
                   (axi_rsp_i.rd.rvalid |-> bus_o.reads) and (axi_rsp_i.wr.bvalid |-> bus_o.writes))
  else $error("npu_cop_mem: an answer that nothing was asked for");
`endif

endmodule
