// SPDX-License-Identifier: Apache-2.0
//
// Order of work of the norms. Parameters first, if they lie in SRAM; then the summing pass of a row
// runs one row ahead of the normalising pass: sums of row 0, sums of 1, out 0, sums of 2, out 1 and
// so on, so that the square root of a row is found while the next one is summed. One step per
// octet of columns (or word of parameters). Addresses are running sums. An idle walk has the first
// step of the operation at hand before it starts, and hands it out as it starts.

module npu_norm_walk (
  input logic clk_i,  // clock
  input logic rst_ni, // reset, active low

  input logic start_i,  // pulse: a new operation, only while active_o is low
  // The walker needs no destination and no instruction index.
  /* verilator lint_off UNUSEDSIGNAL */
  // LAYERNORM or RMSNORM of at least a row and a column, with start_i
  input npu_operation_pkg::nrm_operation_t op_i,
  /* verilator lint_on UNUSEDSIGNAL */
  output logic active_o,  // from the cycle after start_i until the last unit of work is taken

  // What it says with start_i, not yet valid, is the first step, which is taken then
  output npu_pkg::row_step_t      step_o,        // every step reads a word; stays until it is taken
  input  logic                    step_ready_i,  // taken; may depend on step_o.valid
  output npu_rows_pkg::norm_tag_t step_tag_o     // what the word is for, with step_o.valid
);

  import npu_pkg::*;
  import npu_rows_pkg::*;

  typedef struct packed {
    norm_kind_e kind;
    logic       first;     // of the row
    logic       ahead;     // the summing pass has finished its first row
    dim_t       cols;
    sram_addr_t pitch;
    sram_addr_t sum_row;   // where the rows of both passes begin
    sram_addr_t out_row;
    sram_addr_t addr;
    dim_t       sum_left;  // rows that have not finished the pass
    dim_t       out_left;
    dim_t       rem;       // columns of the row (words of parameters) from this step on
    logic [9:0] octet;
  } walk_t;

  logic active_q;
  walk_t walk_q, now, next;
  logic fire, last, params, all_end;

  // Header (one of its words), then four bytes for every column up to a multiple of 16.
  function automatic dim_t param_words(dim_t cols);
    return dim_t'({(17'(cols) + 17'd15) >> 4, 2'b00}) + 1'b1;
  endfunction

  assign fire = start_i || (active_q && step_ready_i);

  // What the step depends on: an operation that has not begun, or the walk so far
  always_comb begin
    now = walk_q;
    if (!active_q) begin
      now = '{
          kind: op_i.stream ? NormPassSum : NormParam,
          first: 1'b1,
          ahead: 1'b0,
          cols: op_i.cols,
          pitch: op_i.src_pitch,
          sum_row: op_i.src,
          out_row: op_i.src,
          addr: op_i.stream ? op_i.src : op_i.param,
          sum_left: op_i.rows,
          out_left: op_i.rows,
          rem: op_i.stream ? op_i.cols : param_words(op_i.cols),
          octet: '0
      };
    end
  end

  assign params = now.kind == NormParam;
  assign last = params ? now.rem == 16'd1 : now.rem <= 16'd8;
  assign active_o = active_q;
  assign step_o = '{valid: active_q, read: 1'b1, word: 1'b1, keep: 1'b0, addr: now.addr};
  assign step_tag_o = '{
          kind: now.kind,
          first: now.first,
          last: last,
          lanes: (now.rem >= 16'd8) ? 4'd8 : now.rem[3:0],
          octet: now.octet
      };

  // Behind the step
  assign all_end = last && now.kind == NormPassOut && now.out_left == 16'd1;

  always_comb begin
    next       = now;
    next.first = last;
    if (!last) begin
      next.rem   = now.rem - (params ? 16'd1 : 16'd8);
      next.octet = now.octet + 1'b1;
      next.addr  = now.addr + ((params && now.first) ? 16'd4 : 16'd1);
    end else begin
      unique case (now.kind)
        NormParam:   next.kind = NormPassSum;
        NormPassSum: next.kind = (now.ahead || now.sum_left == 16'd1) ? NormPassOut : NormPassSum;
        default:     next.kind = (now.sum_left != '0) ? NormPassSum : NormPassOut;
      endcase
      if (now.kind == NormPassSum) begin
        next.ahead    = 1'b1;
        next.sum_row  = now.sum_row + now.pitch;
        next.sum_left = now.sum_left - 1'b1;
      end
      if (now.kind == NormPassOut) begin
        next.out_row  = now.out_row + now.pitch;
        next.out_left = now.out_left - 1'b1;
      end
      next.addr  = (next.kind == NormPassSum) ? next.sum_row : next.out_row;
      next.rem   = now.cols;
      next.octet = '0;
    end
  end

  always_ff @(posedge clk_i) begin
    if (!rst_ni) begin
      active_q <= 1'b0;
      walk_q   <= '{kind: NormParam, default: '0};
    end else if (fire) begin
      active_q <= !all_end;
      walk_q   <= next;
    end
  end

`ifndef SYNTHESIS
  StartWhenIdle_A :
  assert property (@(posedge clk_i) disable iff (!rst_ni) start_i |-> !active_q)
  else $error("npu_norm_walk: started before the last operation is through");
  FirstTaken_A :
  assert property (@(posedge clk_i) disable iff (!rst_ni) start_i |-> step_ready_i)
  else $error("npu_norm_walk: the first step is not taken as the operation starts");
  NotEmpty_A :
  assert property (@(posedge clk_i) disable iff (!rst_ni)
                   start_i |-> op_i.rows != '0 && op_i.cols != '0)
  else $error("npu_norm_walk: an operation without rows or columns");
`endif

endmodule
