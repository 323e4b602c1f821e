// SPDX-License-Identifier: Apache-2.0
//
// The machine registers of a program and what follows from them. Their first values come one by one
// behind its start; SET, ARGMAX and LOOP change them. The bases, which nobody needs all at once, lie
// in a memory, and so does a second copy of what only SET changes, for its additions. The window's
// start and the number of visible keys are known one cycle after the last first value and after POS
// or WINDOW has changed; until then they are not settled.

module npu_machine
  import npu_pkg::*;
  import npu_start_pkg::*;
  import npu_isa_pkg::*;
  import npu_seq_pkg::*;
#(
  parameter int unsigned Edge = 16  // tile edge in lanes: 16 or 32
) (
  input logic clk_i,  // clock
  input logic rst_ni, // reset, active low

  input  logic               start_i,        // pulse: loads them
  input  machine_t           start_regs_i,   // with start_i: those that SET does not change
  input  start_value_t       start_value_i,  // behind it: those that it does
  // By the instruction that is dispatched; only while settled
  input  change_t            change_i,
  output registers_t         registers_o,    // changed one cycle after the pulse
  input  logic         [2:0] base_number_i,  // a level
  output mem_addr_t          base_o          // BASE of that number, changed likewise; combinational
);

  machine_t regs_q;
  logic [31:0] wstart_q;
  logic [32:0] len_q;
  logic loaded_q, settled_q;

  assign registers_o = '{regs: regs_q, wstart: wstart_q, len: len_q, settled: settled_q};

  // ---------------------------------------------------------------------------------------------
  // One register is written at a time, but for ARGMAX and LOOP
  // ---------------------------------------------------------------------------------------------
  logic write;
  logic [4:0] number;
  logic [31:0] old, value;
  assign write  = start_value_i.valid || change_i.set;
  assign number = start_value_i.valid ? start_value_i.number : change_i.number[4:0];

  // K/V registers and bases, by number: 8 to 12 and 16 to 23
  logic [31:0] mem_q[16];
  logic in_mem;
  assign in_mem = number[4:3] != '0;
  assign base_o = mem_q[{1'b1, base_number_i}];

  always_ff @(posedge clk_i) begin
    if (write && in_mem) mem_q[{number[4], number[2:0]}] <= value;
  end

  // The register that SET names, before it
  always_comb begin
    unique case (change_i.number)
      SetPos:      old = regs_q.pos;
      SetToken:    old = regs_q.token;
      SetWindow:   old = regs_q.window;
      SetOutcnt:   old = regs_q.outcnt;
      SetLoopleft: old = regs_q.loop_left;
      SetEos:      old = regs_q.eos;
      default:     old = mem_q[{change_i.number[4], change_i.number[2:0]}];
    endcase
    value = change_i.add ? old + change_i.value : change_i.value;
    if (start_value_i.valid) value = start_value_i.value;
  end

  always_ff @(posedge clk_i) begin
    if (!rst_ni) begin
      regs_q <= '0;
    end else if (start_i) begin
      regs_q <= start_regs_i;
    end else if (write) begin
      unique case (16'(number))
        SetPos: regs_q.pos <= value;
        SetToken: regs_q.token <= value;
        SetWindow: regs_q.window <= value;
        SetOutcnt: regs_q.outcnt <= value;
        SetLoopleft: regs_q.loop_left <= value;
        SetEos: regs_q.eos <= value;
        SetKvbase: regs_q.kv_base <= value;
        SetKvlayer: regs_q.kv_layer <= value;
        SetKvhead: regs_q.kv_head <= value;
        SetKvvoff: regs_q.kv_voff <= value;
        SetKvcap: regs_q.kv_cap <= value;
        default: ;  // The stream's address is the fetch's: npu_dispatch seeks.
      endcase
    end else if (change_i.argmax) begin
      regs_q.token  <= change_i.token;
      regs_q.outcnt <= regs_q.outcnt + 1'b1;
    end else if (change_i.loop) begin
      regs_q.loop_left <= regs_q.loop_left - 1'b1;
      regs_q.pos       <= regs_q.pos + 1'b1;
    end
  end

  // WSTART = W ? Edge * floor(max(0, POS + 1 - W) / Edge) : 0
  logic [32:0] keys;
  logic [31:0] first, wstart;
  assign keys  = {1'b0, regs_q.pos} + 1'b1;
  assign first = keys[31:0] - regs_q.window;
  always_comb begin
    wstart = '0;
    if (regs_q.window != '0 && {1'b0, regs_q.window} <= keys) wstart = first & ~32'(Edge - 1);
  end

  always_ff @(posedge clk_i) begin
    if (!rst_ni) begin
      wstart_q  <= '0;
      len_q     <= '0;
      loaded_q  <= 1'b0;
      settled_q <= 1'b0;
    end else begin
      wstart_q <= wstart;
      len_q <= keys - {1'b0, wstart};
      if (start_i) loaded_q <= 1'b0;
      else if (start_value_i.valid && start_value_i.last) loaded_q <= 1'b1;
      settled_q <= loaded_q && !(start_i || change_i.loop ||
                                 (change_i.set && change_i.number inside {SetPos, SetWindow}));
    end
  end

`ifndef SYNTHESIS
  OneChange_A :
  assert property (@(posedge clk_i) disable iff (!rst_ni) $onehot0(
      {start_i || start_value_i.valid, change_i.set, change_i.argmax, change_i.loop}
  ))
  else $error("npu_machine: two changes at once");
`endif

endmodule
