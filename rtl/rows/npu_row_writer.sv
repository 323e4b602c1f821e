// SPDX-License-Identifier: Apache-2.0
//
// Write side of a row engine. It gives every result word its address (row base plus a running
// column; the row base moves by the pitch after the last word of a row) and queues address and
// word, so that a write request stands still until it is accepted. A side entry with an address of
// its own serves results that do not belong to the rows; the two never arrive in the same cycle.

module npu_row_writer #(
  parameter int unsigned Depth = 4
) (
  input logic clk_i,
  input logic rst_ni,

  // Start of an instruction, not before the queue is empty
  input logic                start_i,
  input npu_pkg::sram_addr_t dst_i,
  input npu_pkg::sram_addr_t pitch_i,
  input npu_pkg::instr_idx_t instr_i,

  // Words in; both entries share the ready
  output logic                ready_o,
  input  logic                word_valid_i,
  input  npu_pkg::word_t      word_i,
  input  logic                row_last_i,
  input  logic                side_valid_i,
  input  npu_pkg::sram_addr_t side_addr_i,
  input  npu_pkg::word_t      side_word_i,

  output logic empty_o,

  // SRAM port
  output npu_pkg::sram_wr_req_t wr_req_o,
  input  logic                  wr_ready_i
);

  typedef struct packed {
    npu_pkg::sram_addr_t addr;
    npu_pkg::word_t      data;
  } entry_t;

  npu_pkg::sram_addr_t addr_q, next_row_q, pitch_q;
  npu_pkg::instr_idx_t instr_q;
  entry_t head, entry;
  logic valid;

  assign entry.addr = side_valid_i ? side_addr_i : addr_q;
  assign entry.data = side_valid_i ? side_word_i : word_i;
  assign empty_o    = !valid;
  assign wr_req_o   = '{valid: valid, addr: head.addr, data: head.data, instr: instr_q};

  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) begin
      addr_q     <= '0;
      next_row_q <= '0;
      pitch_q    <= '0;
      instr_q    <= '0;
    end else if (start_i) begin
      addr_q     <= dst_i;
      next_row_q <= dst_i + pitch_i;
      pitch_q    <= pitch_i;
      instr_q    <= instr_i;
    end else if (word_valid_i && ready_o) begin
      addr_q <= row_last_i ? next_row_q : addr_q + 1'b1;
      if (row_last_i) next_row_q <= next_row_q + pitch_q;
    end
  end

  npu_fifo #(
    .DataT(entry_t),
    .Depth(Depth)
  ) u_words (
    .clk_i,
    .rst_ni,
    .valid_i(word_valid_i || side_valid_i),
    .ready_o,
    .data_i (entry),
    .valid_o(valid),
    .ready_i(wr_ready_i),
    .data_o (head),
    .count_o()
  );

`ifndef SYNTHESIS
  assert property (@(posedge clk_i) disable iff (!rst_ni) !(word_valid_i && side_valid_i));
  assert property (@(posedge clk_i) disable iff (!rst_ni) start_i |-> empty_o && !word_valid_i);
  assert property (@(posedge clk_i) disable iff (!rst_ni) wr_req_o.valid && !wr_ready_i |=> $stable(
      wr_req_o
  ));
`endif

endmodule
