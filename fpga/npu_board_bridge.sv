// SPDX-License-Identifier: Apache-2.0
//
// Bridge from bytes to the chip's registers and to memory. A request is six bytes: what is wanted
// (npu_board_pkg::op_e), how many words of memory less one, and a byte address, lowest byte first;
// then the data of a write. Its answer is the data of a read and a status byte. A register has four
// bytes, a word of memory 16, lowest first. Behind IdleCycles without a byte a request that is not
// whole is forgotten, so that a host that was stopped can begin again.

module npu_board_bridge
  import npu_pkg::*;
  import npu_board_pkg::*;
#(
  parameter int unsigned IdleCycles = 1 << 23  // cycles, at least 1024
) (
  input logic clk_i,  // clock
  input logic rst_ni, // reset, active low

  input  logic       rx_valid_i,  // a byte; stays until ready
  output logic       rx_ready_o,  // takes it; may depend on valid
  input  logic [7:0] rx_data_i,   // the byte, with valid
  output logic       tx_valid_o,  // a byte; stays until ready, data stable
  input  logic       tx_ready_i,  // takes it
  output logic [7:0] tx_data_o,   // the byte, with valid

  output npu_axi_pkg::axil_req_t axil_req_o,  // registers
  input  npu_axi_pkg::axil_rsp_t axil_rsp_i,
  output word_req_t              word_req_o,  // memory
  input  word_rsp_t              word_rsp_i,
  input  logic                   irq_i        // a level: the chip's interrupt
);

  if (IdleCycles < 1024) begin : gen_bad_idle
    $fatal(1, "npu_board_bridge: IdleCycles = %0d, must be at least 1024", IdleCycles);
  end

  localparam int unsigned IdleW = $clog2(IdleCycles);
  localparam int unsigned RegBytes = 4;
  localparam int unsigned ByteW = $clog2(WordBytes);
  localparam logic [ByteW-1:0] HeadLast = ByteW'(5);

  typedef enum logic [2:0] {
    StHead,   // bytes of a request
    StData,   // bytes of a word or register to write
    StAsk,    // an access, until it is taken
    StWait,   // until it is made
    StReply,  // bytes of a word or register that was read
    StStatus  // the last byte of the answer
  } state_e;

  // The bytes of a request in their order
  typedef struct packed {
    logic [31:0] addr;
    logic [7:0]  count;  // words of memory less one
    logic [7:0]  op;
  } head_t;

  state_e state_q;
  head_t head_q;
  logic [ByteW-1:0] byte_q;  // of request, word or register
  word_t data_q;  // the next byte to send is the lowest one, the last byte received the highest
  logic error_q;
  logic [IdleW-1:0] idle_q;
  logic stopped;  // the host has been silent in the middle of a request

  op_e op;
  logic is_register, is_read, is_write, last_byte, last_word;
  logic rx, asked, made;
  logic axil_error;

  assign op          = op_e'(head_q.op);
  assign is_register = op inside {OpReadReg, OpWriteReg};
  assign is_write    = op inside {OpWriteReg, OpWriteMemory};
  assign is_read     = op inside {OpReadReg, OpReadMemory};
  assign last_byte   = byte_q == (is_register ? ByteW'(RegBytes - 1) : ByteW'(WordBytes - 1));
  assign last_word   = is_register || head_q.count == '0;

  assign rx_ready_o  = state_q inside {StHead, StData};
  assign rx          = rx_valid_i && rx_ready_o;
  assign stopped     = idle_q == IdleW'(IdleCycles - 1);

  // ---------------------------------------------------------------------------------------------
  // Accesses
  // ---------------------------------------------------------------------------------------------
  always_comb begin
    axil_req_o         = '0;
    axil_req_o.awvalid = state_q == StAsk && op == OpWriteReg;
    axil_req_o.wvalid  = state_q == StAsk && op == OpWriteReg;
    axil_req_o.arvalid = state_q == StAsk && op == OpReadReg;
    axil_req_o.awaddr  = head_q.addr[11:0];
    axil_req_o.araddr  = head_q.addr[11:0];
    axil_req_o.wdata   = data_q[WordBits-1-:32];
    axil_req_o.wstrb   = '1;
    axil_req_o.bready  = 1'b1;
    axil_req_o.rready  = 1'b1;
  end

  assign word_req_o.valid = state_q == StAsk && !is_register;
  assign word_req_o.write = is_write;
  assign word_req_o.addr  = {head_q.addr[31:4], 4'd0};
  assign word_req_o.wdata = data_q;

  always_comb begin
    unique case (op)
      OpWriteReg: begin
        asked = axil_rsp_i.awready && axil_rsp_i.wready;
        made  = axil_rsp_i.bvalid;
      end
      OpReadReg: begin
        asked = axil_rsp_i.arready;
        made  = axil_rsp_i.rvalid;
      end
      default: begin
        asked = word_rsp_i.ready;
        made  = word_rsp_i.ack;
      end
    endcase
    axil_error = is_write ? axil_rsp_i.bresp[1] : axil_rsp_i.rresp[1];
  end

  // ---------------------------------------------------------------------------------------------
  // Requests and answers
  // ---------------------------------------------------------------------------------------------
  always_ff @(posedge clk_i) begin
    if (!rst_ni) begin
      state_q <= StHead;
      head_q  <= '0;
      byte_q  <= '0;
      data_q  <= '0;
      error_q <= 1'b0;
      idle_q  <= '0;
    end else begin
      idle_q <= (rx || !rx_ready_o || stopped) ? '0 : idle_q + 1'b1;
      unique case (state_q)
        StHead: begin
          if (stopped) byte_q <= '0;
          if (rx) begin
            head_q  <= {rx_data_i, head_q[$bits(head_t)-1:8]};
            error_q <= 1'b0;
            byte_q  <= byte_q + 1'b1;
            if (byte_q == HeadLast) begin
              byte_q <= '0;
              unique case (op_e'(head_q[15:8]))
                OpReadReg, OpReadMemory:   state_q <= StAsk;
                OpWriteReg, OpWriteMemory: state_q <= StData;
                default: begin
                  error_q <= op_e'(head_q[15:8]) != OpState;
                  state_q <= StStatus;
                end
              endcase
            end
          end
        end
        StData: begin
          if (stopped) begin
            byte_q  <= '0;
            state_q <= StHead;
          end
          if (rx) begin
            data_q <= {rx_data_i, data_q[WordBits-1:8]};
            byte_q <= byte_q + 1'b1;
            if (last_byte) begin
              byte_q  <= '0;
              state_q <= StAsk;
            end
          end
        end
        StAsk:    if (asked) state_q <= StWait;
        StWait:
        if (made) begin
          error_q <= error_q || (is_register ? axil_error : word_rsp_i.error);
          data_q  <= is_register ? word_t'(axil_rsp_i.rdata) : word_rsp_i.rdata;
          if (is_read) state_q <= StReply;
          else state_q <= last_word ? StStatus : StData;
          if (is_write) begin
            head_q.addr  <= head_q.addr + WordBytes;
            head_q.count <= head_q.count - 1'b1;
          end
        end
        StReply:
        if (tx_ready_i) begin
          data_q <= {8'd0, data_q[WordBits-1:8]};
          byte_q <= byte_q + 1'b1;
          if (last_byte) begin
            byte_q       <= '0;
            state_q      <= last_word ? StStatus : StAsk;
            head_q.addr  <= head_q.addr + WordBytes;
            head_q.count <= head_q.count - 1'b1;
          end
        end
        StStatus: if (tx_ready_i) state_q <= StHead;
        default:  state_q <= StHead;
      endcase
    end
  end

  status_t status;

  assign status     = '{mark: StatusMark, irq: irq_i, error: error_q};
  assign tx_valid_o = state_q inside {StReply, StStatus};
  assign tx_data_o  = (state_q == StReply) ? data_q[7:0] : status;

endmodule
