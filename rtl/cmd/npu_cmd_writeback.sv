// SPDX-License-Identifier: Apache-2.0
//
// Writes a result to memory: rows of 32-bit words from the scratchpad one after the other without
// gaps, or RESULT and RESULT_HI. It gathers a word per cycle and sends 16-byte words with strobes.
// All responses are awaited, also after one that tells an error.

module npu_cmd_writeback
  import npu_pkg::*;
#(
  parameter int unsigned ScratchBytes = 64,  // bytes of the scratchpad: 64, 128 or 256
  localparam int unsigned AddrW = $clog2(ScratchBytes / 4)  // width of a 32-bit word address
) (
  input logic clk_i,  // clock
  input logic rst_ni, // reset, active low

  input  logic                             active_i,     // a level until end_o or dropped
  input  npu_cmd_pkg::writeback_t          writeback_i,  // what to write; stable with active_i
  input  npu_cmd_pkg::unit_status_t        unit_i,       // RESULT, RESULT_HI; stable with active_i
  output npu_cmd_pkg::step_end_t           end_o,        // pulse; every word is answered
  output logic                      [13:0] words_o,      // 32-bit words written, with end_o.done

  output logic [AddrW-1:0] scratch_raddr_o,  // 32-bit word to read
  input  logic [     31:0] scratch_rdata_i,  // in the same cycle

  // Memory
  output npu_cmd_pkg::write_req_t write_o,  // stable until ready, an error or the end of active_i
  input  npu_cmd_pkg::write_rsp_t write_i   // one response per word
);

  logic [7:0] row_q, column_q;
  logic [AddrW-1:0] row_start_q, raddr;
  logic [13:0] words_q;
  logic gathered_q;  // the last word is in the register
  logic bad_q;
  logic [4:0] unanswered_q;

  // The 16-byte word in preparation
  logic full_q;
  logic [27:0] beat_q;
  word_t data_q;
  logic [3:0] lanes_q;

  logic begun_q, gather, last_column, last, sent, answered;
  logic [ 1:0] lane;
  logic [31:0] word;

  assign lane            = writeback_i.dest[3:2] + words_q[1:0];
  assign last_column     = column_q == writeback_i.columns - 8'd1;
  assign last            = last_column && row_q == writeback_i.rows - 8'd1;
  assign gather          = begun_q && !gathered_q && !full_q && !bad_q;
  assign raddr           = row_start_q + AddrW'(column_q);
  assign scratch_raddr_o = raddr;

  always_comb begin
    word = scratch_rdata_i;
    if (writeback_i.scalar) word = column_q[0] ? unit_i.result_hi : unit_i.result;
  end

  assign write_o.valid = active_i && full_q && !bad_q;
  assign write_o.addr  = {beat_q, 4'b0};
  assign write_o.data  = data_q;
  always_comb begin
    for (int unsigned i = 0; i < 4; i++) write_o.strb[4*i+:4] = {4{lanes_q[i]}};
  end

  assign sent         = write_o.valid && write_i.ready;
  assign answered     = unanswered_q == '0;
  assign end_o.done   = begun_q && gathered_q && !full_q && answered && !bad_q;
  assign end_o.failed = begun_q && bad_q && answered;
  assign words_o      = words_q;

  always_ff @(posedge clk_i) begin
    if (!rst_ni) begin
      begun_q      <= 1'b0;
      row_q        <= '0;
      column_q     <= '0;
      row_start_q  <= '0;
      words_q      <= '0;
      gathered_q   <= 1'b0;
      bad_q        <= 1'b0;
      unanswered_q <= '0;
      full_q       <= 1'b0;
      beat_q       <= '0;
      data_q       <= '0;
      lanes_q      <= '0;
    end else if (!active_i || end_o.done || end_o.failed) begin
      begun_q      <= 1'b0;
      unanswered_q <= '0;
    end else if (!begun_q) begin
      begun_q     <= 1'b1;
      row_q       <= '0;
      column_q    <= '0;
      row_start_q <= AddrW'(writeback_i.first);
      words_q     <= '0;
      gathered_q  <= 1'b0;
      bad_q       <= 1'b0;
      full_q      <= 1'b0;
      beat_q      <= writeback_i.dest[31:4];
      lanes_q     <= '0;
    end else begin
      if (gather) begin
        data_q[32*lane+:32] <= word;
        lanes_q[lane]       <= 1'b1;
        words_q             <= words_q + 1'b1;
        column_q            <= last_column ? '0 : column_q + 1'b1;
        if (last_column) begin
          row_q       <= row_q + 1'b1;
          row_start_q <= row_start_q + AddrW'(writeback_i.stride);
        end
        gathered_q <= last;
        full_q     <= last || lane == 2'd3;
      end
      if (sent) begin
        full_q  <= 1'b0;
        lanes_q <= '0;
        beat_q  <= beat_q + 1'b1;
      end
      unanswered_q <= unanswered_q + 5'(sent) - 5'(write_i.valid) - 5'(write_i.denied);
      if (write_i.denied || (write_i.valid && write_i.error)) bad_q <= 1'b1;
    end
  end

`ifndef SYNTHESIS
  ResponseAwaited_A :
  assert property (@(posedge clk_i) disable iff (!rst_ni)
                   begun_q && write_i.valid |-> unanswered_q != '0)
  else $error("npu_cmd_writeback: a response that is not awaited");
`endif

endmodule
