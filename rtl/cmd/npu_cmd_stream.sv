// SPDX-License-Identifier: Apache-2.0
//
// Copies a few 32-bit words from memory into the scratchpad, before the operation that uses them.
// The 16-byte words of memory arrive in ascending order; behind the first that fails nothing is
// copied.

module npu_cmd_stream #(
  parameter int unsigned ScratchBytes = 64  // bytes of the scratchpad: 64, 128 or 256
) (
  input logic clk_i,  // clock
  input logic rst_ni, // reset, active low

  input  logic                   active_i,  // a level until end_o; may fall before: dropped
  input  npu_cmd_pkg::stream_t   stream_i,  // what to copy where; from the cycle before active_i on
  output npu_cmd_pkg::step_end_t end_o,     // pulse, only while active_i

  output npu_cmd_pkg::scratch_write_t scratch_o,  // up to four 32-bit words

  // Memory
  output npu_cmd_pkg::read_req_t read_o,  // stable until ready, a denial or the end of active_i
  input  npu_cmd_pkg::read_rsp_t read_i   // words in order, never refused
);

  localparam int unsigned AddrW = $clog2(ScratchBytes / 4);  // width of a 32-bit word address

  // Places count in 32-bit words from the start of the first 16-byte word.
  logic [4:0] first, last;  // copied
  logic [2:0] asked_q, arrived_q, beats_q;  // 16-byte words
  logic denied_q, arrives;
  logic [AddrW-1:0] word;  // of the scratchpad, for the first of the four

  assign first = {3'b0, stream_i.source[3:2]};
  assign last = first + {1'b0, stream_i.bytes[5:2]} - 5'd1;

  assign read_o.valid = active_i && asked_q != beats_q && !denied_q;
  assign read_o.addr = {stream_i.source[31:4] + 28'(asked_q), 4'b0};
  assign arrives = active_i && read_i.valid && !read_i.error;
  assign end_o.done = arrives && arrived_q + 3'd1 == beats_q;
  // What was asked for before a denied word still arrives.
  assign end_o.failed = active_i && !arrives &&
                        (read_i.valid || (denied_q && asked_q == arrived_q));

  always_ff @(posedge clk_i) begin
    if (!rst_ni) begin
      asked_q   <= '0;
      arrived_q <= '0;
      denied_q  <= 1'b0;
      beats_q   <= '0;
    end else if (!active_i) begin
      beats_q   <= last[4:2] + 3'd1;
      asked_q   <= '0;
      arrived_q <= '0;
      denied_q  <= 1'b0;
    end else begin
      asked_q <= asked_q + 3'(read_o.valid && read_i.ready) - 3'(read_i.denied);
      if (read_i.valid) arrived_q <= arrived_q + 1'b1;
      if (read_i.denied) denied_q <= 1'b1;
    end
  end

  always_comb begin
    for (int unsigned i = 0; i < 4; i++) begin
      automatic logic [4:0] place = {arrived_q, 2'(i)};
      scratch_o.we[4*i+:4] = {4{arrives && place >= first && place <= last}};
    end
  end
  assign word = AddrW'(stream_i.offset[7:2]) + AddrW'({arrived_q, 2'b0}) - AddrW'(first);
  assign scratch_o.addr = 8'({word, 2'b00});
  assign scratch_o.data = read_i.data;

endmodule
