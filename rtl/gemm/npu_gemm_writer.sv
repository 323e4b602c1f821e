// SPDX-License-Identifier: Apache-2.0
//
// Writes result rows to SRAM as int8, int16 or int32, one word per cycle, or drops them, and reports
// an instruction as done when its last word has been accepted.

module npu_gemm_writer
  import npu_pkg::*;
  import npu_sram_pkg::*;
  import npu_isa_pkg::*;
  import npu_gemm_pkg::*;
#(
  parameter int unsigned Edge = 16  // tile edge in elements, 16 or 32
) (
  input logic clk_i,  // clock
  input logic rst_ni, // reset, active low

  input  logic                       row_valid_i,  // stays until row_ready_o
  // Its last word is taken or it is dropped; depends on wr_ready_i
  output logic                       row_ready_o,
  // Form and place of the row, stable while row_valid_i
  input  row_ctrl_t                  row_ctrl_i,
  // Results with sign, the wanted bits lowest; stable like row_ctrl_i
  input  logic      [Edge-1:0][31:0] row_i,

  output sram_wr_req_t wr_req_o,    // word by word; stays until wr_ready_i, all stable
  input  logic         wr_ready_i,  // granted; may depend on wr_req_o.valid
  output logic         done_o       // pulse: an operation's last row is written or dropped
);

  localparam int unsigned MaxWords = Edge / 4;

  logic [3:0] word_q;
  logic last, drop;
  word_t [MaxWords-1:0] words;

  always_comb begin
    words = '0;
    for (int unsigned c = 0; c < Edge; c++) begin
      unique case (row_ctrl_i.out)
        GemmOutInt16: words[c/8][16*(c%8)+:16] = row_i[c][15:0];
        GemmOutInt32: words[c/4][32*(c%4)+:32] = row_i[c];
        default:      words[c/16][8*(c%16)+:8] = row_i[c][7:0];
      endcase
    end
  end

  assign last           = word_q + 4'd1 == row_ctrl_i.words;
  assign drop           = row_ctrl_i.out == GemmOutNone;
  assign wr_req_o.valid = row_valid_i && !drop;
  assign wr_req_o.addr  = row_ctrl_i.addr + sram_addr_t'(word_q);
  assign wr_req_o.data  = words[$clog2(MaxWords)'(word_q)];
  assign row_ready_o    = drop || (wr_ready_i && last);
  assign done_o         = row_valid_i && row_ready_o && row_ctrl_i.done;

  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) word_q <= '0;
    else if (wr_req_o.valid && wr_ready_i) word_q <= last ? '0 : word_q + 4'd1;
  end

endmodule
