// SPDX-License-Identifier: Apache-2.0
//
// Bench of the parameter streamer: tickets are played as requests, every engine takes its lines as
// often as the knob lets it. A ticket is {op, engine, bytes}, the last one for a share. Noted are, of
// each line, the engine in slot 1 and the data from slot 2 on. In every other run turns of a loop are
// left, so that the start is read behind the end.

module unit_streamer;
  import npu_pkg::*;
  import npu_mem_pkg::*;
  import npu_stream_pkg::*;
  import tb_pkg::*;

  localparam logic [31:0] Base = 32'h0010_0000;
  localparam logic [4:0] Limit = 5'd3;  // bursts under way

  logic clk, rst_n, start, sent;
  unit_pkg::world_t world;
  unit_pkg::program_t played;

  // Shares that are not yet taken, oldest first, and what is left of the oldest
  ticket_t shares[$];
  logic none_left;
  logic [31:0] left;

  unit_control u_control (
    .clk_o    (clk),
    .rst_no   (rst_n),
    .world_o  (world),
    .program_o(played),
    .start_o  (start),
    .end_i    (sent && none_left)
  );

  logic ticket_valid, ticket_ready;
  logic [111:0] payload;
  ticket_t ticket;

  assign ticket = ticket_t'(payload[$bits(ticket_t)-1:0]);

  unit_requests u_tickets (
    .clk_i    (clk),
    .rst_ni   (rst_n),
    .start_i  (start),
    .count_i  (played.words),
    .end_o    (sent),
    .valid_o  (ticket_valid),
    .ready_i  (ticket_ready),
    .payload_o(payload)
  );

  mem_req_t rd_req;
  mem_rd_rsp_t rd_rsp;
  stream_range_t range;
  logic [NumEngines-1:0] line_valid, line_ready;
  line_t line;

  assign range = '{base: Base, length: played.stream_bytes};

  npu_streamer #(
    .FifoWords(256)
  ) u_streamer (
    .clk_i         (clk),
    .rst_ni        (rst_n),
    .start_i       (start),
    .stream_i      (range),
    .limit_i       (Limit),
    .wants_o       (),
    .held_o        (),
    .stream_o      (),
    .ticket_valid_i(ticket_valid),
    .ticket_ready_o(ticket_ready),
    .ticket_i      (ticket),
    .loop_i        (world.seed[0]),
    .line_valid_o  (line_valid),
    .line_data_o   (line),
    .line_ready_i  (line_ready),
    .line_last_i   ({NumEngines{left == LineBytes}}),
    .rd_req_o      (rd_req),
    .rd_rsp_i      (rd_rsp)
  );

  unit_memory_read u_memory (
    .clk_i  (clk),
    .rst_ni (rst_n),
    .world_i(world),
    .req_i  (rd_req),
    .rsp_o  (rd_rsp)
  );

  logic [31:0] random, lines, pending;

  // A behavioural model: state is updated in program order within one clock edge.
  /* verilator lint_off BLKSEQ */
  always @(posedge clk) begin
    if (!rst_n) begin
      shares.delete();
      random = world.seed;
      {lines, pending} = '0;
      left <= '0;
      line_ready <= '0;
      none_left <= 1'b1;
    end else begin
      automatic logic [31:0] rest = left;

      random = next_random(random);
      for (int unsigned e = 0; e < NumEngines; e++) begin
        if (line_valid[e] && line_ready[e]) begin
          tb_memory_now(unit_pkg::ObservedAt + unit_pkg::SlotBytes + 16 * lines, 128'(e));
          for (int unsigned w = 0; w < 4; w++) begin
            tb_memory_now(unit_pkg::ObservedAt + 2 * unit_pkg::SlotBytes + 64 * lines + 16 * w,
                          line[WordBits*w+:WordBits]);
          end
          lines = lines + 32'd1;
          rest  = rest - LineBytes;
          if (rest == '0) void'(shares.pop_front());
        end
      end
      if (ticket_valid && ticket_ready && ticket.op == TicketShare) shares.push_back(ticket);
      if (rest == '0 && shares.size() != 0) rest = shares[0].bytes;
      left <= rest;
      none_left <= shares.size() == 0;
      for (int unsigned e = 0; e < NumEngines; e++) begin
        line_ready[e] <= rest != '0 && !happens(world.stream_gap, random[19:8]);
      end

      if (rd_req.valid && rd_rsp.ready) begin
        pending = pending + 32'(rd_req.len) + 32'd1;
        if (rd_req.addr < Base ||
            rd_req.addr + 16 * (32'(rd_req.len) + 1) > Base + played.stream_bytes) begin
          $error("unit_streamer: a read outside the stream, at %h", rd_req.addr);
        end
      end
      if (rd_rsp.valid) pending = pending - 32'd1;
      if (pending > 32'(Limit) * MaxBurst) $error("unit_streamer: more bursts than the limit");
    end
  end
  /* verilator lint_on BLKSEQ */

endmodule
