// SPDX-License-Identifier: Apache-2.0
//
// The parameter FIFO: filled with one 16-byte word per cycle from the bus, emptied four words at a
// time. The wide read side lets the array catch up on parameters that piled up while the attention
// of a layer ran. Four memories take the words in turn, so a read touches each of them once.

module npu_stream_fifo
  import npu_pkg::*;
#(
  parameter int unsigned Words = 2048  // capacity in words, a power of two of at least 256
) (
  input logic clk_i,   // clock
  input logic rst_ni,  // reset, active low
  input logic flush_i, // drops all words, and what is written in the same cycle

  input logic  wr_valid_i,  // a word; no refusal, so ask for no more than there is room for
  input word_t wr_data_i,   // the word, in the order of the stream

  // A line shows two cycles after its fourth word came, if the FIFO was empty.
  output logic  rd_valid_o,  // a whole line is there; stays until rd_ready_i or flush_i
  input  logic  rd_ready_i,  // taken; may depend on rd_valid_o
  output line_t rd_data_o    // stable while rd_valid_o; its first word in the lowest bits
);

  localparam int unsigned Lines = Words / 4;
  localparam int unsigned LineW = $clog2(Lines);

  if (Words < 256 || (Words & (Words - 1)) != 0) begin : gen_bad_size
    $fatal(1, "npu_stream_fifo: Words = %0d, must be a power of two of at least 256", Words);
  end

  logic [LineW+1:0] wr_q;  // word pointer
  logic [LineW-1:0] rd_q;  // line pointer
  logic [LineW:0] stored_q;  // whole lines in memory that are not yet in the output register
  logic out_valid_q;
  logic line_done, fetch;

  assign line_done  = wr_valid_i && wr_q[1:0] == 2'd3;
  assign fetch      = stored_q != '0 && (!out_valid_q || rd_ready_i);
  assign rd_valid_o = out_valid_q;

  for (genvar m = 0; m < 4; m++) begin : gen_memory
    npu_memory #(
      .DataT(word_t),
      .Rows (Lines)
    ) u_memory (
      .clk_i,
      .rd_en_i  (fetch),
      .rd_row_i (rd_q),
      .rd_data_o(rd_data_o[WordBits*m+:WordBits]),
      .wr_en_i  (wr_valid_i && wr_q[1:0] == 2'(m)),
      .wr_row_i (wr_q[LineW+1:2]),
      .wr_data_i(wr_data_i)
    );
  end

  always_ff @(posedge clk_i) begin
    if (!rst_ni) begin
      wr_q        <= '0;
      rd_q        <= '0;
      stored_q    <= '0;
      out_valid_q <= 1'b0;
    end else if (flush_i) begin
      wr_q        <= '0;
      rd_q        <= '0;
      stored_q    <= '0;
      out_valid_q <= 1'b0;
    end else begin
      if (wr_valid_i) wr_q <= wr_q + 1'b1;
      if (fetch) rd_q <= rd_q + 1'b1;
      if (line_done && !fetch) stored_q <= stored_q + 1'b1;
      if (fetch && !line_done) stored_q <= stored_q - 1'b1;
      if (fetch) out_valid_q <= 1'b1;
      else if (rd_ready_i) out_valid_q <= 1'b0;
    end
  end

`ifndef SYNTHESIS
  NoOverflow_A :
  assert property (@(posedge clk_i) disable iff (!rst_ni)
                   line_done && !fetch |-> stored_q < (LineW + 1)'(Lines))
  else $error("npu_stream_fifo: a line arrives that there is no room for");
  NotInWrite_A :
  assert property (@(posedge clk_i) disable iff (!rst_ni)
                   fetch && wr_valid_i |-> rd_q != wr_q[LineW+1:2])
  else $error("npu_stream_fifo: a line is read as it is written");
`endif

endmodule
