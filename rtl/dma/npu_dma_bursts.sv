// SPDX-License-Identifier: Apache-2.0
//
// Cuts a transfer into requests for memory: bursts that end with their piece, at a 4 KiB boundary
// or after MaxBurst words, one per cycle. For a transfer inside the SRAM it gives single words
// instead.

module npu_dma_bursts
  import npu_pkg::*;
  import npu_mem_pkg::*;
  import npu_dma_pkg::*;
#(
  parameter int unsigned ArrayDim = 16  // rows and columns of the systolic array: 4, 8, 16 or 32
) (
  input logic clk_i,  // clock
  input logic rst_ni, // reset, active low

  // A transfer
  input  logic       valid_i,  // stays until ready, all stable
  output logic       ready_o,  // its last request is cut; only with valid_i
  input  mem_word_t  base_i,   // address of the first unit, in words
  input  mem_word_t  pitch_i,  // words from unit to unit
  input  shape_t     shape_i,  // which words of every unit
  input  instr_idx_t instr_i,  // index of its instruction, for the requests
  input  logic       single_i, // word by word

  // Requests; `last_o` goes with the last one of a transfer
  output mem_req_t req_o,   // one cycle after valid_i or later; stays until ready, all stable
  output logic     last_o,  // the last one of its transfer, with req_o.valid
  input  logic     ready_i  // taken; may depend on req_o.valid
);

  mem_word_t at, addr, left;
  logic [5:0] burst;
  logic step, last_piece, last;

  npu_dma_walk #(
    .ArrayDim(ArrayDim),
    .AddrBits($bits(mem_word_t))
  ) u_walk (
    .clk_i,
    .rst_ni,
    .shape_i,
    .pitch_i,
    .step_i (step),
    .words_i(burst),
    .at_o   (at),
    .left_o (left),
    .last_o (last_piece)
  );

  assign addr    = base_i + at;
  assign burst   = single_i ? 6'd1 : burst_words({addr, 4'b0}, {4'b0, left});
  assign last    = last_piece && left == {22'b0, burst};
  assign step    = valid_i && (!req_o.valid || ready_i);
  assign ready_o = step && last;

  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) begin
      req_o  <= '0;
      last_o <= 1'b0;
    end else if (step) begin
      req_o.valid <= 1'b1;
      req_o.addr  <= {addr, 4'b0};
      req_o.len   <= {2'b0, burst} - 8'd1;
      req_o.instr <= instr_i;
      last_o      <= last;
    end else if (ready_i) begin
      req_o.valid <= 1'b0;
    end
  end

endmodule
