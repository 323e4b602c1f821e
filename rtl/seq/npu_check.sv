// SPDX-License-Identifier: Apache-2.0
//
// Folds prefix words into the words that they belong to and checks every instruction ahead of its
// dispatch. Opcode, fields and dimensions are checked at once; the ends of the operands take one
// cycle each on a single multiplier. Results queue up for the dispatcher, so that checking hides
// behind the barriers. A flush throws away what is checked and waits.

module npu_check
  import npu_pkg::*;
  import npu_isa_pkg::*;
  import npu_seq_pkg::*;
#(
  parameter int unsigned ArrayDim = 16,  // rows and columns of the array: 4, 8, 16 or 32
  // Rows of an accumulator bank: a power of two, 4 or more
  parameter int unsigned AccRows = 128,
  // Longest norm row, columns: a multiple of 16, 32 to 8192
  parameter int unsigned NormMax = 8192,
  // Formats of weights in the stream other than int8
  parameter bit NarrowFormats = 1'b1,
  parameter int unsigned SramWords = 16384  // words of the SRAM: a power of two from 256 to 65536
) (
  input logic clk_i,   // clock
  input logic rst_ni,  // reset, active low
  input logic flush_i, // pulse: what is checked and the word in hand are thrown away

  input  fetched_t        fetched_i,     // a word of the program
  output logic            word_ready_o,  // taken; independent of fetched_i.valid
  input  logic     [31:0] length_i,      // words of the program, steady while it runs

  output logic   entry_valid_o,  // stays until ready, data stable, unless flush_i withdraws it
  input  logic   entry_ready_i,  // taken; may depend on entry_valid_o
  output entry_t entry_o         // checked, with the error found; with entry_valid_o
);

  typedef enum logic [1:0] {
    StTake,
    StTerms,
    StHeads,
    StPush
  } state_e;

  state_e                   state_q;
  entry_t                   entry_q;
  logic      [NumTerms-1:0] left_q;  // products still to be formed
  logic                     no_end_q;  // the missing END has been reported

  logic                     has_prefix_q;
  prefix_t                  prefix_q;

  // The word at hand is checked while it is taken.
  error_e                   legal_error;
  mem_addr_t                legal_addr;
  term_t                    legal_term                                     [NumTerms];
  term_t                    terms_q                                        [NumTerms];
  logic                     check_heads;
  logic      [NumTerms-1:0] legal_left;
  instr_t                   word;
  assign word = instr_t'(fetched_i.word);

  npu_legal #(
    .ArrayDim(ArrayDim),
    .AccRows(AccRows),
    .NormMax(NormMax),
    .NarrowFormats(NarrowFormats)
  ) u_legal (
    .word_i       (word),
    .has_prefix_i (has_prefix_q),
    .prefix_i     (prefix_q),
    .length_i,
    .error_o      (legal_error),
    .error_addr_o (legal_addr),
    .term_o       (legal_term),
    .check_heads_o(check_heads)
  );

  always_comb begin
    for (int unsigned t = 0; t < NumTerms; t++) legal_left[t] = legal_term[t].valid;
  end

  logic queue_ready, is_prefix;
  assign word_ready_o = state_q == StTake;
  assign is_prefix    = word.opcode == OpPfx && legal_error == ErrNone;

  // One product per cycle, lowest number first
  term_t term;
  logic [2:0] number;
  always_comb begin
    number = '0;
    for (int unsigned t = NumTerms; t > 0; t--) if (left_q[t-1]) number = 3'(t - 1);
  end
  logic [36:0] product;
  logic [19:0] factor, addend, span;  // a span too long for 20 bits is too long for the SRAM
  logic outside;
  assign term    = terms_q[number];
  assign span    = (entry_q.span[36:20] == '0) ? entry_q.span[19:0] : '1;
  assign factor  = (term.uses_span && term.b == '0) ? span : term.b;
  assign addend  = term.uses_span ? span : term.c;
  assign product = 37'(term.a) * 37'(factor) + 37'(addend);
  assign outside = product + 37'(term.start) > 37'(SramWords);

  // M mod K by shifting subtraction
  logic [4:0] step_q;
  logic [16:0] rest_q, rest_shifted;
  dim_t dividend_q;
  assign rest_shifted = {rest_q[15:0], dividend_q[15]};

  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) begin
      state_q      <= StTake;
      entry_q      <= '0;
      left_q       <= '0;
      no_end_q     <= 1'b0;
      has_prefix_q <= 1'b0;
      prefix_q     <= '0;
      step_q       <= '0;
      rest_q       <= '0;
      dividend_q   <= '0;
      for (int unsigned t = 0; t < NumTerms; t++) terms_q[t] <= '0;
    end else if (flush_i) begin
      state_q      <= StTake;
      no_end_q     <= 1'b0;
      has_prefix_q <= 1'b0;
      prefix_q     <= '0;
    end else begin
      unique case (state_q)
        StTake: begin
          if (fetched_i.valid) begin
            if (is_prefix) begin
              has_prefix_q <= 1'b1;
              prefix_q     <= prefix_t'(fetched_i.word);
            end else begin
              has_prefix_q <= 1'b0;
              prefix_q <= '0;
              terms_q <= legal_term;
              left_q <= legal_left;
              step_q <= '0;
              rest_q <= '0;
              dividend_q <= word.m;
              entry_q <= '{
                  index: fetched_i.index,
                  word: word,
                  has_prefix: has_prefix_q,
                  prefix: prefix_q,
                  error: legal_error,
                  error_addr: legal_addr,
                  share: '0,
                  span: '0,
                  followed: fetched_i.followed
              };
              if (legal_error != ErrNone || legal_left == '0) state_q <= StPush;
              else state_q <= check_heads ? StHeads : StTerms;
            end
          end else if (fetched_i.past_end && !no_end_q) begin
            no_end_q <= 1'b1;
            entry_q  <= '{index: fetched_i.index, error: ErrNoEnd, default: '0};
            state_q  <= StPush;
          end
        end
        StHeads: begin
          // Sixteen steps, then the remainder is known.
          if (step_q == 5'd16) begin
            if (rest_q != '0) begin
              entry_q.error <= ErrBadDimension;
              state_q       <= StPush;
            end else begin
              state_q <= StTerms;
            end
          end else begin
            rest_q     <= (rest_shifted >= 17'(entry_q.word.k)) ? rest_shifted - 17'(entry_q.word.k)
                                                                : rest_shifted;
            dividend_q <= dividend_q << 1;
            step_q <= step_q + 1'b1;
          end
        end
        StTerms: begin
          if (32'(number) == TermShare) begin
            entry_q.share <= {product[25:0], 6'b0};
          end else if (32'(number) == TermSpan) begin
            entry_q.span <= product;
          end else if (outside && entry_q.error == ErrNone) begin
            entry_q.error      <= ErrSramRange;
            entry_q.error_addr <= {12'b0, term.start, 4'b0};
          end
          left_q[number] <= 1'b0;
          if ((left_q & (left_q - 1'b1)) == '0) state_q <= StPush;
        end
        StPush:  if (queue_ready) state_q <= StTake;
        default: state_q <= StTake;
      endcase
    end
  end

  npu_flush_fifo #(
    .DataT(entry_t),
    .Depth(4)
  ) u_queue (
    .clk_i,
    .rst_ni,
    .flush_i,
    .valid_i(state_q == StPush),
    .ready_o(queue_ready),
    .data_i (entry_q),
    .valid_o(entry_valid_o),
    .ready_i(entry_ready_i),
    .data_o (entry_o),
    .count_o()
  );

endmodule
