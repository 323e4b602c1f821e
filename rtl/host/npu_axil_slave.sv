// SPDX-License-Identifier: Apache-2.0
//
// AXI4-Lite slave of the register space: one access at a time, reads and writes in turn. Accesses
// that are not aligned to four bytes are answered with SLVERR and reach no register.

module npu_axil_slave (
  input logic clk_i,
  input logic rst_ni,

  input  logic        s_axil_awvalid_i,
  output logic        s_axil_awready_o,
  input  logic [11:0] s_axil_awaddr_i,
  input  logic        s_axil_wvalid_i,
  output logic        s_axil_wready_o,
  input  logic [31:0] s_axil_wdata_i,
  input  logic [ 3:0] s_axil_wstrb_i,
  output logic        s_axil_bvalid_o,
  input  logic        s_axil_bready_i,
  output logic [ 1:0] s_axil_bresp_o,
  input  logic        s_axil_arvalid_i,
  output logic        s_axil_arready_o,
  input  logic [11:0] s_axil_araddr_i,
  output logic        s_axil_rvalid_o,
  input  logic        s_axil_rready_i,
  output logic [31:0] s_axil_rdata_o,
  output logic [ 1:0] s_axil_rresp_o,

  // One access: a pulse, answered by an acknowledge in the same cycle or later
  output logic        req_o,
  output logic        req_write_o,
  output logic [11:0] req_addr_o,
  output logic [31:0] req_wdata_o,
  output logic [31:0] req_wmask_o,
  input  logic        ack_i,
  input  logic [31:0] rdata_i
);

  localparam logic [1:0] RespOkay = 2'b00;
  localparam logic [1:0] RespSlverr = 2'b10;

  typedef enum logic [1:0] {
    StIdle,
    StRequest,
    StWait,
    StRespond
  } state_e;

  state_e state_q;
  logic write_q, last_write_q;
  logic [11:0] addr_q;
  logic [31:0] data_q;
  logic [ 3:0] strb_q;
  logic [ 1:0] resp_q;
  logic can_write, can_read, take_write, aligned;

  assign can_write        = s_axil_awvalid_i && s_axil_wvalid_i;
  assign can_read         = s_axil_arvalid_i;
  assign take_write       = can_write && !(can_read && last_write_q);
  assign aligned          = addr_q[1:0] == 2'b00;

  assign s_axil_awready_o = state_q == StIdle && take_write;
  assign s_axil_wready_o  = state_q == StIdle && take_write;
  assign s_axil_arready_o = state_q == StIdle && can_read && !take_write;

  assign req_o            = state_q == StRequest && aligned;
  assign req_write_o      = write_q;
  assign req_addr_o       = addr_q;
  assign req_wdata_o      = data_q;
  always_comb begin
    for (int unsigned b = 0; b < 4; b++) req_wmask_o[8*b+:8] = {8{strb_q[b]}};
  end

  assign s_axil_bvalid_o = state_q == StRespond && write_q;
  assign s_axil_rvalid_o = state_q == StRespond && !write_q;
  assign s_axil_bresp_o  = resp_q;
  assign s_axil_rresp_o  = resp_q;
  assign s_axil_rdata_o  = data_q;

  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) begin
      state_q      <= StIdle;
      write_q      <= 1'b0;
      last_write_q <= 1'b0;
      addr_q       <= '0;
      data_q       <= '0;
      strb_q       <= '0;
      resp_q       <= RespOkay;
    end else begin
      unique case (state_q)
        StIdle:
        if (can_write || can_read) begin
          write_q      <= take_write;
          last_write_q <= take_write;
          addr_q       <= take_write ? s_axil_awaddr_i : s_axil_araddr_i;
          data_q       <= s_axil_wdata_i;
          strb_q       <= s_axil_wstrb_i;
          state_q      <= StRequest;
        end
        StRequest, StWait: begin
          state_q <= StWait;
          resp_q  <= aligned ? RespOkay : RespSlverr;
          if (ack_i || !aligned) begin
            data_q  <= (aligned && !write_q) ? rdata_i : '0;
            state_q <= StRespond;
          end
        end
        StRespond: if (write_q ? s_axil_bready_i : s_axil_rready_i) state_q <= StIdle;
        default:   state_q <= StIdle;
      endcase
    end
  end

endmodule
