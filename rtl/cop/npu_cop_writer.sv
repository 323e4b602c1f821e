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

  input cop_group_t group_i,  // results; withdrawn by drop_i
  input logic [3:0] size_i,  // their bytes, 1 to 8, with group_i.valid
  output logic ready_o,  // takes the group, or the part before one that may not be written

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

  always_ff @(posedge clk_i or negedge rst_ni) begin
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
  logic [3:0] at_q, in_first, good;  // place of the next byte; bytes that may be written
  logic [  4:0] behind;
  logic [183:0] moved;
  logic [ 22:0] moved_strb;
  logic [  7:0] kept;
  logic crosses, take, full, denied_q, known;
  logic [127:0] data_q, merged;
  logic [15:0] strb_q, merged_strb;

  assign behind = {1'b0, at_q} + {1'b0, size_i};
  assign crosses = behind > 5'd16;
  // Whole elements in front of the next word: those of four bytes may lie across its border.
  assign in_first = bytes_i ? 4'(5'd16 - {1'b0, at_q}) : 4'((5'd16 - {1'b0, at_q}) & 5'b11100);
  // A group that does not fill the word needs nothing of the next one.
  assign known = (known_q == 2'd2 || (known_q == 2'd1 && !behind[4])) && !denied_q;
  assign good = !this_ok_q ? '0 : (crosses && !next_ok_q) ? in_first : size_i;
  assign moved = 184'(group_i.data) << {at_q, 3'b000};
  assign kept = 8'((9'd1 << good) - 9'd1);
  assign moved_strb = {15'b0, kept} << at_q;

  for (genvar b = 0; b < 16; b++) begin : gen_byte
    assign merged[8*b+:8] = moved_strb[b] ? moved[8*b+:8] : data_q[8*b+:8];
  end
  assign merged_strb = strb_q | moved_strb[15:0];

  // ---------------------------------------------------------------------------------------------
  // Words to ask for
  // ---------------------------------------------------------------------------------------------
  logic room, flush, active;
  cop_write_req_t word_out_q;

  assign room = !word_out_q.valid || write_i.ready;
  assign active  = !drop_i && !range_i.start;
  assign take    = group_i.valid && known && (!behind[4] || room) && active;
  assign full    = take && good == size_i && behind[4];
  assign flush   = (denied_q || (flush_i && !group_i.valid)) && strb_q != '0 && room && active;
  assign emit = full;
  assign ready_o = take;

  always_ff @(posedge clk_i or negedge rst_ni) begin
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
        at_q     <= at_q + good;
        taken_o  <= taken_o + CountBits'(good);
        denied_q <= good != size_i;
        data_q   <= full ? 128'(moved[183:128]) : merged;
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
  logic [3:0] skipped_q;  // bytes of the first word in front of the range
  logic [CountBits:0] end_q;  // end of the words that are answered, from the start of the first one

  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) begin
      skipped_q <= '0;
      end_q     <= '0;
      failed_q  <= 1'b0;
    end else if (range_i.start) begin
      skipped_q <= range_i.addr[3:0];
      end_q     <= '0;
      failed_q  <= 1'b0;
    end else if (write_i.done) begin
      failed_q <= failed_q || write_i.error;
      if (!failed_q && !write_i.error) end_q <= end_q + (CountBits + 1)'(16);
    end
  end

  // The last word may reach behind what was taken.
  always_comb begin
    answered_o = (end_q == '0) ? '0 : CountBits'(end_q - (CountBits + 1)'(skipped_q));
    if (answered_o > taken_o) answered_o = taken_o;
  end

endmodule
