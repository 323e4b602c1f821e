// SPDX-License-Identifier: Apache-2.0
//
// Read side of a row engine. The engine's walker hands in the steps of the work in order; each step
// carries a tag for the datapath and may ask for an SRAM word. The steps come out in the same
// order, each joined with the word it needs. One word can serve several consecutive steps: the
// first asks for it (`read`), all but the last keep it (`keep`). Steps run ahead of the datapath by
// up to Depth, which hides the SRAM's latency and arbitration. An address goes to the SRAM out of a
// register, so that no walk's logic is in front of the crossbar.

module npu_row_fetch #(
  parameter type TagT = logic,  // what the datapath must know of a step, any type
  parameter int unsigned Depth = 8  // steps that may run ahead, at least 1
) (
  input logic clk_i,  // clock
  input logic rst_ni, // reset, active low

  // Steps in
  input  npu_pkg::row_step_t step_i,        // its address is asked for from the next cycle on
  output logic               step_ready_o,  // taken; may depend on step_i.read, not on valid
  input  TagT                step_tag_i,    // comes out beside the word, with step_i.valid

  // Steps out, with their words; at the earliest one cycle after they came in
  output logic           valid_o,  // a step, its word is there; stays until ready_i
  input  logic           ready_i,  // taken; may depend on valid_o
  output TagT            tag_o,    // stable while valid_o
  output npu_pkg::word_t word_o,   // stable while valid_o, where the step needs a word
  output logic           empty_o,  // no step is inside

  // SRAM port
  output npu_sram_pkg::sram_rd_req_t rd_req_o,  // stays, address stable, until rd_rsp_i.ready
  input  npu_sram_pkg::sram_rd_rsp_t rd_rsp_i   // ready may depend on the request; words in order
);

  typedef struct packed {
    logic word;
    logic keep;
    TagT  tag;
  } entry_t;

  entry_t head, entry;
  logic tag_ready, head_valid, addr_ready, data_valid;
  logic ask_q, ask_room;  // ask_addr_q waits for its place in the reader
  npu_pkg::sram_addr_t ask_addr_q;

  assign entry        = '{word: step_i.word, keep: step_i.keep, tag: step_tag_i};
  assign ask_room     = !ask_q || addr_ready;
  assign step_ready_o = tag_ready && (!step_i.read || ask_room);
  assign valid_o      = head_valid && (!head.word || data_valid);
  assign tag_o        = head.tag;
  assign empty_o      = !head_valid;

  always_ff @(posedge clk_i) begin
    if (!rst_ni) ask_q <= 1'b0;
    else if (ask_room) ask_q <= step_i.valid && step_i.read && tag_ready;
  end

  always_ff @(posedge clk_i) begin
    if (ask_room) ask_addr_q <= step_i.addr;
  end

  npu_fifo #(
    .DataT(entry_t),
    .Depth(Depth)
  ) u_tags (
    .clk_i,
    .rst_ni,
    .valid_i(step_i.valid && (!step_i.read || ask_room)),
    .ready_o(tag_ready),
    .data_i (entry),
    .valid_o(head_valid),
    .ready_i(ready_i && (!head.word || data_valid)),
    .data_o (head)
  );

  npu_sram_reader #(
    .Depth(Depth)
  ) u_reader (
    .clk_i,
    .rst_ni,
    .addr_valid_i(ask_q),
    .addr_ready_o(addr_ready),
    .addr_i      (ask_addr_q),
    .data_valid_o(data_valid),
    .data_ready_i(valid_o && ready_i && head.word && !head.keep),
    .data_o      (word_o),
    .rd_req_o,
    .rd_rsp_i
  );

`ifndef SYNTHESIS
  ReadNeedsWord_A :
  assert property (@(posedge clk_i) disable iff (!rst_ni)
                   step_i.valid && step_i.read |-> step_i.word)
  else $error("npu_row_fetch: a step asks for a word that it does not need");
  KeepNeedsWord_A :
  assert property (@(posedge clk_i) disable iff (!rst_ni)
                   step_i.valid && step_i.keep |-> step_i.word)
  else $error("npu_row_fetch: a step keeps a word that it does not need");
`endif

endmodule
