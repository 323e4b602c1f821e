// SPDX-License-Identifier: Apache-2.0
//
// Order of work of the norms. Parameters first, if they lie in SRAM; then the summing pass of a row
// runs one row ahead of the normalising pass: sums of row 0, sums of 1, out 0, sums of 2, out 1 and
// so on, so that the square root of a row is found while the next one is summed. One step per
// octet of columns (or word of parameters). Addresses are running sums.

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

  output npu_pkg::row_step_t      step_o,        // every step reads a word; stays until it is taken
  input  logic                    step_ready_i,  // taken; may depend on step_o.valid
  output npu_rows_pkg::norm_tag_t step_tag_o     // what the word is for, with step_o.valid
);

  import npu_pkg::*;
  import npu_rows_pkg::*;

  logic active_q, first_q, ahead_q;  // ahead: the summing pass has finished its first row
  norm_kind_e kind_q, kind_next;
  dim_t cols_q;
  sram_addr_t pitch_q, sum_row_q, out_row_q, addr_q, sum_row_next, out_row_next;
  dim_t sum_left_q, out_left_q;  // rows that have not finished the pass
  dim_t rem_q;  // columns of the row (words of parameters) from this step on
  logic [9:0] octet_q;
  logic fire, last, params;

  // Header (one of its words), then four bytes for every column up to a multiple of 16.
  function automatic dim_t param_words(dim_t cols);
    return dim_t'({(17'(cols) + 17'd15) >> 4, 2'b00}) + 1'b1;
  endfunction

  assign params = kind_q == NormParam;
  assign fire = active_q && step_ready_i;
  assign last = params ? rem_q == 16'd1 : rem_q <= 16'd8;

  assign active_o = active_q;
  assign step_o = '{valid: active_q, read: 1'b1, word: 1'b1, keep: 1'b0, addr: addr_q};
  assign step_tag_o = '{
          kind: kind_q,
          first: first_q,
          last: last,
          lanes: (rem_q >= 16'd8) ? 4'd8 : rem_q[3:0],
          octet: octet_q
      };

  // Rows the two passes have reached once this step is gone
  assign sum_row_next = (kind_q == NormPassSum) ? sum_row_q + pitch_q : sum_row_q;
  assign out_row_next = (kind_q == NormPassOut) ? out_row_q + pitch_q : out_row_q;

  always_comb begin
    unique case (kind_q)
      NormParam:   kind_next = NormPassSum;
      NormPassSum: kind_next = (ahead_q || sum_left_q == 16'd1) ? NormPassOut : NormPassSum;
      default:    kind_next = (sum_left_q != '0) ? NormPassSum : NormPassOut;
    endcase
  end

  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) begin
      active_q   <= 1'b0;
      first_q    <= 1'b0;
      ahead_q    <= 1'b0;
      kind_q     <= NormParam;
      cols_q     <= '0;
      pitch_q    <= '0;
      sum_row_q  <= '0;
      out_row_q  <= '0;
      addr_q     <= '0;
      sum_left_q <= '0;
      out_left_q <= '0;
      rem_q      <= '0;
      octet_q    <= '0;
    end else if (start_i) begin
      active_q   <= 1'b1;
      first_q    <= 1'b1;
      ahead_q    <= 1'b0;
      kind_q     <= op_i.stream ? NormPassSum : NormParam;
      cols_q     <= op_i.cols;
      pitch_q    <= op_i.src_pitch;
      sum_row_q  <= op_i.src;
      out_row_q  <= op_i.src;
      addr_q     <= op_i.stream ? op_i.src : op_i.param;
      sum_left_q <= op_i.rows;
      out_left_q <= op_i.rows;
      rem_q      <= op_i.stream ? op_i.cols : param_words(op_i.cols);
      octet_q    <= '0;
    end else if (fire) begin
      first_q <= last;
      if (!last) begin
        rem_q   <= rem_q - (params ? 16'd1 : 16'd8);
        octet_q <= octet_q + 1'b1;
        addr_q  <= addr_q + ((params && first_q) ? 16'd4 : 16'd1);
      end else begin
        active_q  <= !(kind_q == NormPassOut && out_left_q == 16'd1);
        kind_q    <= kind_next;
        sum_row_q <= sum_row_next;
        out_row_q <= out_row_next;
        addr_q    <= (kind_next == NormPassSum) ? sum_row_next : out_row_next;
        rem_q     <= cols_q;
        octet_q   <= '0;
        if (kind_q == NormPassSum) ahead_q <= 1'b1;
        if (kind_q == NormPassSum) sum_left_q <= sum_left_q - 1'b1;
        if (kind_q == NormPassOut) out_left_q <= out_left_q - 1'b1;
      end
    end
  end

`ifndef SYNTHESIS
  StartWhenIdle_A :
  assert property (@(posedge clk_i) disable iff (!rst_ni) start_i |-> !active_q)
  else $error("npu_norm_walk: started before the last operation is through");
  NotEmpty_A :
  assert property (@(posedge clk_i) disable iff (!rst_ni)
                   start_i |-> op_i.rows != '0 && op_i.cols != '0)
  else $error("npu_norm_walk: an operation without rows or columns");
`endif

endmodule
