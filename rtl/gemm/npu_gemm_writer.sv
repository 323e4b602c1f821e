// SPDX-License-Identifier: Apache-2.0
//
// Packs the beats of result rows to words of int8, int16 or int32 and writes them to SRAM, one per
// cycle, or drops them. A beat of less than a word waits for those that follow it in its row. A word
// that is not granted at once waits in a register, so that no path leads through the crossbar into
// post-processing. An instruction is reported as done when its last word has been accepted.

module npu_gemm_writer
  import npu_pkg::*;
  import npu_sram_pkg::*;
  import npu_isa_pkg::*;
  import npu_gemm_pkg::*;
#(
  parameter int unsigned Lanes = 16  // columns in a beat, a power of two
) (
  input logic clk_i,  // clock
  input logic rst_ni, // reset, active low

  input  logic                         beat_valid_i,  // stays until beat_ready_o
  // Its last word is taken, it waits for the next beat, or it is dropped; follows beat_ctrl_i
  output logic                         beat_ready_o,
  // Form and place of the beat, stable while beat_valid_i
  input  beat_ctrl_t                   beat_ctrl_i,
  // Results with sign, the wanted bits lowest, 0 past the row end; stable like beat_ctrl_i
  input  logic       [Lanes-1:0][31:0] beat_i,

  output sram_wr_req_t wr_req_o,    // word by word; stays until wr_ready_i, all stable
  input  logic         wr_ready_i,  // granted; may depend on wr_req_o.valid
  output logic         done_o       // pulse: an operation's last row is written or dropped
);

  localparam int unsigned MaxWords = (Lanes > 8) ? Lanes / 4 : 2;  // of a beat, or more

  logic [3:0] word_q;  // of the row
  logic [3:0] more;  // words of the beat behind its first
  logic last, drop, full;
  word_t [MaxWords-1:0] words;
  word_t word;

  // Words behind the first, where a word has so many elements
  function automatic logic [3:0] words_more(int unsigned elements);
    return (Lanes > elements) ? 4'(Lanes / elements - 1) : '0;
  endfunction

  always_comb begin
    words = '0;
    for (int unsigned l = 0; l < Lanes; l++) begin
      unique case (beat_ctrl_i.out)
        GemmOutInt16: words[l/8][16*(l%8)+:16] = beat_i[l][15:0];
        GemmOutInt32: words[l/4][32*(l%4)+:32] = beat_i[l];
        default:      words[l/16][8*(l%16)+:8] = beat_i[l][7:0];
      endcase
    end
    unique case (beat_ctrl_i.out)
      GemmOutInt16: more = words_more(8);
      GemmOutInt32: more = words_more(4);
      default:      more = words_more(16);
    endcase
  end

  if (Lanes < 16) begin : gen_part
    logic [3:0] byte_q;  // place of the beat in its word
    logic [3:0] reach;  // bytes of a beat, minus 1
    word_t part_q;  // the beats in front of it, 0 from byte_q on

    always_comb begin
      unique case (beat_ctrl_i.out)
        GemmOutInt16: reach = 4'(2 * Lanes - 1);
        GemmOutInt32: reach = 4'(4 * Lanes - 1);
        default:      reach = 4'(Lanes - 1);
      endcase
    end

    // Beats lie at multiples of their size.
    assign full = (byte_q | reach) == '1 || beat_ctrl_i.last;
    assign word = part_q | words[$clog2(MaxWords)'(word_q&more)] << {byte_q, 3'b0};

    always_ff @(posedge clk_i) begin
      if (!rst_ni) begin
        byte_q <= '0;
        part_q <= '0;
      end else if (beat_valid_i && beat_ready_o) begin
        byte_q <= full ? '0 : byte_q + reach + 4'd1;
        part_q <= full ? '0 : word;
      end
    end
  end else begin : gen_whole
    assign full = 1'b1;
    assign word = words[$clog2(MaxWords)'(word_q&more)];
  end

  logic held_q, held_done_q;  // the word of held_q waits for its grant; with it, done does
  sram_addr_t held_addr_q;
  word_t held_word_q;
  logic offer, step;

  assign last = word_q + 4'd1 == beat_ctrl_i.words;
  assign drop = beat_ctrl_i.out == GemmOutNone;
  assign offer = beat_valid_i && !drop && full && !held_q;
  assign step = last || (word_q & more) == more;  // no word of the beat is left
  assign beat_ready_o = !full || (!held_q && (drop || step));

  assign wr_req_o.valid = held_q || offer;
  assign wr_req_o.addr = held_q ? held_addr_q : beat_ctrl_i.addr + sram_addr_t'(word_q);
  assign wr_req_o.data = held_q ? held_word_q : word;
  assign done_o         = held_q ? held_done_q && wr_ready_i :
                          beat_valid_i && beat_ready_o && beat_ctrl_i.done && (drop || wr_ready_i);

  always_ff @(posedge clk_i) begin
    if (!rst_ni) begin
      word_q <= '0;
      held_q <= 1'b0;
    end else begin
      held_q <= wr_req_o.valid && !wr_ready_i;
      if (offer) word_q <= last ? '0 : word_q + 4'd1;
    end
  end

  always_ff @(posedge clk_i) begin
    if (offer) begin
      held_addr_q <= wr_req_o.addr;
      held_word_q <= word;
      held_done_q <= beat_ready_o && beat_ctrl_i.done;
    end
  end

endmodule
