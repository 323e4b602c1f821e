// SPDX-License-Identifier: Apache-2.0
//
// Parameters of a norm, loaded once per instruction and kept for all its rows: the epsilon term
// from the header of the share, and one record of four bytes per column. They come from SRAM, a
// word at a time, of which the header is one; or from the stream, whose lines are written as many
// records at a time as are read. Reading gives the records of a slice of columns one cycle later.

module npu_norm_param #(
  parameter int unsigned Lanes = 8,  // columns of a slice, 4 or 8
  parameter int unsigned NormMax = 8192  // longest row in columns, a multiple of 16 from 32 to 8192
) (
  input logic clk_i,  // clock
  input logic rst_ni, // reset, active low

  input logic          start_i,        // pulse: forget what was loaded; not while streaming_o
  input logic          from_stream_i,  // load from the stream, else from SRAM; with start_i
  input npu_pkg::dim_t cols_i,         // columns of a row, 1 to NormMax, with start_i

  // From SRAM
  input logic           word_valid_i,  // never refused; not while lines are missing
  input npu_pkg::word_t word_i,        // header first, then four records each, with word_valid_i

  // From the stream
  input npu_stream_pkg::share_line_t share_i,  // header first, then 16 records each
  // Ready: from registers, once for each line that is missing
  output npu_stream_pkg::share_take_t share_o,
  output logic streaming_o,  // lines are missing

  output logic        eps_valid_o,  // the header has come: a level until the next start_i
  output logic [63:0] eps_o,        // epsilon term, unsigned, with eps_valid_o
  output logic [11:0] slices_o,     // slices whose records are loaded; those below can be read

  input logic read_i,  // read the records of a slice
  input logic [10:0] slice_i,  // index inside the row, below slices_o; with read_i
  // Of its columns, one cycle after read_i, until the next read_i
  output npu_rows_pkg::norm_record_t [Lanes-1:0] record_o
);

  import npu_pkg::*;
  import npu_rows_pkg::*;

  typedef norm_record_t [Lanes-1:0] slice_t;

  localparam int unsigned Banks = Lanes / 4;  // of a word each
  localparam int unsigned BankW = $clog2(Banks);
  localparam int unsigned Rows = NormMax / Lanes;
  localparam int unsigned RowW = $clog2(Rows);
  localparam logic [1:0] LastWords = 2'(4 - Banks);  // of a line: where its last slice begins

  if (Lanes != 4 && Lanes != 8) begin : gen_bad_lanes
    $fatal(1, "npu_norm_param: Lanes = %0d, must be 4 or 8", Lanes);
  end
  if (NormMax < 32 || NormMax > 8192 || NormMax % 16 != 0) begin : gen_bad_norm_max
    $fatal(1, "npu_norm_param: NormMax = %0d, must be a multiple of 16 from 32 to 8192", NormMax);
  end

  logic streaming_q, eps_valid_q, line, last, end_of_line;
  logic [63:0] eps_q;
  logic [11:0] words_q;  // words of records loaded
  logic [9:0] last_row_q;
  logic [Banks-1:0] write;
  word_t [Banks-1:0] data, read;

  assign streaming_o   = streaming_q;
  assign share_o.ready = streaming_q && end_of_line;
  assign share_o.last  = last;
  assign end_of_line   = !eps_valid_q || words_q[1:0] == LastWords;
  assign last          = streaming_q && eps_valid_q && words_q[11:2] == last_row_q;
  assign line          = share_i.valid && streaming_q;
  assign eps_valid_o   = eps_valid_q;
  assign eps_o         = eps_q;
  assign slices_o      = words_q >> BankW;

  always_comb begin
    for (int unsigned b = 0; b < Banks; b++) begin
      data[b]  = streaming_q ? share_i.data[128*(32'(words_q[1:0])/Banks*Banks+b)+:128] : word_i;
      write[b] = eps_valid_q && (line || (word_valid_i && 32'(words_q) % Banks == b));
    end
  end

  always_ff @(posedge clk_i) begin
    if (!rst_ni) begin
      streaming_q <= 1'b0;
      eps_valid_q <= 1'b0;
      eps_q       <= '0;
      words_q     <= '0;
      last_row_q  <= '0;
    end else if (start_i) begin
      streaming_q <= from_stream_i;
      eps_valid_q <= 1'b0;
      words_q     <= '0;
      last_row_q  <= 10'((cols_i - 1'b1) >> 4);
    end else begin
      if (line && last && end_of_line) streaming_q <= 1'b0;
      if (line || word_valid_i) begin
        eps_valid_q <= 1'b1;
        if (!eps_valid_q) eps_q <= data[0][63:0];
        else words_q <= words_q + (line ? 12'(Banks) : 12'd1);
      end
    end
  end

  for (genvar b = 0; b < int'(Banks); b++) begin : gen_bank
    npu_memory #(
      .DataT(word_t),
      .Rows (Rows)
    ) u_memory (
      .clk_i,
      .rd_en_i  (read_i),
      .rd_row_i (slice_i[RowW-1:0]),
      .rd_data_o(read[b]),
      .wr_en_i  (write[b]),
      .wr_row_i (words_q[BankW+:RowW]),
      .wr_data_i(data[b])
    );
  end

  assign record_o = slice_t'(read);

`ifndef SYNTHESIS
  StartFits_A :
  assert property (@(posedge clk_i) disable iff (!rst_ni)
                   start_i |-> cols_i != '0 && 32'(cols_i) <= NormMax && !streaming_q)
  else
    $error(
        "npu_norm_param: started for a row of no or too many columns, or before the last share came"
    );
  ReadLoaded_A :
  assert property (@(posedge clk_i) disable iff (!rst_ni) read_i |-> 12'(slice_i) < slices_o)
  else $error("npu_norm_param: read of a slice that is not loaded");
  WordNotStreaming_A :
  assert property (@(posedge clk_i) disable iff (!rst_ni) word_valid_i |-> !streaming_q)
  else $error("npu_norm_param: a word from SRAM while lines of the share are missing");
`endif

endmodule
