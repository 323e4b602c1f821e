// SPDX-License-Identifier: Apache-2.0
//
// Load engine: copies rows from memory to SRAM. One side walks the rows and asks for bursts, for
// which it has reserved room in the data queue; the other walks the same rows in SRAM and writes
// what arrives, with the bytes past the end of a row as zero. The asking side runs on into the next
// instructions while the data of older ones is still coming in: as many as hide the latency of a
// memory behind rows of 256 bytes.

module npu_dma_load
  import npu_pkg::*;
#(
  parameter int unsigned QueueWords = 128
) (
  input logic clk_i,
  input logic rst_ni,

  input  logic       cmd_valid_i,
  output logic       cmd_ready_o,
  input  load_cmd_t  cmd_i,
  output logic       done_o,
  output logic       busy_o,
  output logic       stall_o,
  output instr_idx_t instr_o,
  output fault_t     fault_o,      // a row of a list lies outside the address space: a level

  output mem_req_t rd_req_o,
  input  logic     rd_ready_i,
  input  logic     r_valid_i,
  input  word_t    r_data_i,

  output sram_wr_req_t wr_req_o,
  input  logic         wr_ready_i
);

  assign fault_o = '0;

  localparam int unsigned RoomW = $clog2(QueueWords + 1);

  function automatic dim_t row_words(dim_t bytes);
    return dim_t'((17'(bytes) + 17'd15) >> 4);
  endfunction

  // ---------------------------------------------------------------------------------------------
  // Asking side
  // ---------------------------------------------------------------------------------------------
  logic ask_q;  // a command is being asked for
  instr_idx_t ask_instr_q;
  mem_addr_t row_addr_q, addr_q;
  logic [31:0] mem_pitch_q;
  dim_t ask_words_q, ask_left_q, ask_rows_q;
  logic [RoomW-1:0] room_q;
  logic [5:0] burst;
  logic issue, row_asked, write_accept, take, queue_valid, room;
  word_t queue_data;

  assign burst = burst_words(addr_q, {16'b0, ask_left_q});

  always_comb begin
    rd_req_o.valid = ask_q && 32'(room_q) >= {26'b0, burst};
    rd_req_o.addr  = addr_q;
    rd_req_o.len   = {2'b0, burst} - 8'd1;
    rd_req_o.instr = ask_instr_q;
  end

  assign issue       = rd_req_o.valid && rd_ready_i;
  assign row_asked   = issue && ask_left_q == {10'b0, burst};
  assign cmd_ready_o = !ask_q && write_accept;

  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) begin
      ask_q       <= 1'b0;
      ask_instr_q <= '0;
      row_addr_q  <= '0;
      addr_q      <= '0;
      mem_pitch_q <= '0;
      ask_words_q <= '0;
      ask_left_q  <= '0;
      ask_rows_q  <= '0;
      room_q      <= RoomW'(QueueWords);
    end else begin
      if (cmd_valid_i && cmd_ready_o) begin
        ask_q       <= 1'b1;
        ask_instr_q <= cmd_i.instr;
        row_addr_q  <= cmd_i.mem;
        addr_q      <= cmd_i.mem;
        mem_pitch_q <= cmd_i.mem_pitch;
        ask_words_q <= row_words(cmd_i.bytes);
        ask_left_q  <= row_words(cmd_i.bytes);
        ask_rows_q  <= cmd_i.rows;
      end else if (row_asked) begin
        row_addr_q <= row_addr_q + mem_pitch_q;
        addr_q     <= row_addr_q + mem_pitch_q;
        ask_left_q <= ask_words_q;
        ask_rows_q <= ask_rows_q - 1'b1;
        ask_q      <= ask_rows_q != dim_t'(1);
      end else if (issue) begin
        addr_q     <= addr_q + {22'b0, burst, 4'b0};
        ask_left_q <= ask_left_q - {10'b0, burst};
      end
      room_q <= room_q - (issue ? RoomW'(burst) : '0) + RoomW'(take);
    end
  end

  npu_fifo #(
    .DataT(word_t),
    .Depth(QueueWords)
  ) u_data (
    .clk_i,
    .rst_ni,
    .valid_i(r_valid_i),
    .ready_o(room),
    .data_i (r_data_i),
    .valid_o(queue_valid),
    .ready_i(take),
    .data_o (queue_data),
    .count_o()
  );

  // ---------------------------------------------------------------------------------------------
  // Writing side
  // ---------------------------------------------------------------------------------------------
  load_cmd_t wr_cmd;
  logic wr_cmd_valid;
  sram_addr_t row_q;  // SRAM address of the current row
  dim_t word_q, rows_done_q;
  logic [4:0] tail;  // bytes of a row's last word
  logic row_last, cmd_last;
  word_t mask;

  npu_fifo #(
    .DataT(load_cmd_t),
    .Depth(8)
  ) u_wr_cmd (
    .clk_i,
    .rst_ni,
    .valid_i(cmd_valid_i && cmd_ready_o),
    .ready_o(write_accept),
    .data_i (cmd_i),
    .valid_o(wr_cmd_valid),
    .ready_i(done_o),
    .data_o (wr_cmd),
    .count_o()
  );

  assign row_last       = word_q + 1'b1 == row_words(wr_cmd.bytes);
  assign cmd_last       = row_last && rows_done_q + 1'b1 == wr_cmd.rows;
  assign tail           = (wr_cmd.bytes[3:0] == '0) ? 5'd16 : {1'b0, wr_cmd.bytes[3:0]};
  assign mask           = (row_last && tail != 5'd16) ? (word_t'(1) << {tail, 3'b0}) - 1'b1 : '1;

  assign wr_req_o.valid = wr_cmd_valid && queue_valid;
  assign wr_req_o.addr  = wr_cmd.sram + row_q + word_q;
  assign wr_req_o.data  = queue_data & mask;
  assign wr_req_o.instr = wr_cmd.instr;
  assign take           = wr_req_o.valid && wr_ready_i;
  assign done_o         = take && cmd_last;
  assign busy_o         = wr_cmd_valid;
  assign stall_o        = wr_cmd_valid && !take;
  assign instr_o        = wr_cmd.instr;

  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) begin
      row_q       <= '0;
      word_q      <= '0;
      rows_done_q <= '0;
    end else if (done_o) begin
      row_q       <= '0;
      word_q      <= '0;
      rows_done_q <= '0;
    end else if (take && row_last) begin
      row_q       <= row_q + wr_cmd.sram_pitch;
      word_q      <= '0;
      rows_done_q <= rows_done_q + 1'b1;
    end else if (take) begin
      word_q <= word_q + 1'b1;
    end
  end

`ifndef SYNTHESIS
  assert property (@(posedge clk_i) disable iff (!rst_ni) r_valid_i |-> room)
  else $error("npu_dma_load: a word came for which there is no room");
`endif

endmodule
