// SPDX-License-Identifier: Apache-2.0
//
// Write half of the behavioural AXI4 memory. Bursts are taken and answered in order. The bytes of
// a burst reach the memory together with its response, the latest moment that AXI allows, so a
// master that does not wait for the response is found out. A beat that meets an error is not
// written. A DRAM answers when the burst waits in its queue, which reads look into.

module axi_memory_write #(
  // Bursts that may wait for their data, and for their response.
  parameter int unsigned Depth = 16
) (
  input logic                         clk_i,
  input logic                         rst_ni,
  input logic                  [63:0] cycle_i,
  input tb_pkg::memory_knobs_t        knobs_i,

  input  npu_axi_pkg::axi_wr_req_t req_i,
  output npu_axi_pkg::axi_wr_rsp_t rsp_o
);
  import tb_pkg::*;

  localparam int unsigned PtrBits = $clog2(Depth);

  typedef struct packed {
    logic [AxiIdBits-1:0] id;
    logic [31:0]          address;
  } burst_t;

  typedef struct packed {
    logic [63:0]          ready_at;
    logic [AxiIdBits-1:0] id;
    logic [1:0]           resp;
    logic [8:0]           beats;     // held until the response
    logic [31:0]          address;   // of the last beat
  } reply_t;

  burst_t bursts[Depth];
  logic [PtrBits-1:0] burst_head;
  logic [PtrBits:0] burst_count;
  reply_t replies[Depth];
  logic [PtrBits-1:0] reply_head;
  logic [PtrBits:0] reply_count;
  logic [31:0] address;  // of the beat, once a burst has begun
  logic begun;
  logic [1:0] resp;
  logic [8:0] beats;
  logic [31:0] random;

  // Cycles until a burst is answered that ends before `address`
  function automatic logic [63:0] answer(logic [31:0] first, logic [15:0] bits);
    if (knobs_i.memory == MemoryFixed) return delay(knobs_i, bits);
    tb_dram_choose(32'(knobs_i.memory), knobs_i.seed);
    return 64'(tb_dram_write(cycle_i, first, (address - first) >> 4));
  endfunction

  // A behavioural model: state is updated in program order within one clock edge.
  /* verilator lint_off BLKSEQ */
  always @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) begin
      tb_memory_forget();
      burst_head = '0;
      burst_count = '0;
      reply_head = '0;
      reply_count = '0;
      address = '0;
      begun = 1'b0;
      resp = RespOkay;
      beats = '0;
      random = ~knobs_i.seed;
      rsp_o.awready <= 1'b0;
      rsp_o.wready <= 1'b0;
      rsp_o.bvalid <= 1'b0;
      rsp_o.bid <= '0;
      rsp_o.bresp <= '0;
    end else begin
      random = next_random(random);

      if (req_i.awvalid && rsp_o.awready) begin
        bursts[PtrBits'(32'(burst_head)+32'(burst_count))] = '{
            id: req_i.awid,
            address: req_i.awaddr & ~32'hf
        };
        burst_count = burst_count + 1'b1;
      end

      if (req_i.wvalid && rsp_o.wready) begin
        if (!begun) begin
          address = bursts[burst_head].address;
          resp = RespOkay;
          beats = '0;
        end
        begun = 1'b1;
        if (resp == RespOkay) resp = response(knobs_i, address);
        if (response(knobs_i, address) == RespOkay) begin
          tb_memory_hold(address, req_i.wdata, req_i.wstrb);
          beats = beats + 9'd1;
        end
        address = address + 32'd16;
        if (req_i.wlast) begin
          replies[PtrBits'(32'(reply_head)+32'(reply_count))] = '{
              ready_at: cycle_i + answer(bursts[burst_head].address, random[23:8]),
              id: bursts[burst_head].id,
              resp: resp,
              beats: beats,
              address: address - 32'd16
          };
          reply_count = reply_count + 1'b1;
          burst_head = burst_head + 1'b1;
          burst_count = burst_count - 1'b1;
          begun = 1'b0;
        end
      end

      if (!rsp_o.bvalid || req_i.bready) begin
        rsp_o.bvalid <= 1'b0;
        if (reply_count != '0 && replies[reply_head].ready_at <= cycle_i + 64'd1 && !withholds(
                knobs_i, replies[reply_head].address
            ) && !happens(
                knobs_i.gap_percent, random[11:0]
            )) begin
          tb_memory_commit(32'(replies[reply_head].beats));
          rsp_o.bvalid <= 1'b1;
          rsp_o.bid <= replies[reply_head].id;
          rsp_o.bresp <= replies[reply_head].resp;
          reply_head  = reply_head + 1'b1;
          reply_count = reply_count - 1'b1;
        end
      end

      rsp_o.awready <= !is_deaf(
          knobs_i
      ) && 32'(burst_count) < Depth - 1 && !happens(
          knobs_i.address_stall_percent, random[19:8]
      );
      // A beat may follow in the cycle after its address, and room for its reply must remain.
      rsp_o.wready <= !is_deaf(
          knobs_i
      ) && burst_count != '0 && 32'(reply_count) < Depth - 1 &&
          (knobs_i.memory == MemoryFixed || tb_dram_room(
          cycle_i
      )) && !happens(
          knobs_i.data_stall_percent, random[31:20]
      );
    end
  end
  /* verilator lint_on BLKSEQ */

endmodule
