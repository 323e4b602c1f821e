// SPDX-License-Identifier: Apache-2.0
//
// Assembles the results of ROPE to whole words. Of a chunk of 16 pairs in halves the first lanes
// are a word, the second ones lie across two words and wait for what the next chunk adds. The word
// in which the second lanes begin also holds the last of the first ones: what belongs to it waits
// until the head's last chunk. So nothing is written before it has been read for the last time, and
// a head may be turned in place.

module npu_rope_pack (
  input logic clk_i,  // clock
  input logic rst_ni, // reset, active low

  // Pulse: a new operation, only while empty_o and !valid_i
  input logic                     start_i,
  input npu_pkg::sram_addr_t      dst_i,    // SRAM word where the first row goes, with start_i
  input npu_pkg::sram_addr_t      pitch_i,  // words from row to row, with start_i
  input npu_rows_pkg::rope_form_t form_i,   // steady from the cycle after start_i on

  input logic valid_i,  // four turned pairs; stays until ready, data stable
  output logic ready_o,  // taken; depends on tag_i and word_ready_i, not on valid_i
  // The walker's load orders are of no use here.
  /* verilator lint_off UNUSEDSIGNAL */
  input npu_rows_pkg::rope_tag_t tag_i,  // their place in chunk, head and row, with valid_i
  /* verilator lint_on UNUSEDSIGNAL */
  input logic [3:0][7:0] a_i,  // first lanes, int8, with valid_i
  input logic [3:0][7:0] b_i,  // second lanes, int8, with valid_i

  output npu_sram_pkg::sram_wr_req_t word_o,  // 16 lanes of int8; stays until ready, all stable
  input logic word_ready_i,  // taken; may depend on word_o.valid

  output logic empty_o  // no whole chunk waits to be written
);

  import npu_pkg::*;
  import npu_rows_pkg::*;

  typedef enum logic [1:0] {
    WordA,     // first lanes, or a word of neighbouring pairs
    WordB,     // second lanes
    WordAfter  // second lanes in one more word
  } word_e;

  typedef struct packed {
    logic first;
    logic head_last;
    logic row_last;
  } chunk_t;

  // Chunk that arrives
  lanes_t a_q, b_q, a, b;
  logic   take;

  // Chunk that is written
  logic   full_q;
  chunk_t chunk_q;
  lanes_t out_a_q, out_b_q;
  word_e word_q, word_next;
  logic more, leave;
  sram_addr_t addr;
  word_t low, high, begin_q, carry_q, merged, mixed;
  sram_addr_t pitch_q, row_q, head_q, addr_q, row_next, head_next;

  assign ready_o = !(tag_i.last && full_q && !leave);
  assign take = valid_i && ready_o;
  assign empty_o = !full_q;

  always_comb begin
    a = (tag_i.group == '0) ? lanes_t'(0) : a_q;
    b = (tag_i.group == '0) ? lanes_t'(0) : b_q;
    a[4*32'(tag_i.group)+:4] = a_i;
    b[4*32'(tag_i.group)+:4] = b_i;
  end

  always_ff @(posedge clk_i) begin
    if (take) begin
      a_q <= a;
      b_q <= b;
      if (tag_i.last) begin
        out_a_q <= a;
        out_b_q <= b;
        chunk_q <= '{first: tag_i.first, head_last: tag_i.head_last, row_last: tag_i.row_last};
      end
    end
  end

  // Words of a chunk
  assign {high, low} = {128'd0, word_t'(out_b_q)} << {form_i.tail, 3'd0};

  always_comb begin
    merged = word_t'(out_a_q);
    if (chunk_q.head_last) merged = merged | (chunk_q.first ? low : begin_q);
    for (int unsigned l = 0; l < 8; l++) mixed[16*l+:16] = {out_b_q[l], out_a_q[l]};

    word_next = WordA;
    more = 1'b0;
    if (!form_i.pairs) begin
      if (word_q == WordA && !chunk_q.first) begin
        word_next = WordB;
        more      = 1'b1;
      end else if (word_q != WordAfter && chunk_q.head_last && form_i.tail > 5'd8) begin
        word_next = WordAfter;
        more      = 1'b1;
      end
    end

    unique case (word_q)
      WordB:     word_o.data = low | carry_q;
      WordAfter: word_o.data = high;
      default:   word_o.data = form_i.pairs ? mixed : merged;
    endcase
    addr = addr_q;
    if (word_q != WordA) addr = addr + form_i.last_chunk;
    if (word_q == WordAfter) addr = addr + 1'b1;
    word_o.addr  = addr;
    word_o.valid = full_q;
  end

  assign leave     = full_q && word_ready_i && !more;
  assign row_next  = chunk_q.row_last ? row_q + pitch_q : row_q;
  assign head_next = chunk_q.row_last ? row_next : head_q + form_i.words;

  always_ff @(posedge clk_i) begin
    if (!rst_ni) begin
      full_q  <= 1'b0;
      word_q  <= WordA;
      pitch_q <= '0;
      row_q   <= '0;
      head_q  <= '0;
      addr_q  <= '0;
    end else begin
      full_q <= (take && tag_i.last) || (full_q && !leave);
      if (full_q && word_ready_i) word_q <= word_next;
      if (start_i) begin
        pitch_q <= pitch_i;
        row_q   <= dst_i;
        head_q  <= dst_i;
        addr_q  <= dst_i;
      end else if (leave) begin
        addr_q <= addr_q + 1'b1;
        if (chunk_q.head_last) begin
          row_q  <= row_next;
          head_q <= head_next;
          addr_q <= head_next;
        end
      end
    end
  end

  always_ff @(posedge clk_i) begin
    if (leave) begin
      carry_q <= high;
      if (chunk_q.first) begin_q <= low;
    end
  end

`ifndef SYNTHESIS
  StartWhenEmpty_A :
  assert property (@(posedge clk_i) disable iff (!rst_ni) start_i |-> empty_o && !valid_i)
  else $error("npu_rope_pack: started before the last operation is through");
  WordStable_A :
  assert property (@(posedge clk_i) disable iff (!rst_ni) word_o.valid && !word_ready_i |=> $stable(
      word_o
  ))
  else $error("npu_rope_pack: a word changed before it was taken");
`endif

endmodule
