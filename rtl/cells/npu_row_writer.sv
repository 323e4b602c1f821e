// SPDX-License-Identifier: Apache-2.0
//
// Write side of a row engine. It gives every result word its address (row base plus a running
// column; the row base moves by the pitch after the last word of a row) and queues address and
// word, so that a write request stands still until it is accepted. A side entry with an address of
// its own serves results that do not belong to the rows; the two never arrive in the same cycle.

module npu_row_writer #(
  parameter bit Side = 1'b1,  // there are words with addresses of their own
  parameter int unsigned Depth = 8  // words that may wait for the SRAM, at least 1; of 8 a memory
) (
  input logic clk_i,  // clock
  input logic rst_ni, // reset, active low

  // Start of an instruction, not before the queue is empty
  input logic                start_i,  // pulse, in a cycle without word_i.valid
  input npu_pkg::sram_addr_t dst_i,    // SRAM address of the first word, with start_i
  input npu_pkg::sram_addr_t pitch_i,  // words from row to row, with start_i

  // Words in; both entries share the ready
  output logic                       ready_o,  // room for one more; depends on no input
  input  npu_pkg::row_word_t         word_i,   // may be withdrawn before ready_o
  // A word with its own address, in a cycle without word_i.valid; never without Side
  input  npu_sram_pkg::sram_wr_req_t side_i,

  output logic empty_o,  // with this cycle's grant all that came are in SRAM; by wr_ready_i

  // SRAM port
  // One cycle after its word or later; stays until ready, all stable
  output npu_sram_pkg::sram_wr_req_t wr_req_o,
  input  logic                       wr_ready_i  // granted; may depend on wr_req_o.valid
);

  typedef struct packed {
    npu_pkg::sram_addr_t addr;
    npu_pkg::word_t      data;
  } entry_t;

  npu_pkg::sram_addr_t addr_q, next_row_q, pitch_q;
  entry_t head, entry;
  logic valid, side;
  logic [$clog2(Depth+1)-1:0] waiting;

  assign side       = Side && side_i.valid;
  assign entry.addr = side ? side_i.addr : addr_q;
  assign entry.data = side ? side_i.data : word_i.data;
  assign empty_o    = waiting == '0 || (waiting == $bits(waiting)'(1) && wr_ready_i);
  assign wr_req_o   = '{valid: valid, addr: head.addr, data: head.data};

  always_ff @(posedge clk_i) begin
    if (!rst_ni) begin
      addr_q     <= '0;
      next_row_q <= '0;
      pitch_q    <= '0;
    end else if (start_i) begin
      addr_q     <= dst_i;
      next_row_q <= dst_i + pitch_i;
      pitch_q    <= pitch_i;
    end else if (word_i.valid && ready_o) begin
      addr_q <= word_i.last ? next_row_q : addr_q + 1'b1;
      if (word_i.last) next_row_q <= next_row_q + pitch_q;
    end
  end

  npu_flush_fifo #(
    .DataT(entry_t),
    .Depth(Depth)
  ) u_words (
    .clk_i,
    .rst_ni,
    .flush_i(1'b0),
    .valid_i(word_i.valid || side),
    .ready_o,
    .data_i (entry),
    .valid_o(valid),
    .ready_i(wr_ready_i),
    .data_o (head),
    .count_o(waiting)
  );

`ifndef SYNTHESIS
  if (!Side) begin : gen_rows_only
    NoSide_A :
    assert property (@(posedge clk_i) disable iff (!rst_ni) !side_i.valid)
    else $error("npu_row_writer: a side word where there are none");
  end
  OneWord_A :
  assert property (@(posedge clk_i) disable iff (!rst_ni) !(word_i.valid && side_i.valid))
  else $error("npu_row_writer: a word of the rows and a side word at once");
  StartWhenEmpty_A :
  assert property (@(posedge clk_i) disable iff (!rst_ni) start_i |-> empty_o && !word_i.valid)
  else $error("npu_row_writer: a new start before the last words are in SRAM");
  WriteKept_A :
  assert property (@(posedge clk_i) disable iff (!rst_ni) wr_req_o.valid && !wr_ready_i |=> $stable(
      wr_req_o
  ))
  else $error("npu_row_writer: a write is withdrawn or changed before it is granted");
`endif

endmodule
