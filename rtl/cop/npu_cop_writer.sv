// SPDX-License-Identifier: Apache-2.0
//
// Packs results into words at any byte address and counts what the memory has answered. Whether the
// word that is filled and the one behind it may be written is known before a byte of an element is
// taken: an element that reaches into a word that may not be written leaves no byte at all, and what
// comes behind it is not taken either.

module npu_cop_writer
  import npu_mem_pkg::*;
  import npu_stream_pkg::*;
  import npu_cop_pkg::*;
(
  input logic clk_i,  // clock
  input logic rst_ni, // reset, active low

  input cop_range_t range_i,  // where to write; not while the memory owes answers
  input logic       bytes_i,  // a level: elements are bytes; else words
  input logic       drop_i,   // a level: takes nothing, forgets what is not yet asked for
  input logic       flush_i,  // a level: nothing more comes, write what there is

  input logic eights_i,  // a level: groups have 8 bytes, the last one up to 8; else 4
  input cop_group_t group_i,  // results; withdrawn by drop_i
  input logic [3:0] size_i,  // their bytes, 1 to 8, with group_i.valid
  // Takes a group, or the part before one that may not be written; does not depend on it
  output logic ready_o,

  // Protection
  input regions_t      regions_i,  // what the pages of memory permit; counts for what is asked now
  input stream_range_t stream_i,   // a level: no writes to these bytes; none if the length is 0

  output cop_write_req_t write_o,  // withdrawn by drop_i
  input  cop_write_rsp_t write_i,  // answers in order

  // Of the range, in bytes from its start
  output logic       denied_o,    // a level: the next element may not be written
  output cop_count_t taken_o,     // where the next group goes
  output cop_count_t answered_o,  // up to here everything is written
  output logic       empty_o      // a level: nothing waits here to be asked for
);

  // ---------------------------------------------------------------------------------------------
  // The words ahead: one guard looks at each once. Behind the last word of the address space none
  // may be written.
  // ---------------------------------------------------------------------------------------------
  logic [28:0] probe_q;  // word that the guard looks at
  logic [ 1:0] known_q;  // of the words from word_q on, the verdicts that are known
  logic allowed, this_ok_q, next_ok_q, emit;
  logic [28:0] word_q;  // that is filled

  npu_mem_guard #(
    .Write(1'b1)
  ) u_guard (
    .addr_i   ({probe_q[27:0], 4'b0}),
    .len_i    ('0),
    .regions_i,
    .stream_i,
    .allowed_o(allowed)
  );

  always_ff @(posedge clk_i) begin
    if (!rst_ni) begin
      probe_q   <= '0;
      word_q    <= '0;
      known_q   <= '0;
      this_ok_q <= 1'b0;
      next_ok_q <= 1'b0;
    end else if (range_i.start) begin
      probe_q <= {1'b0, range_i.addr[31:4]};
      word_q  <= {1'b0, range_i.addr[31:4]};
      known_q <= '0;
    end else begin
      if (known_q != 2'd2) probe_q <= probe_q + 1'b1;
      if (emit) begin
        word_q    <= word_q + 1'b1;
        this_ok_q <= next_ok_q;
        known_q   <= known_q - 1'b1;
      end
      if (known_q == 2'd0) this_ok_q <= allowed && !probe_q[28];
      if (known_q == 2'd1) next_ok_q <= allowed && !probe_q[28];
      if (known_q != 2'd2) known_q <= known_q + 1'b1;
    end
  end

  // ---------------------------------------------------------------------------------------------
  // A group, as far as it may be written, into the bytes of the word and of the next one
  // ---------------------------------------------------------------------------------------------
  logic [3:0] at_q;  // place of the next byte
  // Ends, from the start of the word: of the group, of the elements that lie in this word, of what
  // may be written of a group that is cut, and of what is written
  logic [4:0] behind, border, cut_limit, limit;
  logic [3:0] cut_size, good;  // bytes that are written of a group that is cut, and of this one
  logic [63:0] turned;
  logic [22:0] moved_strb;
  logic crosses, cut, take, full, denied_q, reaches, known, room;
  logic [127:0] data_q, merged;
  logic [15:0] strb_q, merged_strb;

  assign behind = {1'b0, at_q} + {1'b0, size_i};
  assign crosses = behind[4] && behind[3:0] != '0;
  // An element of four bytes may lie across the border of the word.
  assign border = (bytes_i || at_q[1:0] == '0) ? 5'd16 : {3'b011, at_q[1:0]};
  // A group that does not reach the end of the word needs nothing of the next one. The last group may
  // be a small one; it waits as if it were not, so that who takes a group need not look at its size.
  assign reaches = at_q[3] && (eights_i || at_q[2]);
  assign known = reaches ? known_q == 2'd2 && room : known_q != 2'd0;
  assign cut = !this_ok_q || (crosses && !next_ok_q);
  assign cut_limit = this_ok_q ? border : {1'b0, at_q};
  assign cut_size = 4'(cut_limit - {1'b0, at_q});
  assign limit = cut ? cut_limit : behind;
  assign good = cut ? cut_size : size_i;
  // The group turned so that each byte lies where it belongs, in this word or the next one
  assign turned = 64'(({2{group_i.data}} << {at_q[2:0], 3'b000}) >> 64);
  assign moved_strb = (23'h7f_ffff << at_q) & ~(23'h7f_ffff << limit);

  for (genvar b = 0; b < 16; b++) begin : gen_byte
    assign merged[8*b+:8] = moved_strb[b] ? turned[8*(b%8)+:8] : data_q[8*b+:8];
  end
  assign merged_strb = strb_q | moved_strb[15:0];

  // ---------------------------------------------------------------------------------------------
  // Words to ask for
  // ---------------------------------------------------------------------------------------------
  logic flush;
  cop_write_req_t word_out_q;

  // A word is filled in two cycles at least: one that is taken in the next one delays nothing.
  assign room = !word_out_q.valid;
  assign ready_o = known && !denied_q && !drop_i;
  assign take    = group_i.valid && ready_o;
  assign full    = take && !cut && behind[4];
  assign flush   = (denied_q || (flush_i && !group_i.valid)) && strb_q != '0 && room && !drop_i;
  assign emit = full;

  always_ff @(posedge clk_i) begin
    if (!rst_ni) begin
      at_q       <= '0;
      data_q     <= '0;
      strb_q     <= '0;
      denied_q   <= 1'b0;
      taken_o    <= '0;
      word_out_q <= '0;
    end else if (range_i.start) begin
      at_q             <= range_i.addr[3:0];
      strb_q           <= '0;
      denied_q         <= 1'b0;
      taken_o          <= '0;
      word_out_q.valid <= 1'b0;
    end else if (drop_i) begin
      strb_q           <= '0;
      word_out_q.valid <= 1'b0;
    end else begin
      if (take) begin
        at_q     <= limit[3:0];
        taken_o  <= taken_o + CountBits'(good);
        denied_q <= cut;
        data_q   <= full ? {2{turned}} : merged;
        strb_q   <= full ? {9'b0, moved_strb[22:16]} : merged_strb;
      end
      if (flush) strb_q <= '0;
      if (full || flush)
        word_out_q <= '{
            valid: 1'b1,
            word: word_q[27:0],
            data: full ? merged : data_q,
            strb: full ? merged_strb : strb_q
        };
      else if (write_i.ready) word_out_q.valid <= 1'b0;
    end
  end

  // What is forgotten in this cycle is not asked for any more.
  always_comb begin
    write_o = word_out_q;
    if (drop_i) write_o.valid = 1'b0;
  end

  assign denied_o = denied_q;
  assign empty_o  = strb_q == '0 && !word_out_q.valid;

  // ---------------------------------------------------------------------------------------------
  // Answers: the first one says that the bytes up to the end of the first word are written
  // ---------------------------------------------------------------------------------------------
  logic failed_q;  // one was not written: those behind it do not count
  cop_count_t end_q;  // of the next word to be answered

  always_ff @(posedge clk_i) begin
    if (!rst_ni) begin
      answered_o <= '0;
      end_q      <= '0;
      failed_q   <= 1'b0;
    end else if (range_i.start) begin
      answered_o <= '0;
      end_q      <= CountBits'(16) - CountBits'(range_i.addr[3:0]);
      failed_q   <= 1'b0;
    end else if (write_i.done) begin
      failed_q <= failed_q || write_i.error;
      if (!failed_q && !write_i.error) begin
        // The last word may reach behind what was taken.
        answered_o <= (end_q < taken_o) ? end_q : taken_o;
        end_q      <= end_q + CountBits'(16);
      end
    end
  end

endmodule
