// SPDX-License-Identifier: Apache-2.0
//
// Reads an operand from any byte address on, ahead of what is taken, and turns it so that each chunk
// begins with an element. A chunk says which of its elements is the first that cannot be read. Behind
// the first word that may not be read everything counts as denied, and nothing is asked for. Once the
// memory counts as silent, what has not come counts as late.

module npu_cop_reader
  import npu_cop_pkg::*;
#(
  parameter int unsigned Depth = 64  // words read ahead, a multiple of 8
) (
  input logic clk_i,  // clock
  input logic rst_ni, // reset, active low

  input cop_range_t range_i,  // what to read; with stop_i, not while the memory owes words
  input logic       bytes_i,  // a level: elements are bytes; else words
  input logic       stop_i,   // a level: asks for nothing more
  input logic       late_i,   // a level: nothing more comes

  output cop_read_req_t read_o,  // withdrawn by stop_i
  input  cop_read_rsp_t read_i,  // there is room for the words

  output cop_chunk_t chunk_o,  // what lies behind the last byte is arbitrary
  input  logic       ready_i   // takes the chunk
);

  localparam int unsigned Block = 8;  // words of the longest burst
  localparam int unsigned OpenW = $clog2(Depth + 1);
  localparam int unsigned WordsW = CountBits - 3;  // of a number of words

  typedef struct packed {
    logic         bad;   // the memory has not given it
    logic [127:0] data;
  } stored_t;

  typedef struct packed {
    cop_code_e    code;  // why it cannot be read
    logic [127:0] data;
  } word_t;

  typedef struct packed {
    logic [127:0] data;
    logic [4:0]   good;
    cop_code_e    code;
  } chunk_t;  // cop_chunk_t without valid

  // ---------------------------------------------------------------------------------------------
  // Asking
  // ---------------------------------------------------------------------------------------------
  logic [28:0] next_q;  // word to ask for; the highest bit says that the address space has ended
  logic [WordsW-1:0] left_q;  // words to ask for
  logic [OpenW-1:0] open_q;  // words asked for and not used, but for the last one
  logic more_q;  // there are words to ask for
  logic denied_q, denied, asks, last_burst, pop, pop_q;
  logic [3:0] to_block, words;

  assign to_block = 4'(Block) - {1'b0, next_q[2:0]};
  assign last_burst = left_q <= WordsW'(to_block);
  assign words = last_burst ? left_q[3:0] : to_block;
  assign asks = more_q && !denied_q && !next_q[28] && !stop_i && open_q <= OpenW'(Depth - Block);
  assign read_o = '{valid: asks, word: next_q[27:0], len: 3'(words - 4'd1)};
  assign denied = read_i.denied || (next_q[28] && more_q);

  always_ff @(posedge clk_i) begin
    if (!rst_ni) begin
      next_q   <= '0;
      left_q   <= '0;
      more_q   <= 1'b0;
      open_q   <= '0;
      pop_q    <= 1'b0;
      denied_q <= 1'b0;
    end else if (range_i.start) begin
      next_q   <= {1'b0, range_i.addr[31:4]};
      left_q   <= WordsW'((CountBits'(range_i.addr[3:0]) + range_i.bytes + CountBits'(15)) >> 4);
      more_q   <= 1'b1;
      open_q   <= '0;
      pop_q    <= 1'b0;
      denied_q <= 1'b0;
    end else begin
      pop_q <= pop;
      if (denied) denied_q <= 1'b1;
      if (read_i.ready) begin
        next_q <= next_q + 29'(words);
        left_q <= left_q - WordsW'(words);
      end
      // What a failure has left must not be asked for beside the next instruction.
      if (stop_i || (read_i.ready && last_burst)) more_q <= 1'b0;
      open_q <= open_q + (read_i.ready ? OpenW'(words) : '0) - OpenW'(pop_q);
    end
  end

  // ---------------------------------------------------------------------------------------------
  // Words, and behind them denied or late ones
  // ---------------------------------------------------------------------------------------------
  stored_t arrived, stored;
  word_t word;
  logic stored_valid, nothing_comes, word_valid, word_ready;

  assign arrived = '{bad: read_i.error, data: read_i.data};

  npu_flush_fifo #(
    .DataT(stored_t),
    .Depth(Depth)
  ) u_words (
    .clk_i,
    .rst_ni,
    .flush_i(range_i.start),
    .valid_i(read_i.valid),
    .ready_o(),
    .data_i (arrived),
    .valid_o(stored_valid),
    .ready_i(word_ready),
    .data_o (stored),
    .count_o()
  );

  assign nothing_comes = denied_q && open_q == '0;
  assign word_valid = stored_valid || nothing_comes || late_i;
  assign pop = stored_valid && word_ready;

  always_comb begin
    word = '{code: stored.bad ? CodeBus : CodeNone, data: stored.data};
    if (!stored_valid) word.code = nothing_comes ? CodeDenied : CodeTimeout;
  end

  // ---------------------------------------------------------------------------------------------
  // Chunks: out of one word, or of two. Some of them wait, so that who takes one does not wait for
  // the words; a queue of eight is a small memory.
  // ---------------------------------------------------------------------------------------------
  word_t low_q;
  logic low_valid_q, two, form, taken, room;
  logic [3:0] offset_q;
  cop_count_t bytes_q;  // not yet in a chunk
  logic [WordsW-1:0] words_q;  // not yet in low_q
  logic [4:0] used, in_low;
  logic [151:0] near;
  chunk_t chunk, oldest;

  assign used = (bytes_q > CountBits'(16)) ? 5'd16 : bytes_q[4:0];
  assign in_low = 5'd16 - {1'b0, offset_q};
  assign two = offset_q != '0 && bytes_q > CountBits'(in_low);
  assign form = low_valid_q && bytes_q != '0 && (!two || word_valid) && room;
  assign taken = word_valid && words_q != '0 && (!low_valid_q || form);
  assign word_ready = taken;

  // An element with bytes of both words has the lower code of the two.
  always_comb begin
    // By words, and then by bytes
    near       = 152'({word.data, low_q.data} >> {offset_q[3:2], 5'b00000});
    chunk.data = 128'(near >> {offset_q[1:0], 3'b000});
    chunk.good = 5'd16;
    chunk.code = word.code;
    if (low_q.code != CodeNone) begin
      chunk.good = '0;
      if (bytes_i || in_low >= 5'd4 || word.code == CodeNone || word.code > low_q.code)
        chunk.code = low_q.code;
    end else if (word.code != CodeNone) begin
      chunk.good = bytes_i ? in_low : {2'b00, in_low[4:2]};
    end
  end

  npu_flush_fifo #(
    .DataT(chunk_t),
    .Depth(8)
  ) u_chunks (
    .clk_i,
    .rst_ni,
    .flush_i(range_i.start),
    .valid_i(form),
    .ready_o(room),
    .data_i (chunk),
    .valid_o(chunk_o.valid),
    .ready_i(ready_i),
    .data_o (oldest),
    .count_o()
  );

  assign chunk_o.data = oldest.data;
  assign chunk_o.good = oldest.good;
  assign chunk_o.code = oldest.code;

  always_ff @(posedge clk_i) begin
    if (!rst_ni) begin
      low_q       <= '0;
      low_valid_q <= 1'b0;
      offset_q    <= '0;
      bytes_q     <= '0;
      words_q     <= '0;
    end else if (range_i.start) begin
      low_valid_q <= 1'b0;
      offset_q <= range_i.addr[3:0];
      bytes_q <= range_i.bytes;
      words_q <= WordsW'((CountBits'(range_i.addr[3:0]) + range_i.bytes + CountBits'(15)) >> 4);
    end else begin
      if (taken) low_q <= word;
      if (taken) low_valid_q <= 1'b1;
      else if (form) low_valid_q <= 1'b0;
      words_q <= words_q - WordsW'(taken);
      if (form) bytes_q <= bytes_q - CountBits'(used);
    end
  end

`ifndef SYNTHESIS
  HasRoom_A :
  assert property (@(posedge clk_i) disable iff (!rst_ni) open_q <= OpenW'(Depth))
  else $error("npu_cop_reader: more words are asked for than have room");
`endif

endmodule
