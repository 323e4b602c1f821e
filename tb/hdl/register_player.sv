// SPDX-License-Identifier: Apache-2.0
//
// AXI4-Lite master of the register port: plays a list of accesses that Python has left in a file
// (accesses.bin, see memory_dpi.cpp), one after the other or a read and a write side by side, and
// writes the answers beside them. Python sleeps from the first access to the last. An error answer
// ends the list; an access that a reset cuts short has no answer.

module register_player
  import tb_pkg::*;
(
  input logic clk_i,
  input logic rst_ni,

  input  logic [ 6:0] stall_percent_i,  // cycles in which nothing is offered or accepted anew
  input  logic [31:0] seed_i,
  input  logic        play_i,           // each change plays the list once
  input  logic [15:0] count_i,          // accesses in the list, at least one
  output logic        played_o,         // play_i again when the last answer is there
  output logic [15:0] index_o,          // of an access under way, or of the last

  output npu_axi_pkg::axil_req_t req_o,
  input  npu_axi_pkg::axil_rsp_t rsp_i
);

  // What is under way: a write, a read, or one of each. `offer_*`: not yet on its channel.
  logic offer_aw, offer_w, offer_ar;
  logic writing, reading;
  logic failed;
  logic [15:0] write_index, read_index;
  logic [15:0] next;  // access of the list
  logic [31:0] random;

  function automatic logic stalls(logic [11:0] bits);
    return happens(stall_percent_i, bits);
  endfunction

  // A behavioural model: state is updated in program order within one clock edge.
  /* verilator lint_off BLKSEQ */
  always @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) begin
      {offer_aw, offer_w, offer_ar, writing, reading, failed} = '0;
      next = '0;
      random = seed_i;
      played_o <= play_i;
      {req_o.awvalid, req_o.wvalid, req_o.bready, req_o.arvalid, req_o.rready} <= '0;
      {req_o.awaddr, req_o.wdata, req_o.wstrb, req_o.araddr} <= '0;
    end else begin
      automatic logic beside = 1'b1;

      random = next_random(random);
      if (rsp_i.awready) req_o.awvalid <= 1'b0;
      if (rsp_i.wready) req_o.wvalid <= 1'b0;
      if (rsp_i.arready) req_o.arvalid <= 1'b0;
      if (rsp_i.bvalid && req_o.bready) begin
        tb_access_answer(32'(write_index), '0, rsp_i.bresp);
        writing = 1'b0;
        failed |= rsp_i.bresp != RespOkay;
      end
      if (rsp_i.rvalid && req_o.rready) begin
        tb_access_answer(32'(read_index), rsp_i.rdata, rsp_i.rresp);
        reading = 1'b0;
        failed |= rsp_i.rresp != RespOkay;
      end

      if (play_i != played_o && !writing && !reading) begin
        if (failed || next == count_i) begin
          next   = '0;
          failed = 1'b0;
          played_o <= play_i;
        end else begin
          for (int unsigned i = 0; i < 2 && beside; i++) begin
            automatic bit [31:0] address, data;
            automatic bit [3:0] strobe;
            automatic bit writes, with_next;
            tb_access_get(32'(next), address, data, strobe, writes, with_next);
            if (writes) begin
              {writing, offer_aw, offer_w} = '1;
              write_index = next;
              req_o.awaddr <= address[11:0];
              req_o.wdata  <= data;
              req_o.wstrb  <= strobe;
            end else begin
              {reading, offer_ar} = '1;
              read_index = next;
              req_o.araddr <= address[11:0];
            end
            beside = with_next;
            next   = next + 16'd1;
          end
        end
      end

      if (offer_aw && !stalls(random[11:0])) begin
        req_o.awvalid <= 1'b1;
        offer_aw = 1'b0;
      end
      if (offer_w && !stalls(random[16:5])) begin
        req_o.wvalid <= 1'b1;
        offer_w = 1'b0;
      end
      if (offer_ar && !stalls(random[21:10])) begin
        req_o.arvalid <= 1'b1;
        offer_ar = 1'b0;
      end
      req_o.bready <= writing && !stalls(random[26:15]);
      req_o.rready <= reading && !stalls(random[31:20]);
    end
  end
  /* verilator lint_on BLKSEQ */

  assign index_o = writing ? write_index : read_index;

endmodule
