// SPDX-License-Identifier: Apache-2.0
//
// Integer instructions on registers, one cycle each, and the accumulator. What is added to it waits
// a cycle in a register of its own, so that multiplier and adder are not in one path; whoever looks
// at the accumulator sees it added already.

module npu_cop_int
  import npu_cop_pkg::*;
  import npu_cop_isa_pkg::*;
(
  input logic clk_i,  // clock
  input logic rst_ni, // reset, active low

  input  cop_op_t  op_i,    // the oldest instruction
  output cop_end_t end_o,   // of op_i, if it is one of these
  input  logic     ended_i, // pulse: op_i ends, of whichever unit it is

  input  logic        clear_i,  // pulse: the accumulator is 0 from the next cycle on
  input  logic        add_i,    // pulse: a sum is added; not with an instruction of these
  input  logic [63:0] sum_i,    // signed, with add_i
  output logic [63:0] acc_o     // the accumulator: all that came before is in it
);

  typedef logic [255:0][7:0] gelu_table_t;

  // 32 gelu(x / 32) = x / 2 + x^2 / (32 sqrt(2 pi)) * sum of (-u)^k / (k! (2 k + 1)), u = x^2 / 2048,
  // held with 48 fraction bits. 47 terms leave less than 2^-40; the nearest tie is 0.003 away.
  function automatic gelu_table_t gelu_table();
    logic signed [127:0] square, term, sum, value;
    for (int x = -128; x < 128; x++) begin
      square = 128'(x * x);
      term   = 128'sd1 <<< 48;
      sum    = term;
      for (int k = 1; k < 48; k++) begin
        term = (term * square) / (128'sd2048 * 128'(k));
        sum  = k[0] ? sum - term / 128'(2 * k + 1) : sum + term / 128'(2 * k + 1);
      end
      value = (128'(x) <<< 47) + ((square * sum * 128'sh0331_08a6_7a86_ca12) >>> 64);
      gelu_table[x&255] = 8'((value + (128'sd1 <<< 47)) >>> 48);
    end
  endfunction

  localparam gelu_table_t Gelu = gelu_table();

  logic [63:0] acc_q, addend_q, product;
  logic [31:0] a, data;
  logic mine, go;

  assign a = op_i.rs[0];
  assign product = $signed({{32{a[31]}}, a}) * $signed({{32{op_i.rs[1][31]}}, op_i.rs[1]});

  always_comb begin
    mine = 1'b1;
    data = '0;
    unique case (op_i.decoded.op)
      CopMacc:   data = '0;
      CopRelu:   data = a[31] ? '0 : a;
      CopQmul:   data = product[39:8];
      CopClamp:  data = (a[31:7] == {25{a[31]}}) ? a : {{25{a[31]}}, {7{!a[31]}}};
      CopGelu:   data = {{24{Gelu[a[7:0]][7]}}, Gelu[a[7:0]]};
      CopRstacc: data = acc_o[31:0];
      default:   mine = 1'b0;
    endcase
  end

  assign go    = ended_i && mine;
  assign end_o = '{ready: mine, data: data, fault: '0};
  assign acc_o = acc_q + addend_q;

  always_ff @(posedge clk_i) begin
    if (!rst_ni) begin
      acc_q    <= '0;
      addend_q <= '0;
    end else if (clear_i || (go && op_i.decoded.op == CopRstacc)) begin
      acc_q    <= '0;
      addend_q <= '0;
    end else begin
      acc_q    <= acc_o;
      addend_q <= '0;
      if (add_i) addend_q <= sum_i;
      else if (go && op_i.decoded.op == CopMacc) addend_q <= product;
    end
  end

`ifndef SYNTHESIS
  OneAddend_A :
  assert property (@(posedge clk_i) disable iff (!rst_ni) !(add_i && go))
  else $error("npu_cop_int: a vector's sum and an instruction at once");
`endif

endmodule
