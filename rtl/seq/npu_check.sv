// SPDX-License-Identifier: Apache-2.0
//
// Folds prefix words into the words that they belong to and checks every instruction ahead of its
// dispatch. Opcode, fields and dimensions are checked in one cycle; the ends of the operands take
// one each on a single multiplier, and one more until the last of them is compared. What needs no
// products leaves at once. A flush throws away what is checked and waits.

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

  typedef enum logic [2:0] {
    StLegal,
    StRest,   // what may leave no rest is divided
    StTerms,
    StLast,   // the last product is compared
    StPush
  } state_e;

  state_e                  state_q;
  entry_t                  entry_q;
  logic     [NumTerms-1:0] left_q;  // products still to be formed
  logic                    no_end_q;  // the missing END has been reported

  logic                    has_prefix_q;
  prefix_t                 prefix_q;

  // The word at hand; the next one waits here while products are formed.
  fetched_t                taken_q;
  sizes_t                  sizes_q;
  error_e legal_error, own_error;
  mem_addr_t legal_addr;
  term_t     legal_term [NumTerms];
  term_t     terms_q    [NumTerms];
  logic check_heads, check_lines;
  logic   [        16:0] lines_rest;
  logic   [NumTerms-1:0] legal_left;
  instr_t                word;
  logic                  bad;
  entry_t                own;  // if it needs no products
  assign word = instr_t'(taken_q.word);

  npu_legal #(
    .ArrayDim(ArrayDim),
    .AccRows(AccRows),
    .NormMax(NormMax),
    .NarrowFormats(NarrowFormats)
  ) u_legal (
    .word_i       (word),
    .has_prefix_i (has_prefix_q),
    .prefix_i     (prefix_q),
    .sizes_i      (sizes_q),
    .length_i,
    .error_o      (legal_error),
    .bad_o        (bad),
    .own_error_o  (own_error),
    .error_addr_o (legal_addr),
    .term_o       (legal_term),
    .check_heads_o(check_heads),
    .check_lines_o(check_lines),
    .lines_rest_o (lines_rest)
  );

  always_comb begin
    for (int unsigned t = 0; t < NumTerms; t++) legal_left[t] = legal_term[t].valid;
  end

  logic is_prefix, is_plain;
  assign word_ready_o = !taken_q.valid || state_q == StLegal;
  assign is_prefix = word.opcode == OpPfx && own_error == ErrNone;
  assign is_plain = word.opcode inside {OpNop, OpEnd, OpBarrier, OpLoop, OpSet};

  assign own = '{
          index: taken_q.index,
          word: word,
          has_prefix: has_prefix_q,
          prefix: prefix_q,
          error: own_error,
          error_addr: legal_addr,
          share: '0,
          span: '0,
          followed: taken_q.followed
      };

  // One product per cycle, lowest number first; it is compared in the next one. Which term is next,
  // one-hot, is known a cycle before.
  term_t term;
  logic [NumTerms-1:0] left, next_q, compared_q;
  logic product_valid_q, wait_span, form, outside;
  logic [36:0] product_q;
  sram_addr_t start_q;
  logic [19:0] factor, addend, span;  // a span too long for 20 bits is too long for the SRAM
  assign wait_span = product_valid_q && compared_q[TermSpan] && term.uses_span;
  assign form      = state_q == StTerms && !wait_span;
  assign span      = (entry_q.span[36:20] == '0) ? entry_q.span[19:0] : '1;
  assign factor    = term.b_is_span ? span : term.b;
  assign addend    = term.uses_span ? span : term.c;
  assign outside   = product_q + 37'(start_q) > 37'(SramWords);

  always_comb begin
    left = (state_q == StLegal) ? legal_left : left_q;
    if (form) left = left & ~next_q;
  end

  always_comb begin
    term = '0;
    for (int unsigned t = 0; t < NumTerms; t++) begin
      if (next_q[t]) term = term | terms_q[t];
    end
  end

  always_ff @(posedge clk_i) begin
    left_q     <= left;
    next_q     <= left & ~(left - 1'b1);
    product_q  <= 37'(term.a) * 37'(factor) + 37'(addend);
    compared_q <= next_q;
    start_q    <= term.start;
  end

  // M mod K by shifting subtraction; what lines have more than a row is there without
  localparam logic [4:0] RestSteps = 5'd16;
  logic [4:0] step_q;
  logic [16:0] rest_q, rest_shifted;
  dim_t dividend_q;
  assign rest_shifted = {rest_q[15:0], dividend_q[15]};

  always_ff @(posedge clk_i) begin
    if (!rst_ni) begin
      taken_q <= '0;
      sizes_q <= '0;
    end else if (flush_i) begin
      taken_q.valid    <= 1'b0;
      taken_q.past_end <= 1'b0;
    end else if (word_ready_o) begin
      taken_q <= fetched_i;
      sizes_q <= sizes_of(instr_t'(fetched_i.word), tile_edge(ArrayDim));
    end
  end

  always_ff @(posedge clk_i) begin
    if (!rst_ni) begin
      state_q         <= StLegal;
      entry_q         <= '0;
      product_valid_q <= 1'b0;
      no_end_q        <= 1'b0;
      has_prefix_q    <= 1'b0;
      prefix_q        <= '0;
      step_q          <= '0;
      rest_q          <= '0;
      dividend_q      <= '0;
      for (int unsigned t = 0; t < NumTerms; t++) terms_q[t] <= '0;
    end else if (flush_i) begin
      state_q         <= StLegal;
      product_valid_q <= 1'b0;
      no_end_q        <= 1'b0;
      has_prefix_q    <= 1'b0;
      prefix_q        <= '0;
    end else begin
      product_valid_q <= form;
      if (product_valid_q) begin
        if (compared_q[TermShare]) begin
          entry_q.share <= {product_q[25:0], 6'b0};
        end else if (compared_q[TermSpan]) begin
          entry_q.span <= product_q;
        end else if (outside && entry_q.error == ErrNone) begin
          entry_q.error      <= ErrSramRange;
          entry_q.error_addr <= {12'b0, start_q, 4'b0};
        end
      end
      unique case (state_q)
        StLegal: begin
          step_q     <= check_lines ? RestSteps : '0;
          rest_q     <= check_lines ? lines_rest : '0;
          dividend_q <= word.m;
          terms_q    <= legal_term;
          if (taken_q.valid) begin
            entry_q       <= own;
            entry_q.error <= legal_error;
            has_prefix_q  <= is_prefix;
            prefix_q      <= is_prefix ? prefix_t'(word) : '0;
            if (is_plain) begin
              if (!entry_ready_i) state_q <= StPush;
            end else if (bad || (legal_left == '0 && word.opcode != OpPfx)) begin
              state_q <= StPush;
            end else if (word.opcode != OpPfx) begin
              state_q <= (check_heads || check_lines) ? StRest : StTerms;
            end
          end else if (taken_q.past_end && !no_end_q) begin
            no_end_q <= 1'b1;
            entry_q  <= '{index: taken_q.index, error: ErrNoEnd, default: '0};
            state_q  <= StPush;
          end
        end
        StRest: begin
          if (step_q == RestSteps) begin
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
        StTerms: if (form && left == '0) state_q <= StLast;
        StLast:  state_q <= StPush;
        StPush:  if (entry_ready_i) state_q <= StLegal;
        default: state_q <= StLegal;
      endcase
    end
  end

  assign entry_valid_o = state_q == StPush || (state_q == StLegal && taken_q.valid && is_plain);
  assign entry_o       = (state_q == StLegal) ? own : entry_q;

endmodule
