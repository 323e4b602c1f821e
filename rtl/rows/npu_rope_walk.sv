// SPDX-License-Identifier: Apache-2.0
//
// Order of work of ROPE. A head is taken in chunks of 16 pairs of lanes (8 where neighbours are
// pairs, which is a word): the word of the first lanes, and the next word of the second lanes, then
// a cos/sin word for every four pairs. In halves the second lanes begin in the word that holds the
// end of the first ones, at any byte of it; that word is asked for ahead of the head's first chunk,
// unless it is the same word. The cos/sin row is read anew for every head. Addresses are running
// sums.

module npu_rope_walk (
  input logic clk_i,  // clock
  input logic rst_ni, // reset, active low

  input logic start_i,  // pulse: a new operation, only while active_o is low
  // The walker needs no destination and no instruction index.
  /* verilator lint_off UNUSEDSIGNAL */
  // ROPE of at least a row, a head and two lanes, with start_i
  input npu_operation_pkg::nrm_operation_t op_i,
  /* verilator lint_on UNUSEDSIGNAL */
  input npu_rows_pkg::rope_form_t form_i,  // of op_i while active_o is low, then steady
  // From the cycle after start_i until the last unit of work is taken
  output logic active_o,

  output npu_pkg::row_step_t      step_o,        // every step reads a word; stays until it is taken
  input  logic                    step_ready_i,  // taken; may depend on step_o.valid
  output npu_rows_pkg::rope_tag_t step_tag_o     // what the word is for, with step_o.valid
);

  import npu_pkg::*;

  typedef enum logic [1:0] {
    StEarly,  // first word of the second lanes
    StA,
    StB,
    StTurn    // cos/sin words
  } state_e;

  state_e state_q, state_next;
  logic active_q;
  logic [1:0] group_q;
  dim_t half_q, pairs_q, heads_q, heads_left_q, rows_left_q;  // pairs of the head from here on
  sram_addr_t pitch_q, turn_pitch_q, row_q, turn_row_q, head_q, a_q, b_q, turn_q;
  sram_addr_t row_next, head_next;
  logic fire, early, joined, chunk_last, chunk_end, head_end, row_end, new_head;

  // The first word of the second lanes: read on its own, together with that of the first, or not
  // at all where they begin with a word.
  assign joined = active_q && !form_i.pairs && form_i.last_chunk == '0 && !form_i.tail[4];
  assign early  = !form_i.pairs && form_i.last_chunk != '0 && !form_i.tail[4];

  npu_pkg::sram_addr_t addr;
  assign fire = active_q && step_ready_i;
  assign chunk_last = pairs_q <= (form_i.pairs ? 16'd8 : 16'd16);  // while lanes are read
  assign chunk_end = state_q == StTurn && (pairs_q <= 16'd4 ||
                                           group_q == (form_i.pairs ? 2'd1 : 2'd3));
  assign head_end = chunk_end && pairs_q <= 16'd4;
  assign row_end = heads_left_q == 16'd1;  // with head_end
  assign new_head = start_i || (fire && head_end);

  // Head that begins with new_head: of the operation while none is under way
  assign row_next = !active_q ? op_i.src : row_end ? row_q + pitch_q : row_q;
  assign head_next = (!active_q || row_end) ? row_next : head_q + form_i.words;

  always_comb begin
    unique case (state_q)
      StEarly: state_next = StA;
      // The second lanes of the last chunk may end in the word that is already there.
      StA:     state_next = (form_i.pairs || (chunk_last && form_i.tail <= 5'd8)) ? StTurn : StB;
      StB:     state_next = StTurn;
      default: state_next = chunk_end ? StA : StTurn;
    endcase
    if (new_head) state_next = early ? StEarly : StA;
  end

  assign active_o = active_q;
  assign addr = (state_q == StA) ? a_q : (state_q == StTurn) ? turn_q : b_q;
  assign step_o = '{valid: active_q, read: 1'b1, word: 1'b1, keep: 1'b0, addr: addr};
  assign step_tag_o = '{
          load_a: state_q == StA,
          load_b: state_q inside {StEarly, StB} || (state_q == StA && joined),
          group: group_q,
          pairs: (state_q != StTurn) ? '0 : (pairs_q <= 16'd4) ? pairs_q[2:0] : 3'd4,
          last: chunk_end,
          head_last: head_end,
          row_last: row_end
      };

  always_ff @(posedge clk_i) begin
    if (!rst_ni) begin
      active_q     <= 1'b0;
      state_q      <= StA;
      group_q      <= '0;
      half_q       <= '0;
      pairs_q      <= '0;
      heads_q      <= '0;
      heads_left_q <= '0;
      rows_left_q  <= '0;
      pitch_q      <= '0;
      turn_pitch_q <= '0;
      row_q        <= '0;
      turn_row_q   <= '0;
      head_q       <= '0;
      a_q          <= '0;
      b_q          <= '0;
      turn_q       <= '0;
    end else begin
      if (start_i || fire) state_q <= state_next;
      if (new_head) begin
        group_q <= '0;
        pairs_q <= active_q ? half_q : op_i.cols >> 1;
        row_q   <= row_next;
        head_q  <= head_next;
        a_q     <= head_next;
        b_q     <= head_next + form_i.last_chunk + sram_addr_t'(!early);
        turn_q  <= turn_row_q;
        if (start_i) begin
          active_q     <= 1'b1;
          half_q       <= op_i.cols >> 1;
          heads_q      <= op_i.heads;
          heads_left_q <= op_i.heads;
          rows_left_q  <= op_i.rows;
          pitch_q      <= op_i.src_pitch;
          turn_pitch_q <= op_i.param_pitch;
          turn_row_q   <= op_i.param;
          turn_q       <= op_i.param;
        end else if (row_end) begin
          active_q     <= rows_left_q != 16'd1;
          heads_left_q <= heads_q;
          rows_left_q  <= rows_left_q - 1'b1;
          turn_row_q   <= turn_row_q + turn_pitch_q;
          turn_q       <= turn_row_q + turn_pitch_q;
        end else begin
          heads_left_q <= heads_left_q - 1'b1;
        end
      end else if (fire) begin
        unique case (state_q)
          StA: a_q <= a_q + 1'b1;
          StTurn: begin
            turn_q  <= turn_q + 1'b1;
            pairs_q <= pairs_q - 16'd4;
            group_q <= chunk_end ? '0 : group_q + 1'b1;
          end
          default: b_q <= b_q + 1'b1;
        endcase
      end
    end
  end

`ifndef SYNTHESIS
  StartWhenIdle_A :
  assert property (@(posedge clk_i) disable iff (!rst_ni) start_i |-> !active_q)
  else $error("npu_rope_walk: started before the last operation is through");
  WholePairs_A :
  assert property (@(posedge clk_i) disable iff (!rst_ni)
                   start_i |-> op_i.rows != '0 && op_i.heads != '0 && op_i.cols != '0 &&
                   !op_i.cols[0])
  else $error("npu_rope_walk: an operation without rows, heads or lanes, or with half a pair");
`endif

endmodule
