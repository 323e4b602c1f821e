// SPDX-License-Identifier: Apache-2.0
//
// Order of work of SOFTMAX. For each row: one pass over the visible columns for the maximum, for
// probabilities a second one for the sum, and a last one over all columns up to a multiple of 16
// that writes. One step per octet of columns; octets without a visible column ask for no word. The
// visible columns of a row are a range that ends at its position and, with a window, begins behind
// its position minus the window; it may be empty.
// The passes of a row follow each other without a gap, because the datapath behind is one pipeline
// in which the maximum (and the sum) is complete before the next pass reaches the stage that uses
// it. Addresses are running sums. Where the next row begins, and what it sees, is found in two
// cycles while the walk goes over this one, which takes three steps at least.

module npu_smx_walk (
  input logic clk_i,  // clock
  input logic rst_ni, // reset, active low

  input logic start_i,  // pulse: a new operation, only while active_o is low
  // SOFTMAX of at least a row, a column and a row per head, with start_i
  input npu_operation_pkg::smx_operation_t op_i,
  output logic active_o,  // from the cycle after start_i until the last unit of work is taken

  output npu_pkg::row_step_t     step_o,        // a step per octet; stays until it is taken
  input  logic                   step_ready_i,  // taken; may depend on step_o.valid
  output npu_rows_pkg::smx_tag_t step_tag_o     // what the octet is for, with step_o.valid
);

  import npu_pkg::*;
  import npu_operation_pkg::*;
  import npu_isa_pkg::*;
  import npu_rows_pkg::*;

  typedef logic [32:0] place_t;  // number of positions up to that of a row, without overflow

  typedef struct packed {
    logic some;   // the row sees a column
    dim_t first;  // zero if it sees none
    dim_t stop;   // one past the last; zero if it sees none
  } span_t;

  function automatic span_t visible_columns(logic causal, logic [31:0] window, place_t places,
                                            dim_t cols);
    logic cut, none;
    cut = causal && window != '0 && places > place_t'(window);
    none = cut && places >= place_t'(window) + place_t'(cols);
    visible_columns.some = !none;
    visible_columns.first = (cut && !none) ? dim_t'(places - place_t'(window)) : '0;
    visible_columns.stop = (causal && places < place_t'(cols)) ? dim_t'(places) : cols;
    if (none) visible_columns.stop = '0;
  endfunction

  function automatic dim_t less8(dim_t columns);
    return (columns > 16'd8) ? columns - 16'd8 : '0;
  endfunction

  // The destination is the writer's concern, and the instruction index the engine's.
  /* verilator lint_off UNUSEDSIGNAL */
  smx_operation_t op_q, op;
  /* verilator lint_on UNUSEDSIGNAL */
  logic active_q, first_q, upper_q, read_q, word_q;
  smx_pass_e pass_q, pass_next;
  sram_addr_t row_q, row_next, addr_q;  // start of the row, current word
  dim_t rows_left_q;
  span_t span_q, span_next;  // visible columns of the row
  dim_t skip_q, rem_q;  // columns from this octet on: until the first visible one, past the last
  dim_t begin_at;  // column at which a pass begins
  logic [13:0] left_q, octets;  // octets of the row still to write, and of a whole row
  logic fire, last, new_pass, new_row, first_word, word_next, keep;

  // The next row. After a row has begun, its place is found in one cycle, and its span in another.
  logic [1:0] ahead_q;
  dim_t head_left_q;  // rows of the head from this one on, then from the next one on
  place_t seen_q, seen;
  sram_addr_t row_ahead_q;
  span_t span_ahead_q, visible;

  // Twice the number of 16-column groups.
  assign octets = 14'({12'((17'(op.cols) + 17'd15) >> 4), 1'b0});

  assign fire = active_q && step_ready_i;
  assign last = (pass_q == SmxPassOut) ? left_q == 14'd1 : rem_q <= 16'd8;
  assign new_pass = start_i || (fire && last);
  assign new_row = !active_q || pass_q == SmxPassOut;  // with new_pass

  // Row and pass that begin with new_pass. An idle walk has the operation in its place before it
  // starts, so that start_i chooses nothing.
  assign op = active_q ? op_q : op_i;
  assign seen = active_q ? seen_q : place_t'(op_i.pos) + 1'b1;
  assign visible = visible_columns(op.causal, op.window, seen, op.cols);

  always_comb begin
    pass_next = SmxPassOut;
    if (new_row) pass_next = SmxPassMax;
    else if (pass_q == SmxPassMax && op_q.out == SmxOutProb8) pass_next = SmxPassSum;
    row_next  = row_q;
    span_next = span_q;
    if (!active_q) begin
      row_next  = op_i.src;
      span_next = visible;
    end else if (new_row) begin
      row_next  = row_ahead_q;
      span_next = span_ahead_q;
    end
    // Only the last pass goes over columns in front of the first visible one.
    begin_at   = {span_next.first[15:3], 3'd0};
    first_word = span_next.some;
    if (pass_next == SmxPassOut) begin
      begin_at   = '0;
      first_word = span_q.some && span_q.first < 16'd8;
    end
  end

  assign active_o = active_q;
  assign keep = word_q && op_q.score8 && !upper_q && rem_q > 16'd8;
  assign word_next = skip_q < 16'd16 && rem_q > 16'd8;
  assign step_o = '{valid: active_q, read: read_q, word: word_q, keep: keep, addr: addr_q};

  always_comb begin
    step_tag_o.step  = '{pass: pass_q, first: first_q, last: last};
    step_tag_o.upper = upper_q;
    for (int unsigned l = 0; l < RowLanes; l++) begin
      step_tag_o.visible[l] = dim_t'(l) >= skip_q && dim_t'(l) < rem_q;
    end
  end

  always_ff @(posedge clk_i) begin
    if (!rst_ni) begin
      active_q    <= 1'b0;
      op_q        <= '0;
      pass_q      <= SmxPassMax;
      first_q     <= 1'b0;
      upper_q     <= 1'b0;
      word_q      <= 1'b0;
      read_q      <= 1'b0;
      row_q       <= '0;
      addr_q      <= '0;
      rows_left_q <= '0;
      span_q      <= '0;
      skip_q      <= '0;
      rem_q       <= '0;
      left_q      <= '0;
    end else if (new_pass) begin
      first_q <= 1'b1;
      pass_q  <= pass_next;
      row_q   <= row_next;
      span_q  <= span_next;
      skip_q  <= span_next.first - begin_at;
      rem_q   <= span_next.stop - begin_at;
      left_q  <= octets;
      upper_q <= op.score8 && begin_at[3];
      word_q  <= first_word;
      read_q  <= first_word;
      addr_q  <= row_next + (op.score8 ? begin_at >> 4 : begin_at >> 3);
      if (start_i) begin
        active_q    <= 1'b1;
        op_q        <= op_i;
        rows_left_q <= op_i.rows;
      end else if (new_row) begin
        active_q    <= rows_left_q != 16'd1;
        rows_left_q <= rows_left_q - 1'b1;
      end
    end else if (fire) begin
      first_q <= 1'b0;
      skip_q  <= less8(skip_q);
      rem_q   <= less8(rem_q);
      left_q  <= left_q - 1'b1;
      upper_q <= op_q.score8 && !upper_q;
      word_q  <= word_next;
      read_q  <= word_next && !keep;
      if (!op_q.score8 || upper_q) addr_q <= addr_q + 1'b1;
    end
  end

  // The next row
  always_ff @(posedge clk_i) begin
    if (!rst_ni) begin
      ahead_q      <= '0;
      head_left_q  <= '0;
      seen_q       <= '0;
      row_ahead_q  <= '0;
      span_ahead_q <= '0;
    end else begin
      ahead_q <= {ahead_q[0], new_pass && new_row};
      if (start_i) begin
        head_left_q <= op_i.rows_per_head;
        seen_q      <= seen;
      end else if (ahead_q[0]) begin
        head_left_q <= (head_left_q == 16'd1) ? op_q.rows_per_head : head_left_q - 1'b1;
        seen_q      <= (head_left_q == 16'd1) ? place_t'(op_q.pos) + 1'b1 : seen_q + 1'b1;
        row_ahead_q <= row_q + op_q.src_pitch;
      end
      if (ahead_q[1]) span_ahead_q <= visible;
    end
  end

`ifndef SYNTHESIS
  StartWhenIdle_A :
  assert property (@(posedge clk_i) disable iff (!rst_ni) start_i |-> !active_q)
  else $error("npu_smx_walk: started before the last operation is through");
  NotEmpty_A :
  assert property (@(posedge clk_i) disable iff (!rst_ni)
                   start_i |-> op_i.rows != '0 && op_i.cols != '0 && op_i.rows_per_head != '0)
  else $error("npu_smx_walk: an operation without rows, columns or rows per head");
  AheadInTime_A :
  assert property (@(posedge clk_i) disable iff (!rst_ni) fire && last && new_row |-> ahead_q == '0)
  else $error("npu_smx_walk: a row ends before the next one's place is known");
`endif

endmodule
