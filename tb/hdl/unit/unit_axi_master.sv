// SPDX-License-Identifier: Apache-2.0
//
// An AXI master that plays a list of reads and one of writes, {len, id, address} each, and ends when
// all have been answered. The lists have the slots `Slot` and `Slot + 1`. From slot `More` on lie the
// words to write, whose bits 15:0 are their strobe; what is noted there is of each line {error, last,
// id}, in the next slot its data, and then of each answer to a write {error, id}.

module unit_axi_master
  import npu_axi_pkg::*;
  import tb_pkg::*;
#(
  parameter int unsigned Slot = 0,
  parameter int unsigned More = 2,
  parameter logic [31:0] Salt = 32'd0  // makes random choices differ between instances
) (
  input logic             clk_i,
  input logic             rst_ni,
  input unit_pkg::world_t world_i,

  input  logic        start_i,
  input  logic [31:0] count_i,  // reads, and as many writes
  output logic        end_o,

  output axi_req_t axi_req_o,
  input  axi_rsp_t axi_rsp_i
);

  localparam logic [31:0] Writes = unit_pkg::ProgramAt + (Slot + 1) * unit_pkg::SlotBytes;
  localparam logic [31:0] Words = unit_pkg::ProgramAt + More * unit_pkg::SlotBytes;
  localparam logic [31:0] Lines = unit_pkg::ObservedAt + More * unit_pkg::SlotBytes;
  localparam logic [31:0] Data = unit_pkg::ObservedAt + (More + 1) * unit_pkg::SlotBytes;
  localparam logic [31:0] Answers = unit_pkg::ObservedAt + (More + 2) * unit_pkg::SlotBytes;
  // Bursts whose address has been offered and whose words have not all been sent
  localparam int MostUnsent = 2;

  logic [1:0] valid, ready, sent;
  logic [1:0][111:0] payload;

  for (genvar d = 0; d < 2; d++) begin : gen_direction
    unit_requests #(
      .Slot(Slot + d)
    ) u_requests (
      .clk_i,
      .rst_ni,
      .start_i,
      .count_i,
      .end_o    (sent[d]),
      .valid_o  (valid[d]),
      .ready_i  (ready[d]),
      .payload_o(payload[d])
    );
  end

  int unsent;
  logic playing, may_offer, wvalid, wlast, rready, bready;
  logic [127:0] word;
  logic [31:0] random, lines, answers, reads_left, words, burst;
  logic [8:0] left;

  assign ready[0] = axi_rsp_i.rd.arready && valid[0];
  assign ready[1] = axi_rsp_i.wr.awready && axi_req_o.wr.awvalid;

  always_comb begin
    axi_req_o.rd.arvalid = valid[0];
    axi_req_o.rd.araddr  = payload[0][31:0];
    axi_req_o.rd.arid    = {1'b0, payload[0][34:32]};
    axi_req_o.rd.arlen   = payload[0][47:40];
    axi_req_o.rd.rready  = rready;
    axi_req_o.wr.awvalid = valid[1] && may_offer;
    axi_req_o.wr.awaddr  = payload[1][31:0];
    axi_req_o.wr.awid    = {1'b0, payload[1][34:32]};
    axi_req_o.wr.awlen   = payload[1][47:40];
    axi_req_o.wr.wvalid  = wvalid;
    axi_req_o.wr.wdata   = word;
    axi_req_o.wr.wstrb   = word[15:0];
    axi_req_o.wr.wlast   = wlast;
    axi_req_o.wr.bready  = bready;
  end

  // A behavioural model: state is updated in program order within one clock edge.
  /* verilator lint_off BLKSEQ */
  always @(posedge clk_i) begin
    if (!rst_ni) begin
      random = world_i.seed ^ Salt;
      {lines, answers, words, burst} = '0;
      reads_left = count_i;
      unsent = 0;
      left = '0;
      playing = 1'b0;
      end_o     <= 1'b0;
      may_offer <= 1'b0;
      wvalid    <= 1'b0;
      rready    <= 1'b0;
      bready    <= 1'b0;
    end else begin
      random = next_random(random);
      rready <= !happens(world_i.stream_gap, random[11:0]);
      bready <= !happens(world_i.stream_gap, random[23:12]);

      if (axi_rsp_i.rd.rvalid && rready) begin
        tb_memory_now(Lines + 16 * lines, 128'({
                      axi_rsp_i.rd.rresp[1], axi_rsp_i.rd.rlast, axi_rsp_i.rd.rid}));
        tb_memory_now(Data + 16 * lines, axi_rsp_i.rd.rdata);
        lines = lines + 32'd1;
        reads_left = reads_left - 32'(axi_rsp_i.rd.rlast);
      end
      if (axi_rsp_i.wr.bvalid && bready) begin
        tb_memory_now(Answers + 16 * answers, 128'({axi_rsp_i.wr.bresp[1], axi_rsp_i.wr.bid}));
        answers = answers + 32'd1;
      end

      if (valid[1] && ready[1]) unsent = unsent + 1;
      if (wvalid && axi_rsp_i.wr.wready && wlast) unsent = unsent - 1;
      if (start_i) playing = 1'b1;
      if (!wvalid || axi_rsp_i.wr.wready) begin
        automatic bit [127:0] next;
        wvalid <= 1'b0;
        if (left == '0 && playing && burst != count_i) begin
          tb_memory_read(Writes + 16 * burst, next);
          left  = 9'(next[47:40]) + 9'd1;
          burst = burst + 32'd1;
        end
        if (left != '0 && !happens(world_i.stream_gap, random[31:20])) begin
          tb_memory_read(Words + 16 * words, next);
          words = words + 32'd1;
          left  = left - 9'd1;
          word   <= next;
          wlast  <= left == '0;
          wvalid <= 1'b1;
        end
      end
      may_offer <= unsent < MostUnsent;
      end_o     <= &sent && reads_left == '0 && answers == count_i;
    end
  end
  /* verilator lint_on BLKSEQ */

endmodule
