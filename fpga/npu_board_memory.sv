// SPDX-License-Identifier: Apache-2.0
//
// The memory of a board in block RAM, from address 0 on: an AXI slave for the chip, and a port for
// the bridge, which goes first. A word is read and a word is written in each cycle, bursts one after
// the other; reads wait while their word is written. What lies behind the end is answered with an
// error: reads are zero, writes are dropped.

module npu_board_memory
  import npu_pkg::*;
#(
  parameter int unsigned KiB = 128  // size, a power of two from 4 to 1024
) (
  input logic clk_i,  // clock
  input logic rst_ni, // reset, active low

  // Chip; takes answers at once
  input  npu_axi_pkg::axi_req_t axi_req_i,
  output npu_axi_pkg::axi_rsp_t axi_rsp_o,

  // Bridge
  input  npu_board_pkg::word_req_t word_req_i,
  output npu_board_pkg::word_rsp_t word_rsp_o
);

  if (KiB < 4 || KiB > 1024 || (KiB & (KiB - 1)) != 0) begin : gen_bad_size
    $fatal(1, "npu_board_memory: KiB = %0d, must be a power of two from 4 to 1024", KiB);
  end

  localparam int unsigned Rows = KiB * 1024 / WordBytes;
  localparam int unsigned RowW = $clog2(Rows);
  localparam logic [1:0] RespOkay = 2'b00;
  localparam logic [1:0] RespSlverr = 2'b10;

  typedef logic [RowW-1:0] row_t;

  // A burst, or what is left of it
  typedef struct packed {
    logic       valid;
    logic [3:0] id;
    logic       error;  // it lies behind the end
    row_t       row;    // of its next beat
    logic [7:0] left;   // beats behind that one
  } burst_t;

  // What becomes of a read
  typedef struct packed {
    logic       valid;       // a beat of the chip
    logic [3:0] id;
    logic       error;
    logic       last;
    logic       word;        // an access of the bridge; a write too, of which no row is read
    logic       word_error;
  } read_t;

  function automatic row_t row_of(mem_addr_t addr);
    return row_t'(addr / WordBytes);
  endfunction

  function automatic logic outside(mem_addr_t addr);
    return addr >= mem_addr_t'(Rows * WordBytes);
  endfunction

  // ---------------------------------------------------------------------------------------------
  // Who reads and who writes in this cycle
  // ---------------------------------------------------------------------------------------------
  burst_t rd_q, wr_q;
  logic word_read, word_write, word_take, chip_read, chip_write;
  logic rd_taken, wr_taken, wr_last;
  row_t rd_row, wr_row;
  logic rd_en;
  logic [WordBytes-1:0] wr_en;
  word_t wr_data, rd_data;
  logic same;

  assign word_write = word_req_i.valid && word_req_i.write;
  assign word_read  = word_req_i.valid && !word_req_i.write;
  assign word_take  = word_write || (word_read && !same);
  assign chip_write = wr_q.valid && axi_req_i.wr.wvalid && !word_write;
  assign chip_read  = rd_q.valid && !word_read && !same;

  assign rd_row     = word_read ? row_of(word_req_i.addr) : rd_q.row;
  assign wr_row     = word_write ? row_of(word_req_i.addr) : wr_q.row;
  assign wr_data    = word_write ? word_req_i.wdata : axi_req_i.wr.wdata;
  assign same       = wr_en != '0 && wr_row == rd_row;
  assign rd_en      = (word_read || rd_q.valid) && !same;
  always_comb begin
    wr_en = '0;
    if (word_write) wr_en = outside(word_req_i.addr) ? '0 : '1;
    else if (chip_write && !wr_q.error) wr_en = axi_req_i.wr.wstrb;
  end

  for (genvar b = 0; b < WordBytes; b++) begin : gen_lane
    npu_memory #(
      .DataT(logic [7:0]),
      .Rows (Rows)
    ) u_memory (
      .clk_i,
      .rd_en_i  (rd_en),
      .rd_row_i (rd_row),
      .rd_data_o(rd_data[8*b+:8]),
      .wr_en_i  (wr_en[b]),
      .wr_row_i (wr_row),
      .wr_data_i(wr_data[8*b+:8])
    );
  end

  // ---------------------------------------------------------------------------------------------
  // Bursts
  // ---------------------------------------------------------------------------------------------
  assign rd_taken = axi_req_i.rd.arvalid && axi_rsp_o.rd.arready;
  assign wr_taken = axi_req_i.wr.awvalid && axi_rsp_o.wr.awready;
  assign wr_last  = chip_write && wr_q.left == '0;

  always_ff @(posedge clk_i) begin
    if (!rst_ni) begin
      rd_q <= '0;
      wr_q <= '0;
    end else begin
      if (chip_read) begin
        rd_q.valid <= rd_q.left != '0;
        rd_q.row   <= rd_q.row + 1'b1;
        rd_q.left  <= rd_q.left - 1'b1;
      end
      if (rd_taken)
        rd_q <= '{
            valid: 1'b1,
            id: axi_req_i.rd.arid,
            error: outside(axi_req_i.rd.araddr),
            row: row_of(axi_req_i.rd.araddr),
            left: axi_req_i.rd.arlen
        };
      if (chip_write) begin
        wr_q.valid <= wr_q.left != '0;
        wr_q.row   <= wr_q.row + 1'b1;
        wr_q.left  <= wr_q.left - 1'b1;
      end
      if (wr_taken)
        wr_q <= '{
            valid: 1'b1,
            id: axi_req_i.wr.awid,
            error: outside(axi_req_i.wr.awaddr),
            row: row_of(axi_req_i.wr.awaddr),
            left: axi_req_i.wr.awlen
        };
    end
  end

  // ---------------------------------------------------------------------------------------------
  // Answers: what is read goes into a register first, because block RAM is slow
  // ---------------------------------------------------------------------------------------------
  read_t read_d, read_q, answer_q;
  word_t answer_data_q;
  logic done_q;
  logic [3:0] done_id_q;
  logic done_error_q;

  always_comb begin
    read_d = '0;
    if (word_take) begin
      read_d.word       = 1'b1;
      read_d.word_error = outside(word_req_i.addr);
    end
    if (chip_read) begin
      read_d.valid = 1'b1;
      read_d.id    = rd_q.id;
      read_d.error = rd_q.error;
      read_d.last  = rd_q.left == '0;
    end
  end

  always_ff @(posedge clk_i) begin
    if (!rst_ni) begin
      read_q   <= '0;
      answer_q <= '0;
      done_q   <= 1'b0;
    end else begin
      read_q   <= read_d;
      answer_q <= read_q;
      done_q   <= wr_last;
    end
    answer_data_q <= (read_q.error || read_q.word_error) ? '0 : rd_data;
    done_id_q     <= wr_q.id;
    done_error_q  <= wr_q.error;
  end

  assign axi_rsp_o.rd.arready = !rd_q.valid || (chip_read && rd_q.left == '0);
  assign axi_rsp_o.rd.rvalid  = answer_q.valid;
  assign axi_rsp_o.rd.rid     = answer_q.id;
  assign axi_rsp_o.rd.rdata   = answer_data_q;
  assign axi_rsp_o.rd.rresp   = answer_q.error ? RespSlverr : RespOkay;
  assign axi_rsp_o.rd.rlast   = answer_q.last;
  assign axi_rsp_o.wr.awready = !wr_q.valid || wr_last;
  assign axi_rsp_o.wr.wready  = wr_q.valid && !word_write;
  assign axi_rsp_o.wr.bvalid  = done_q;
  assign axi_rsp_o.wr.bid     = done_id_q;
  assign axi_rsp_o.wr.bresp   = done_error_q ? RespSlverr : RespOkay;

  assign word_rsp_o.ready     = word_take;
  assign word_rsp_o.ack       = answer_q.word;
  assign word_rsp_o.error     = answer_q.word_error;
  assign word_rsp_o.rdata     = answer_data_q;

`ifndef SYNTHESIS
  TakenAtOnce_A :
  assert property (@(posedge clk_i) disable iff (!rst_ni)
                   axi_req_i.rd.rready && axi_req_i.wr.bready)
  else $error("npu_board_memory: answers are not taken at once");
  LastBeat_A :
  assert property (@(posedge clk_i) disable iff (!rst_ni)
                   chip_write |-> axi_req_i.wr.wlast == (wr_q.left == '0))
  else $error("npu_board_memory: wlast is not with the last beat of its burst");
  ReadNotWritten_A :
  assert property (@(posedge clk_i) disable iff (!rst_ni) rd_en |-> wr_en == '0 || wr_row != rd_row)
  else $error("npu_board_memory: a word is read while it is written");
`endif

endmodule
