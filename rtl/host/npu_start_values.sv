// SPDX-License-Identifier: Apache-2.0
//
// The registers of the sequencer's window that the core does not see at once, in one memory: the
// first values of machine registers, which are sent to the machine one a cycle behind every start,
// and what only software uses. A value that nobody has written since the reset reads as after it. An
// access while values are sent waits, so that a program starts with those of its start.

module npu_start_values
  import npu_start_pkg::*;
  import npu_host_pkg::*;
(
  input logic clk_i,  // clock
  input logic rst_ni, // reset, active low

  input  window_req_t req_i,    // an access to the window; stays, but for its valid, until the ack
  output logic        known_o,  // to a register of this memory, with req_i
  output window_rsp_t rsp_o,    // ack if it is known, 25 cycles later at most

  input  logic         start_i,  // pulse: values are sent from the next cycle on, from the first
  output start_value_t value_o   // one a cycle; none is withheld
);

  localparam int unsigned Places = 32;

  logic [31:0] mem_q[Places];
  logic [Places-1:0] written_q;
  logic sending_q, waits_q, waits, ack, write;
  logic [4:0] sent_q, at;
  start_place_t place;
  logic [31:0] value;

  assign place = start_place(req_i.addr);
  assign known_o = place.known;
  assign waits = (req_i.valid && place.known) || waits_q;
  assign ack = waits && !sending_q;
  assign write = ack && req_i.write;

  assign at = sending_q ? sent_q : place.number;
  assign value = written_q[at] ? mem_q[at] : start_reset(at);
  assign rsp_o = '{ack: ack, rdata: ack ? value : '0};
  assign value_o = '{
          valid: sending_q,
          last: sent_q == FirstNoted - 1'b1,
          number: sent_q,
          value: value
      };

  always_ff @(posedge clk_i) begin
    if (write) begin
      mem_q[at] <= ((value & ~req_i.wmask) | (req_i.wdata & req_i.wmask)) & start_mask(at);
    end
  end

  always_ff @(posedge clk_i) begin
    if (!rst_ni) begin
      written_q <= '0;
      sending_q <= 1'b0;
      sent_q    <= '0;
      waits_q   <= 1'b0;
    end else begin
      if (write) written_q[at] <= 1'b1;
      waits_q <= waits && !ack;
      if (start_i) sending_q <= 1'b1;
      else if (value_o.last) sending_q <= 1'b0;
      sent_q <= (start_i || !sending_q) ? '0 : sent_q + 1'b1;
    end
  end

endmodule
