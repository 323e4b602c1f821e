// SPDX-License-Identifier: Apache-2.0
//
// Behavioural parameter stream: hands the shares out in the order of their tickets, line by line and
// as often as the knob lets it. Programs of these benches go through the stream once, from its start.

module unit_stream
  import npu_pkg::*;
  import npu_stream_pkg::*;
  import tb_pkg::*;
(
  input logic             clk_i,
  input logic             rst_ni,
  input unit_pkg::world_t world_i,

  input  logic    ticket_valid_i,
  output logic    ticket_ready_o,
  input  ticket_t ticket_i,

  output logic  line_valid_o,
  output line_t line_data_o,
  input  logic  line_ready_i,
  input  logic  line_last_i
);

  localparam int unsigned Depth = 16;

  ticket_t tickets[$:Depth];
  logic [31:0] random, offset;

  function automatic line_t line_at(logic [31:0] at);
    bit [127:0] word;
    line_t line;
    for (int unsigned i = 0; i < 4; i++) begin
      tb_memory_read(unit_pkg::StreamAt + at + 32'(WordBytes * i), word);
      line[WordBits*i+:WordBits] = word;
    end
    return line;
  endfunction

  // A behavioural model: state is updated in program order within one clock edge.
  /* verilator lint_off BLKSEQ */
  always @(posedge clk_i) begin
    if (!rst_ni) begin
      tickets.delete();
      random = ~world_i.seed;
      offset = '0;
      line_valid_o   <= 1'b0;
      ticket_ready_o <= 1'b0;
    end else begin
      random = next_random(random);
      if (line_valid_o && line_ready_i) begin
        offset = offset + LineBytes;
        line_valid_o <= 1'b0;
        if (line_last_i) void'(tickets.pop_front());
      end
      if (ticket_valid_i && ticket_ready_o) tickets.push_back(ticket_i);
      if (tickets.size() != 0 && tickets[0].op == TicketDrop) begin
        offset = offset + tickets[0].bytes;
        void'(tickets.pop_front());
      end
      if (tickets.size() != 0 && (!line_valid_o || line_ready_i) && !happens(
              world_i.stream_gap, random[19:8]
          )) begin
        if (tickets[0].op != TicketShare) $error("unit_stream: a ticket that is not for a share");
        line_data_o  <= line_at(offset);
        line_valid_o <= 1'b1;
      end
      ticket_ready_o <= tickets.size() < Depth - 1 && !happens(world_i.stream_gap, random[31:20]);
    end
  end
  /* verilator lint_on BLKSEQ */

endmodule
