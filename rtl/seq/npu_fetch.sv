// SPDX-License-Identifier: Apache-2.0
//
// Microcode fetch: reads the program from memory ahead of its execution into a small queue and
// hands it out word by word with its index. After the last word it reports the end, so that a
// program without END is noticed.

module npu_fetch
  import npu_pkg::*;
#(
  parameter int unsigned QueueWords = 64
) (
  input logic clk_i,
  input logic rst_ni,

  input logic             start_i,
  input mem_addr_t        base_i,
  input logic      [31:0] length_i, // in words

  output logic       valid_o,
  input  logic       ready_i,
  output word_t      word_o,
  output instr_idx_t index_o,
  output logic       past_end_o, // everything has been handed out

  output mem_req_t rd_req_o,
  input  logic     rd_ready_i,
  input  logic     r_valid_i,
  input  word_t    r_data_i
);

  localparam int unsigned RoomW = $clog2(QueueWords + 1);
  localparam int unsigned FetchBurst = 16;

  logic active_q;
  mem_addr_t addr_q;
  logic [31:0] length_q, left_q;  // words of the program, words not yet asked for
  logic [RoomW-1:0] room_q;
  instr_idx_t index_q;
  logic [5:0] burst;
  logic issue, take, room;

  always_comb begin
    burst = burst_words(addr_q, left_q);
    if (burst > 6'(FetchBurst)) burst = 6'(FetchBurst);
  end

  // An error names the word that could not be read: npu_core derives it from the address.
  always_comb begin
    rd_req_o.valid = active_q && left_q != '0 && 32'(room_q) >= {26'b0, burst};
    rd_req_o.addr  = addr_q;
    rd_req_o.len   = {2'b0, burst} - 8'd1;
    rd_req_o.instr = '0;
  end

  assign issue      = rd_req_o.valid && rd_ready_i;
  assign take       = valid_o && ready_i;
  assign index_o    = index_q;
  assign past_end_o = active_q && index_q == length_q;

  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) begin
      active_q <= 1'b0;
      addr_q   <= '0;
      length_q <= '0;
      left_q   <= '0;
      room_q   <= RoomW'(QueueWords);
      index_q  <= '0;
    end else if (start_i) begin
      active_q <= 1'b1;
      addr_q   <= base_i;
      length_q <= length_i;
      left_q   <= length_i;
      index_q  <= '0;
    end else begin
      if (issue) begin
        addr_q <= addr_q + {22'b0, burst, 4'b0};
        left_q <= left_q - {26'b0, burst};
      end
      if (take) index_q <= index_q + 1'b1;
      room_q <= room_q - (issue ? RoomW'(burst) : '0) + RoomW'(take);
    end
  end

  npu_fifo #(
    .DataT(word_t),
    .Depth(QueueWords)
  ) u_queue (
    .clk_i,
    .rst_ni,
    .valid_i(r_valid_i),
    .ready_o(room),
    .data_i (r_data_i),
    .valid_o(valid_o),
    .ready_i(ready_i),
    .data_o (word_o),
    .count_o()
  );

`ifndef SYNTHESIS
  assert property (@(posedge clk_i) disable iff (!rst_ni) r_valid_i |-> room)
  else $error("npu_fetch: a word came for which there is no room");
`endif

endmodule
