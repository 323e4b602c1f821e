// SPDX-License-Identifier: Apache-2.0
//
// AXI4-Lite slave of the register space: one access at a time, reads and writes in turn. A write is
// answered in the cycle of its acknowledgement; what is read goes into a register first, because
// the choice among all registers is deep. Accesses that are not aligned to four bytes are answered
// with SLVERR and reach no register.

module npu_axil_slave (
  input logic clk_i,  // clock
  input logic rst_ni, // reset, active low

  // Register port
  input  npu_axi_pkg::axil_req_t axil_req_i,  // keeps the rules of AXI4-Lite
  output npu_axi_pkg::axil_rsp_t axil_rsp_o,  // ready only with valid; answers stay until taken

  // One access
  output logic                      [3:0] window_o,  // address bits 11:8; stays until ack
  output npu_host_pkg::window_req_t       req_o,     // one access at a time, a cycle after ready
  input  npu_host_pkg::window_rsp_t       rsp_i      // ack once per access, at once or later
);

  localparam logic [1:0] RespOkay = 2'b00;
  localparam logic [1:0] RespSlverr = 2'b10;

  typedef enum logic [1:0] {
    StIdle,
    StAccess,
    StRespond
  } state_e;

  state_e state_q;
  logic write_q, last_write_q;
  logic valid_q;  // the first cycle of an access that is aligned
  logic aligned_q;
  logic [11:0] addr_q, addr;
  logic [31:0] wdata_q, rdata_q;
  logic [3:0] strb_q;
  logic can_write, can_read, take_write, ended;

  assign can_write          = axil_req_i.awvalid && axil_req_i.wvalid;
  assign can_read           = axil_req_i.arvalid;
  assign take_write         = can_write && !(can_read && last_write_q);
  assign addr               = take_write ? axil_req_i.awaddr : axil_req_i.araddr;

  assign axil_rsp_o.awready = state_q == StIdle && take_write;
  assign axil_rsp_o.wready  = state_q == StIdle && take_write;
  assign axil_rsp_o.arready = state_q == StIdle && can_read && !take_write;

  assign req_o.valid        = valid_q;
  assign req_o.write        = write_q;
  assign window_o           = addr_q[11:8];
  assign req_o.addr         = addr_q[7:0];
  assign req_o.wdata        = wdata_q;
  always_comb begin
    for (int unsigned b = 0; b < 4; b++) req_o.wmask[8*b+:8] = {8{strb_q[b]}};
  end

  assign ended             = state_q == StAccess && (rsp_i.ack || !aligned_q);

  assign axil_rsp_o.bvalid = write_q && (ended || state_q == StRespond);
  assign axil_rsp_o.rvalid = !write_q && state_q == StRespond;
  assign axil_rsp_o.bresp  = aligned_q ? RespOkay : RespSlverr;
  assign axil_rsp_o.rresp  = aligned_q ? RespOkay : RespSlverr;
  assign axil_rsp_o.rdata  = rdata_q;

  always_ff @(posedge clk_i) begin
    if (!rst_ni) begin
      state_q      <= StIdle;
      write_q      <= 1'b0;
      last_write_q <= 1'b0;
      valid_q      <= 1'b0;
      aligned_q    <= 1'b0;
      addr_q       <= '0;
      wdata_q      <= '0;
      rdata_q      <= '0;
      strb_q       <= '0;
    end else begin
      valid_q <= 1'b0;
      unique case (state_q)
        StIdle:
        if (can_write || can_read) begin
          write_q      <= take_write;
          last_write_q <= take_write;
          valid_q      <= addr[1:0] == '0;
          aligned_q    <= addr[1:0] == '0;
          addr_q       <= addr;
          wdata_q      <= axil_req_i.wdata;
          strb_q       <= axil_req_i.wstrb;
          state_q      <= StAccess;
        end
        StAccess: begin
          rdata_q <= rsp_i.rdata;
          if (ended) state_q <= (write_q && axil_req_i.bready) ? StIdle : StRespond;
        end
        StRespond: if (write_q ? axil_req_i.bready : axil_req_i.rready) state_q <= StIdle;
        default:   state_q <= StIdle;
      endcase
    end
  end

endmodule
