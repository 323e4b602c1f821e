// SPDX-License-Identifier: Apache-2.0
//
// Order of work of SOFTMAX. For each row: one pass over the visible columns for the maximum, for
// probabilities a second one for the sum, and a last one over all columns up to a multiple of 16
// that writes. One token per octet of columns; octets without a visible column ask for no word.
// The passes of a row follow each other without a gap, because the datapath behind is one pipeline
// in which the maximum (and the sum) is complete before the next pass reaches the stage that uses
// it. Addresses are running sums.

module npu_smx_walk (
  input logic clk_i,
  input logic rst_ni,

  input  logic              start_i,
  input  npu_pkg::smx_cmd_t cmd_i,    // with start_i
  output logic              active_o,

  output logic                   token_valid_o,
  input  logic                   token_ready_i,
  output logic                   token_read_o,
  output logic                   token_word_o,
  output logic                   token_keep_o,
  output npu_pkg::sram_addr_t    token_addr_o,
  output npu_rows_pkg::smx_tag_t token_tag_o
);

  import npu_pkg::*;
  import npu_rows_pkg::*;

  typedef logic [32:0] limit_t;  // position of a row, without overflow

  // Columns j <= limit are visible under the causal mask. At least one always is.
  function automatic dim_t visible_columns(logic causal, limit_t limit, dim_t cols);
    return (causal && limit < limit_t'(cols)) ? dim_t'(limit) + 1'b1 : cols;
  endfunction

  // The destination is the writer's concern, and the instruction index the engine's.
  /* verilator lint_off UNUSEDSIGNAL */
  smx_cmd_t cmd_q;
  /* verilator lint_on UNUSEDSIGNAL */
  logic active_q, first_q, upper_q;
  smx_pass_e pass_q;
  sram_addr_t row_q, addr_q;  // start of the row, current word
  dim_t rows_left_q;
  dim_t head_row_q;  // row inside its head
  limit_t limit_q, limit_next;
  dim_t visible_q;  // visible columns of the row
  dim_t rem_q;  // visible columns from this octet on
  logic [13:0] left_q, octets;  // octets of the row still to write, and of a whole row
  logic fire, last, head_end;

  // Twice the number of 16-column groups.
  assign octets = 14'({12'((17'(cmd_q.cols) + 17'd15) >> 4), 1'b0});

  assign fire = active_q && token_ready_i;
  assign last = (pass_q == SmxPassOut) ? left_q == 14'd1 : rem_q <= 16'd8;
  assign head_end = head_row_q + 1'b1 == cmd_q.rows_per_head;
  assign limit_next = head_end ? limit_t'(cmd_q.pos) : limit_q + 1'b1;

  assign active_o = active_q;
  assign token_valid_o = active_q;
  assign token_word_o = rem_q != '0;
  assign token_read_o = token_word_o && !upper_q;
  assign token_keep_o = cmd_q.score8 && !upper_q && rem_q > 16'd8;
  assign token_addr_o = addr_q;
  assign token_tag_o = '{
          step: '{pass: pass_q, first: first_q, last: last},
          upper: upper_q,
          visible: (rem_q >= 16'd8) ? 4'd8 : rem_q[3:0]
      };

  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) begin
      active_q    <= 1'b0;
      cmd_q       <= '0;
      pass_q      <= SmxPassMax;
      first_q     <= 1'b0;
      upper_q     <= 1'b0;
      row_q       <= '0;
      addr_q      <= '0;
      rows_left_q <= '0;
      head_row_q  <= '0;
      limit_q     <= '0;
      visible_q   <= '0;
      rem_q       <= '0;
      left_q      <= '0;
    end else if (start_i) begin
      active_q    <= 1'b1;
      cmd_q       <= cmd_i;
      pass_q      <= SmxPassMax;
      first_q     <= 1'b1;
      upper_q     <= 1'b0;
      row_q       <= cmd_i.src;
      addr_q      <= cmd_i.src;
      rows_left_q <= cmd_i.rows;
      head_row_q  <= '0;
      limit_q     <= limit_t'(cmd_i.pos);
      visible_q   <= visible_columns(cmd_i.causal, limit_t'(cmd_i.pos), cmd_i.cols);
      rem_q       <= visible_columns(cmd_i.causal, limit_t'(cmd_i.pos), cmd_i.cols);
    end else if (fire) begin
      first_q <= last;
      upper_q <= cmd_q.score8 && !upper_q && !last;
      left_q  <= left_q - 1'b1;
      if (!last) begin
        rem_q <= (rem_q > 16'd8) ? rem_q - 16'd8 : '0;
        if (token_word_o && !token_keep_o) addr_q <= addr_q + 1'b1;
      end else if (pass_q != SmxPassOut) begin
        pass_q <= (pass_q == SmxPassMax && cmd_q.out == SmxProb8) ? SmxPassSum : SmxPassOut;
        rem_q  <= visible_q;
        left_q <= octets;
        addr_q <= row_q;
      end else begin
        active_q    <= rows_left_q != 16'd1;
        pass_q      <= SmxPassMax;
        row_q       <= row_q + cmd_q.src_pitch;
        addr_q      <= row_q + cmd_q.src_pitch;
        rows_left_q <= rows_left_q - 1'b1;
        head_row_q  <= head_end ? '0 : head_row_q + 1'b1;
        limit_q     <= limit_next;
        visible_q   <= visible_columns(cmd_q.causal, limit_next, cmd_q.cols);
        rem_q       <= visible_columns(cmd_q.causal, limit_next, cmd_q.cols);
      end
    end
  end

`ifndef SYNTHESIS
  assert property (@(posedge clk_i) disable iff (!rst_ni) start_i |-> !active_q);
  assert property (@(posedge clk_i) disable iff (!rst_ni)
                   start_i |-> cmd_i.rows != '0 && cmd_i.cols != '0 && cmd_i.rows_per_head != '0);
`endif

endmodule
