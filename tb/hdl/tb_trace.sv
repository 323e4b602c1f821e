// SPDX-License-Identifier: Apache-2.0
//
// For waveforms only: the opcode of the last dispatched word and of the instruction that each
// engine works on, as bytes that the viewer translates to mnemonics. Nothing reads these signals,
// so the fast build drops them.

module tb_trace (
  input logic             clk_i,
  input logic             dispatch_fire_i,
  input logic [31:0]      dispatch_instr_i,
  input logic [127:0]     dispatch_word_i,
  input logic [5:0]       engine_busy_i,
  input logic [5:0][31:0] engine_instr_i
);

  // More words than the queues of all engines hold.
  localparam int unsigned Depth = 1024;
  localparam int unsigned Bits = $clog2(Depth);

  logic [7:0] opcodes[Depth];
  logic [7:0] dispatched = '0;
  logic [31:0] index = '0;
  logic [7:0] ld, st, gemm, smx, nrm, vec;

  always_ff @(posedge clk_i) begin
    if (dispatch_fire_i) begin
      opcodes[dispatch_instr_i[Bits-1:0]] <= dispatch_word_i[7:0];
      dispatched <= dispatch_word_i[7:0];
      index <= dispatch_instr_i;
    end
  end

  assign ld   = engine_busy_i[0] ? opcodes[engine_instr_i[0][Bits-1:0]] : '0;
  assign st   = engine_busy_i[1] ? opcodes[engine_instr_i[1][Bits-1:0]] : '0;
  assign gemm = engine_busy_i[2] ? opcodes[engine_instr_i[2][Bits-1:0]] : '0;
  assign smx  = engine_busy_i[3] ? opcodes[engine_instr_i[3][Bits-1:0]] : '0;
  assign nrm  = engine_busy_i[4] ? opcodes[engine_instr_i[4][Bits-1:0]] : '0;
  assign vec  = engine_busy_i[5] ? opcodes[engine_instr_i[5][Bits-1:0]] : '0;

endmodule
