// SPDX-License-Identifier: Apache-2.0
//
// Reads an operand from any byte address on, ahead of what is taken, and turns it so that each chunk
// begins with an element. Words that fail come as bytes that are marked; behind the first one that
// may not be read everything counts as denied, and nothing is asked for. Once the memory counts as
// silent, what has not come counts as late.

module npu_cop_reader
  import npu_cop_pkg::*;
#(
  parameter int unsigned Depth = 64  // words read ahead, a multiple of 8
) (
  input logic clk_i,  // clock
  input logic rst_ni, // reset, active low

  input cop_range_t range_i,  // what to read; not while the memory owes words
  input logic       stop_i,   // a level: asks for nothing more
  input logic       late_i,   // a level: nothing more comes

  output cop_read_req_t read_o,  // withdrawn by stop_i and with the start
  input  cop_read_rsp_t read_i,  // there is room for the words

  output cop_chunk_t chunk_o,  // what lies behind the last byte is arbitrary
  input  logic       ready_i   // takes the chunk
);

  localparam int unsigned Block = 8;  // words of the longest burst
  localparam int unsigned OpenW = $clog2(Depth + 1);
  localparam int unsigned WordsW = CountBits - 3;  // of a number of words

  typedef struct packed {
    logic         denied;
    logic         bad;
    logic         late;
    logic [127:0] data;
  } word_t;

  // ---------------------------------------------------------------------------------------------
  // Asking
  // ---------------------------------------------------------------------------------------------
  logic [28:0] next_q;  // word to ask for; the highest bit says that the address space has ended
  logic [WordsW-1:0] left_q;  // words to ask for
  logic [OpenW-1:0] open_q;  // words asked for and not used
  logic denied_q, denied, pop;
  logic [3:0] to_block, words;

  assign to_block = 4'(Block) - {1'b0, next_q[2:0]};
  assign words = (left_q < WordsW'(to_block)) ? left_q[3:0] : to_block;
  assign read_o = '{
          valid:
          left_q
          != '0 && !
          denied_q
          && !
          next_q[28]
          && !
          stop_i
          && !
          range_i.start
          &&
          open_q
          <=
          OpenW
          '(
          Depth - Block
          ),
          word: next_q[27:0],
          len: 3'(words - 4'd1)
      };
  assign denied = read_i.denied || (next_q[28] && left_q != '0);

  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) begin
      next_q   <= '0;
      left_q   <= '0;
      open_q   <= '0;
      denied_q <= 1'b0;
    end else if (range_i.start) begin
      next_q   <= {1'b0, range_i.addr[31:4]};
      left_q   <= WordsW'((CountBits'(range_i.addr[3:0]) + range_i.bytes + CountBits'(15)) >> 4);
      open_q   <= '0;
      denied_q <= 1'b0;
    end else begin
      if (denied) denied_q <= 1'b1;
      if (read_i.ready) begin
        next_q <= next_q + 29'(words);
        left_q <= left_q - WordsW'(words);
      end
      open_q <= open_q + (read_i.ready ? OpenW'(words) : '0) - OpenW'(pop);
    end
  end

  // ---------------------------------------------------------------------------------------------
  // Words, and behind them denied or late ones
  // ---------------------------------------------------------------------------------------------
  word_t arrived, stored, word;
  logic stored_valid, nothing_comes, word_valid, word_ready;

  assign arrived = '{bad: read_i.error, data: read_i.data, default: '0};

  npu_flush_fifo #(
    .DataT(word_t),
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
    word = stored;
    if (!stored_valid) word = '{denied: nothing_comes, late: !nothing_comes, default: '0};
  end

  // ---------------------------------------------------------------------------------------------
  // Chunks: out of one word, or of two
  // ---------------------------------------------------------------------------------------------
  word_t low_q;
  logic low_valid_q, two, form, taken;
  logic [3:0] offset_q;
  cop_count_t bytes_q;  // not yet in a chunk
  logic [WordsW-1:0] words_q;  // not yet in low_q
  logic [4:0] used;
  cop_chunk_t chunk;

  assign used = (bytes_q > CountBits'(16)) ? 5'd16 : bytes_q[4:0];
  assign two = {1'b0, offset_q} + used > 5'd16;
  assign form = low_valid_q && bytes_q != '0 && (!two || word_valid) &&
                (!chunk_o.valid || ready_i) && !range_i.start;
  assign taken = word_valid && words_q != '0 && (!low_valid_q || form) && !range_i.start;
  assign word_ready = taken;

  always_comb begin
    chunk.valid = 1'b1;
    chunk.data  = 128'({word.data, low_q.data} >> {offset_q, 3'b000});
    for (int unsigned i = 0; i < 16; i++) begin
      automatic logic high = {1'b0, offset_q} + 5'(i) >= 5'd16;
      chunk.denied[i] = high ? word.denied : low_q.denied;
      chunk.bad[i]    = high ? word.bad : low_q.bad;
      chunk.late[i]   = high ? word.late : low_q.late;
    end
  end

  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) begin
      low_q       <= '0;
      low_valid_q <= 1'b0;
      offset_q    <= '0;
      bytes_q     <= '0;
      words_q     <= '0;
      chunk_o     <= '0;
    end else if (range_i.start) begin
      low_valid_q <= 1'b0;
      offset_q <= range_i.addr[3:0];
      bytes_q <= range_i.bytes;
      words_q <= WordsW'((CountBits'(range_i.addr[3:0]) + range_i.bytes + CountBits'(15)) >> 4);
      chunk_o.valid <= 1'b0;
    end else begin
      if (taken) low_q <= word;
      if (taken) low_valid_q <= 1'b1;
      else if (form) low_valid_q <= 1'b0;
      words_q <= words_q - WordsW'(taken);
      if (form) begin
        chunk_o <= chunk;
        bytes_q <= bytes_q - CountBits'(used);
      end else if (ready_i) begin
        chunk_o.valid <= 1'b0;
      end
    end
  end

`ifndef SYNTHESIS
  HasRoom_A :
  assert property (@(posedge clk_i) disable iff (!rst_ni) open_q <= OpenW'(Depth))
  else $error("npu_cop_reader: more words are asked for than have room");
`endif

endmodule
