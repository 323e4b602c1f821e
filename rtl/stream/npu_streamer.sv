// SPDX-License-Identifier: Apache-2.0
//
// The parameter streamer reads the packed parameters of a program from memory, in the order in
// which the engines consume them, as far ahead as the FIFO has room and without regard to what the
// program is doing. Each instruction that takes a share of the stream draws a ticket when it is
// dispatched; shares are handed out in ticket order, or dropped. A seek moves the stream to another
// offset. While turns of a loop are left, the end of the stream is followed by its start, so that a
// loop finds the first shares of its next turn here. A limit on the bursts under way
// (npu_stream_limit) keeps the queue in the memory short, for the sake of loads, which would have to
// wait behind them.

module npu_streamer
  import npu_pkg::*;
  import npu_mem_pkg::*;
  import npu_stream_pkg::*;
#(
  // Words that are read ahead at most, a power of two of at least 256
  parameter int unsigned FifoWords = 2048
) (
  input logic clk_i,  // clock
  input logic rst_ni, // reset, active low

  // Start of a program: stream image (multiples of 64 bytes)
  input logic          start_i,  // pulse, once after every reset
  input stream_range_t stream_i, // bytes, with start_i; a length of zero: no stream

  // How many full bursts may be under way, and whether the stream could use more
  input  logic [4:0] limit_i,  // bursts of 32 words, 1 or more; may change in every cycle
  output logic       wants_o,  // there is something to read and room for it
  output logic       held_o,   // and only limit_i stands against it

  // The image in use, for its protection; of length zero before the start
  output stream_range_t stream_o,  // from the cycle after start_i until reset

  // Tickets
  input  logic    ticket_valid_i,  // may be withdrawn before ticket_ready_o
  output logic    ticket_ready_o,  // room for one more; depends on no input
  input  ticket_t ticket_i,        // with ticket_valid_i, in the order of the program

  input logic loop_i,  // turns of a loop are left: a level

  // Shares, one line at a time, to the engine that holds the oldest ticket
  // At most one of them; stays until its ready, data stable
  output logic  [NumEngines-1:0] line_valid_o,
  output line_t                  line_data_o,   // the line, first byte lowest; for all engines
  input  logic  [NumEngines-1:0] line_ready_i,  // taken; counts for the engine of the ticket only
  input  logic  [NumEngines-1:0] line_last_i,   // with line_ready_i: the share ends with this line

  // Memory reads
  // A seek or a smaller limit_i may withdraw it, else it stays stable until ready
  output mem_req_t rd_req_o,
  input mem_rd_rsp_t rd_rsp_i  // ready may depend on rd_req_o.valid; words in order, never refused
);

  localparam int unsigned RoomW = $clog2(FifoWords + 1);
  localparam int unsigned Tickets = 16;
  localparam int unsigned TicketW = $clog2(Tickets + 1);

  typedef logic [27:0] word_addr_t;  // address or number of words in memory

  ticket_t ticket;
  logic ticket_valid, ticket_pop;

  npu_fifo #(
    .DataT(ticket_t),
    .Depth(Tickets)
  ) u_tickets (
    .clk_i,
    .rst_ni,
    .valid_i(ticket_valid_i),
    .ready_o(ticket_ready_o),
    .data_i (ticket_i),
    .valid_o(ticket_valid),
    .ready_i(ticket_pop),
    .data_o (ticket)
  );

  // The end of the stream is taken, and what comes next is its start: nothing to do
  logic wrapped_q, at_start;
  assign at_start = ticket_valid && ticket.op == TicketWrap && wrapped_q;

  // Seek: stop asking, let what is under way arrive and vanish, flush, go on at the new offset.
  logic seek, flush;
  logic [RoomW-1:0] pending_q;  // words asked for and not yet arrived
  assign seek  = ticket_valid && ticket.op inside {TicketSeek, TicketWrap} && !at_start;
  assign flush = seek && pending_q == '0 && !rd_req_o.valid;

  // ---------------------------------------------------------------------------------------------
  // Reading ahead
  // ---------------------------------------------------------------------------------------------
  logic active_q;
  mem_addr_t base_q;
  logic [31:0] length_q;
  word_addr_t addr_q;  // of the first word that is in no burst yet
  word_addr_t left_q;  // words from there to the end
  logic [RoomW-1:0] room_q;  // words of the FIFO that no burst has claimed
  // The next burst: it waits for room, and goes a cycle later
  logic burst_valid_q;
  word_addr_t burst_addr_q;
  logic [5:0] burst_q, burst;
  logic cut, go_q, issue, line_take;
  line_t line;
  logic line_valid, line_ready;

  logic within_limit, has_room;
  assign burst = burst_words({addr_q, 4'b0}, {4'b0, left_q});
  assign cut = left_q != '0 && !seek && (!burst_valid_q || issue);
  assign within_limit = 32'(pending_q) + {26'b0, burst_q} <= 32'(limit_i) * MaxBurst;
  // Tickets that will want the start behind the end
  logic [TicketW-1:0] wraps_q;
  logic wrap_drawn, wrap_popped, wrap;
  assign wrap_drawn = ticket_valid_i && ticket_ready_o && ticket_i.op == TicketWrap;
  assign wrap_popped = ticket_pop && ticket.op == TicketWrap;
  assign wrap = active_q && left_q == '0 && !wrapped_q && (loop_i || wraps_q != '0);
  assign has_room = 32'(room_q) >= {26'b0, burst_q};
  assign wants_o = burst_valid_q && has_room && !seek;
  assign held_o = wants_o && !within_limit;

  assign rd_req_o = '{
          valid: go_q,
          addr: {burst_addr_q, 4'b0},
          len: {2'b0, burst_q} - 8'd1,
          instr: '0
      };

  assign issue = rd_req_o.valid && rd_rsp_i.ready;
  assign stream_o = '{base: base_q, length: length_q};
  assign line_take = line_valid && line_ready;

  always_ff @(posedge clk_i) begin
    if (!rst_ni) begin
      active_q      <= 1'b0;
      base_q        <= '0;
      length_q      <= '0;
      addr_q        <= '0;
      left_q        <= '0;
      wrapped_q     <= 1'b0;
      wraps_q       <= '0;
      room_q        <= RoomW'(FifoWords);
      pending_q     <= '0;
      burst_valid_q <= 1'b0;
      go_q          <= 1'b0;
    end else begin
      wraps_q <= wraps_q + TicketW'(wrap_drawn) - TicketW'(wrap_popped);
      if (start_i) begin
        active_q <= 1'b1;
        base_q   <= stream_i.base;
        length_q <= stream_i.length;
        addr_q   <= stream_i.base[31:4];
        left_q   <= stream_i.length[31:4];
      end else if (flush) begin
        addr_q <= base_q[31:4] + ticket.bytes[31:4];
        left_q <= length_q[31:4] - ticket.bytes[31:4];
      end else if (wrap) begin
        addr_q <= base_q[31:4];
        left_q <= length_q[31:4];
      end else if (cut) begin
        addr_q <= addr_q + word_addr_t'(burst);
        left_q <= left_q - word_addr_t'(burst);
      end
      if (flush || at_start) wrapped_q <= 1'b0;
      else if (wrap) wrapped_q <= 1'b1;
      if (flush) room_q <= RoomW'(FifoWords);
      else room_q <= room_q - (issue ? RoomW'(burst_q) : '0) + (line_take ? RoomW'(4) : '0);
      pending_q <= pending_q + (issue ? RoomW'(burst_q) : '0) - RoomW'(rd_rsp_i.valid);
      if (cut) burst_valid_q <= 1'b1;
      else if (issue || seek) burst_valid_q <= 1'b0;
      go_q <= wants_o && within_limit && !issue;
    end
  end

  always_ff @(posedge clk_i) begin
    if (cut) begin
      burst_addr_q <= addr_q;
      burst_q      <= burst;
    end
  end

  npu_stream_fifo #(
    .Words(FifoWords)
  ) u_fifo (
    .clk_i,
    .rst_ni,
    .flush_i   (flush),
    .wr_valid_i(rd_rsp_i.valid),
    .wr_data_i (rd_rsp_i.data),
    .rd_valid_o(line_valid),
    .rd_ready_i(line_ready),
    .rd_data_o (line)
  );

  // ---------------------------------------------------------------------------------------------
  // Handing out
  // ---------------------------------------------------------------------------------------------
  logic serve, drop;
  logic [31:0] dropped_q;  // bytes
  assign serve       = ticket_valid && ticket.op == TicketShare;
  assign drop        = ticket_valid && ticket.op == TicketDrop;
  assign line_data_o = line;
  assign line_ready  = drop || (serve && line_ready_i[ticket.engine]);

  always_comb begin
    ticket_pop = flush || at_start;
    if (serve) ticket_pop = line_take && line_last_i[ticket.engine];
    if (drop) ticket_pop = line_take && dropped_q + LineBytes == ticket.bytes;
  end

  always_ff @(posedge clk_i) begin
    if (!rst_ni) dropped_q <= '0;
    else if (ticket_pop) dropped_q <= '0;
    else if (drop && line_take) dropped_q <= dropped_q + LineBytes;
  end

  always_comb begin
    line_valid_o = '0;
    if (serve) line_valid_o[ticket.engine] = line_valid;
  end

`ifndef SYNTHESIS
  TicketOfEngine_A :
  assert property (@(posedge clk_i) disable iff (!rst_ni) serve |-> 32'(ticket.engine) < NumEngines)
  else $error("npu_streamer: a ticket for something that is no engine");
  RoomInside_A :
  assert property (@(posedge clk_i) disable iff (!rst_ni) 32'(room_q) <= FifoWords)
  else $error("npu_streamer: more room counted than the FIFO has");
`endif

endmodule
