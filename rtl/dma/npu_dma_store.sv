// SPDX-License-Identifier: Apache-2.0
//
// Store engine: copies rows from SRAM to memory. Bytes past the end of a row are masked by the
// write strobes. An instruction is done when memory has acknowledged all its bursts.

module npu_dma_store
  import npu_pkg::*;
(
  input logic clk_i,
  input logic rst_ni,

  input  logic       cmd_valid_i,
  output logic       cmd_ready_o,
  input  store_cmd_t cmd_i,
  output logic       done_o,
  output logic       busy_o,
  output logic       stall_o,
  output instr_idx_t instr_o,

  output sram_rd_req_t rd_req_o,
  input  logic         rd_ready_i,
  input  sram_rd_rsp_t rd_rsp_i,

  output mem_req_t   wr_req_o,
  input  logic       wr_ready_i,
  output mem_wdata_t w_o,
  input  logic       w_ready_i,
  input  logic       b_valid_i
);

  store_cmd_t cmd_q;
  logic busy_q;
  dim_t words;  // per row
  assign words = dim_t'((17'(cmd_q.bytes) + 17'd15) >> 4);

  logic accept;
  assign cmd_ready_o = !busy_q;
  assign accept      = cmd_valid_i && cmd_ready_o;
  assign busy_o      = busy_q;
  assign instr_o     = cmd_q.instr;

  // ---------------------------------------------------------------------------------------------
  // Bursts
  // ---------------------------------------------------------------------------------------------
  mem_addr_t row_addr_q, addr_q;
  dim_t aw_left_q, aw_rows_q;
  logic [15:0] unacked_q;
  logic [ 5:0] burst;
  logic issue, row_issued;

  assign burst = burst_words(addr_q, {16'b0, aw_left_q});

  always_comb begin
    wr_req_o.valid = busy_q && aw_rows_q != '0;
    wr_req_o.addr  = addr_q;
    wr_req_o.len   = {2'b0, burst} - 8'd1;
    wr_req_o.instr = cmd_q.instr;
  end

  assign issue      = wr_req_o.valid && wr_ready_i;
  assign row_issued = issue && aw_left_q == {10'b0, burst};

  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) begin
      busy_q     <= 1'b0;
      cmd_q      <= '0;
      row_addr_q <= '0;
      addr_q     <= '0;
      aw_left_q  <= '0;
      aw_rows_q  <= '0;
      unacked_q  <= '0;
    end else begin
      if (accept) begin
        busy_q     <= 1'b1;
        cmd_q      <= cmd_i;
        row_addr_q <= cmd_i.mem;
        addr_q     <= cmd_i.mem;
        aw_left_q  <= dim_t'((17'(cmd_i.bytes) + 17'd15) >> 4);
        aw_rows_q  <= cmd_i.rows;
      end else if (done_o) begin
        busy_q <= 1'b0;
      end else if (row_issued) begin
        row_addr_q <= row_addr_q + cmd_q.mem_pitch;
        addr_q     <= row_addr_q + cmd_q.mem_pitch;
        aw_left_q  <= words;
        aw_rows_q  <= aw_rows_q - 1'b1;
      end else if (issue) begin
        addr_q    <= addr_q + {22'b0, burst, 4'b0};
        aw_left_q <= aw_left_q - {10'b0, burst};
      end
      unacked_q <= unacked_q + {15'b0, issue} - {15'b0, b_valid_i};
    end
  end

  assign done_o = busy_q && !accept && aw_rows_q == '0 && unacked_q == '0;

  // ---------------------------------------------------------------------------------------------
  // Words: addresses go to the SRAM reader, data comes back in the same order
  // ---------------------------------------------------------------------------------------------
  sram_addr_t rd_row_q;
  dim_t rd_word_q, rd_rows_q, w_word_q;
  logic rd_ready, rd_last, w_last;
  logic [3:0] tail;

  assign rd_last = rd_word_q + 1'b1 == words;
  assign w_last  = w_word_q + 1'b1 == words;
  assign tail    = cmd_q.bytes[3:0];

  npu_sram_reader u_reader (
    .clk_i,
    .rst_ni,
    .addr_valid_i(busy_q && rd_rows_q != '0),
    .addr_ready_o(rd_ready),
    .addr_i      (rd_row_q + rd_word_q),
    .data_valid_o(w_o.valid),
    .data_ready_i(w_ready_i),
    .data_o      (w_o.data),
    .rd_req_o,
    .rd_ready_i,
    .rd_rsp_i
  );

  assign w_o.strb = (w_last && tail != '0) ? (16'd1 << tail) - 16'd1 : '1;
  assign stall_o  = busy_q && !(w_o.valid && w_ready_i);

  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) begin
      rd_row_q  <= '0;
      rd_word_q <= '0;
      rd_rows_q <= '0;
      w_word_q  <= '0;
    end else begin
      if (accept) begin
        rd_row_q  <= cmd_i.sram;
        rd_word_q <= '0;
        rd_rows_q <= cmd_i.rows;
      end else if (rd_req_o.valid && rd_ready) begin
        rd_word_q <= rd_last ? '0 : rd_word_q + 1'b1;
        if (rd_last) begin
          rd_row_q  <= rd_row_q + cmd_q.sram_pitch;
          rd_rows_q <= rd_rows_q - 1'b1;
        end
      end
      if (w_o.valid && w_ready_i) w_word_q <= w_last ? '0 : w_word_q + 1'b1;
    end
  end

endmodule
