// SPDX-License-Identifier: Apache-2.0
//
// The machine registers of a program and what follows from them. They are loaded at its start and
// changed by SET, ARGMAX and LOOP. The window's start and the number of visible keys are known one
// cycle after POS or WINDOW has changed; until then they are not settled.

module npu_machine
  import npu_start_pkg::*;
  import npu_isa_pkg::*;
  import npu_seq_pkg::*;
#(
  parameter int unsigned Edge = 16  // tile edge in lanes: 16 or 32
) (
  input logic clk_i,  // clock
  input logic rst_ni, // reset, active low

  input  logic       start_i,       // pulse: loads them
  input  machine_t   start_regs_i,  // first values, with start_i
  input  change_t    change_i,      // by the instruction that is dispatched; not with start_i
  output registers_t registers_o    // changed one cycle after the pulse
);

  machine_t regs_q;
  logic [31:0] wstart_q;
  logic [32:0] len_q;
  logic settled_q;

  assign registers_o = '{regs: regs_q, wstart: wstart_q, len: len_q, settled: settled_q};

  // The register that SET names, before it
  logic [31:0] old, value;
  always_comb begin
    unique case (change_i.number) inside
      SetPos: old = regs_q.pos;
      SetToken: old = regs_q.token;
      SetWindow: old = regs_q.window;
      SetOutcnt: old = regs_q.outcnt;
      SetLoopleft: old = regs_q.loop_left;
      SetEos: old = regs_q.eos;
      SetKvbase: old = regs_q.kv_base;
      SetKvlayer: old = regs_q.kv_layer;
      SetKvhead: old = regs_q.kv_head;
      SetKvvoff: old = regs_q.kv_voff;
      SetKvcap: old = regs_q.kv_cap;
      default: old = regs_q.bases[change_i.number[2:0]];
    endcase
    value = change_i.add ? old + change_i.value : change_i.value;
  end

  always_ff @(posedge clk_i) begin
    if (!rst_ni) begin
      regs_q <= '0;
    end else if (start_i) begin
      regs_q <= start_regs_i;
    end else if (change_i.set) begin
      unique case (change_i.number) inside
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
        [SetBase0 : SetBase7]: regs_q.bases[change_i.number[2:0]] <= value;
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
      settled_q <= 1'b0;
    end else begin
      wstart_q <= wstart;
      len_q <= keys - {1'b0, wstart};
      settled_q <= !(start_i || change_i.loop ||
                     (change_i.set && change_i.number inside {SetPos, SetWindow}));
    end
  end

`ifndef SYNTHESIS
  OneChange_A :
  assert property (@(posedge clk_i) disable iff (!rst_ni) $onehot0(
      {start_i, change_i.set, change_i.argmax, change_i.loop}
  ))
  else $error("npu_machine: two changes at once");
`endif

endmodule
