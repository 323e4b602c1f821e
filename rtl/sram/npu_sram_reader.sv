// SPDX-License-Identifier: Apache-2.0
//
// Turns a stream of SRAM word addresses into a stream of words. It asks for no more words than it
// can hold, because the SRAM's answers cannot be refused, and so hides the SRAM's latency and
// arbitration from an engine: one word per cycle as long as the bank grants. An address that is not
// granted at once waits in a register, so that no path leads through the crossbar into an engine.

module npu_sram_reader #(
  // Words asked for and not yet taken, at least 1; 3 or more for a word in every cycle
  parameter int unsigned Depth = 8
) (
  input logic clk_i,  // clock
  input logic rst_ni, // reset, active low

  // Addresses in
  input  logic                addr_valid_i,  // an address; may be withdrawn before its ready
  output logic                addr_ready_o,  // accepted; independent of addr_valid_i
  input  npu_pkg::sram_addr_t addr_i,        // word to read, with addr_valid_i

  // Words out, in the order of the addresses
  output logic data_valid_o,  // two cycles later or more; stays until ready, data stable
  input logic data_ready_i,  // the word is taken; may depend on data_valid_o
  output npu_pkg::word_t data_o,  // the word, with data_valid_o

  // SRAM port
  output npu_sram_pkg::sram_rd_req_t rd_req_o,  // stays, address stable, until rd_rsp_i.ready
  input  npu_sram_pkg::sram_rd_rsp_t rd_rsp_i   // ready may depend on the request; words in order
);

  localparam int unsigned CountW = $clog2(Depth + 1);

  logic [CountW-1:0] credit_q;  // words that may still be asked for
  logic held_q;  // held_addr_q waits for its grant
  npu_pkg::sram_addr_t held_addr_q;
  logic ask, take, fifo_ready;

  assign addr_ready_o   = !held_q && credit_q != '0;
  assign ask            = addr_valid_i && addr_ready_o;
  assign take           = data_valid_o && data_ready_i;
  assign rd_req_o.valid = held_q || ask;
  assign rd_req_o.addr  = held_q ? held_addr_q : addr_i;

  always_ff @(posedge clk_i) begin
    if (!rst_ni) begin
      credit_q <= CountW'(Depth);
      held_q   <= 1'b0;
    end else begin
      if (ask && !take) credit_q <= credit_q - 1'b1;
      if (take && !ask) credit_q <= credit_q + 1'b1;
      held_q <= rd_req_o.valid && !rd_rsp_i.ready;
    end
  end

  always_ff @(posedge clk_i) begin
    if (ask) held_addr_q <= addr_i;
  end

  npu_fifo #(
    .DataT(npu_pkg::word_t),
    .Depth(Depth)
  ) u_words (
    .clk_i,
    .rst_ni,
    .valid_i(rd_rsp_i.valid),
    .ready_o(fifo_ready),
    .data_i (rd_rsp_i.data),
    .valid_o(data_valid_o),
    .ready_i(data_ready_i),
    .data_o (data_o)
  );

`ifndef SYNTHESIS
  WordRoom_A :
  assert property (@(posedge clk_i) disable iff (!rst_ni) rd_rsp_i.valid |-> fifo_ready)
  else $error("npu_sram_reader: a word came for which there is no room");
`endif

endmodule
