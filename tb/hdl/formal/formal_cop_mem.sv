// SPDX-License-Identifier: Apache-2.0
//
// The master of the coprocessor, whatever its readers and its writer ask for: addresses stay until
// they are taken, no read goes out that the guard has not allowed, and readers with something to ask
// take turns. What is written is what the writer has offered, which makes no word that its guard has not
// allowed (formal_cop_writer).

module formal_cop_mem
  import npu_mem_pkg::*;
  import npu_axi_pkg::*;
  import npu_cop_pkg::*;
(
  input logic           clk_i,          // clock
  input logic           rst_ni,         // reset, active low
  input cop_read_req_t  read_i    [2],
  input cop_write_req_t write_i,
  input mem_settings_t  settings_i,
  input axi_rsp_t       axi_rsp_i
);

  localparam int unsigned Most = 3;

  axi_req_t axi, axi_q;
  axi_rsp_t rsp_q;
  cop_read_rsp_t read[2];
  logic begun_q, live_q, fresh;
  logic [1:0] allowed, allowed_q, taken;
  cop_read_req_t  read_q  [2];
  cop_write_req_t write_q;
  logic fresh_address, fresh_word;
  logic [2:0] reads_q, writes_q;  // that the memory owes an answer
  logic [1:0] others_q;  // bursts of the other reader, while reader 0 asks for what it may

  npu_cop_mem #(
    .MaxOutstanding(Most)
  ) u_mem (
    .clk_i,
    .rst_ni,
    .read_i,
    .read_o   (read),
    .write_i,
    .write_o  (),
    .settings_i,
    .bus_o    (),
    .axi_req_o(axi),
    .axi_rsp_i
  );

  for (genvar c = 0; c < 2; c++) begin : gen_reader
    npu_mem_guard #(
      .Write(1'b0)
    ) u_guard (
      .addr_i   ({read_i[c].word, 4'b0}),
      .len_i    ({5'b0, read_i[c].len}),
      .regions_i(settings_i.regions),
      .stream_i ('0),
      .allowed_o(allowed[c])
    );
    assign taken[c] = read[c].ready;
  end

  assign fresh = axi.rd.arvalid && !(axi_q.rd.arvalid && !rsp_q.rd.arready);

  assign fresh_address = axi.wr.awvalid && !(axi_q.wr.awvalid && !rsp_q.wr.awready);
  assign fresh_word = axi.wr.wvalid && !(axi_q.wr.wvalid && !rsp_q.wr.wready);

  initial begun_q = 1'b0;
  always_ff @(posedge clk_i) begin
    begun_q   <= 1'b1;
    live_q    <= begun_q && rst_ni;
    axi_q     <= axi;
    rsp_q     <= axi_rsp_i;
    allowed_q <= allowed;
    read_q    <= read_i;
    write_q   <= write_i;
    if (!rst_ni) begin
      reads_q  <= '0;
      writes_q <= '0;
      others_q <= '0;
    end else begin
      reads_q <= reads_q + 3'(axi.rd.arvalid && axi_rsp_i.rd.arready) -
                 3'(axi_rsp_i.rd.rvalid && axi_rsp_i.rd.rlast);
      writes_q <= writes_q + 3'(axi.wr.awvalid && axi_rsp_i.wr.awready) - 3'(axi_rsp_i.wr.bvalid);
      if (!read_i[0].valid || !allowed[0] || taken[0]) others_q <= '0;
      else if (taken[1] && others_q != 2'd3) others_q <= others_q + 1'b1;
    end
  end

  always_comb begin
    assume (begun_q || !rst_ni);
    assume (!axi_rsp_i.rd.rvalid || reads_q != '0);  // memory answers what it was asked for
    assume (!axi_rsp_i.wr.bvalid || writes_q != '0);
    if (begun_q && rst_ni) begin
      ReadsAtMost_A : assert (reads_q <= 3'(Most));
      WritesAtMost_A : assert (writes_q <= 3'(Most));
      OneTaken_A : assert (taken != 2'b11);
      InTurn_A : assert (others_q < 2'd2);
      if (live_q) begin
        ReadAllowed_A :
        assert (!fresh ||
                allowed_q[axi.rd.arid[0]] && read_q[axi.rd.arid[0]].valid &&
                axi.rd.araddr == {read_q[axi.rd.arid[0]].word, 4'b0} &&
                axi.rd.arlen == {5'b0, read_q[axi.rd.arid[0]].len});
        OfWriter_A :
        assert ((!fresh_address || write_q.valid && axi.wr.awaddr == {write_q.word, 4'b0} &&
                 axi.wr.awlen == '0) &&
                (!fresh_word || write_q.valid && axi.wr.wdata == write_q.data &&
                 axi.wr.wstrb == write_q.strb && axi.wr.wlast));
        ReadStays_A :
        assert (!(axi_q.rd.arvalid && !rsp_q.rd.arready) ||
                axi.rd.arvalid && axi.rd.araddr == axi_q.rd.araddr &&
                axi.rd.arlen == axi_q.rd.arlen && axi.rd.arid == axi_q.rd.arid);
        WriteStays_A :
        assert (!(axi_q.wr.awvalid && !rsp_q.wr.awready) ||
                axi.wr.awvalid && axi.wr.awaddr == axi_q.wr.awaddr);
        WordStays_A :
        assert (!(axi_q.wr.wvalid && !rsp_q.wr.wready) ||
                axi.wr.wvalid && axi.wr.wdata == axi_q.wr.wdata && axi.wr.wstrb == axi_q.wr.wstrb);
      end
    end
  end

endmodule
