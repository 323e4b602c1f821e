// SPDX-License-Identifier: Apache-2.0
//
// Parameters of a norm, loaded once per instruction and kept for all its rows: the epsilon term
// from the header of the share, and one record of four bytes per column. They come from the stream,
// 64 bytes at a time, or from SRAM, 16 bytes at a time, of which the header is one word. Reading
// gives the eight records of an octet one cycle later. Four banks of 16 bytes serve both widths.

module npu_norm_param #(
  parameter int unsigned NormMax = 8192  // longest row in columns, a multiple of 16 from 32 to 8192
) (
  input logic clk_i,  // clock
  input logic rst_ni, // reset, active low

  input logic          start_i,        // pulse: forget what was loaded; not while share_o.ready
  input logic          from_stream_i,  // load from the stream, else from SRAM; with start_i
  input npu_pkg::dim_t cols_i,         // columns of a row, 1 to NormMax, with start_i

  // From SRAM
  input logic           word_valid_i,  // never refused; not while lines are missing
  input npu_pkg::word_t word_i,        // header first, then four records each, with word_valid_i

  // From the stream
  input  npu_stream_pkg::share_line_t share_i,  // header first, then 16 records each
  output npu_stream_pkg::share_take_t share_o,  // ready: a level while lines are missing

  output logic        eps_valid_o,  // the header has come: a level until the next start_i
  output logic [63:0] eps_o,        // epsilon term, unsigned, with eps_valid_o
  output logic [10:0] octets_o,     // octets whose records are loaded; those below can be read

  input logic read_i,  // read the records of an octet
  input logic [9:0] octet_i,  // index inside the row, below octets_o; with read_i
  // Of its columns, one cycle after read_i, until the next read_i
  output npu_rows_pkg::norm_record_t [npu_rows_pkg::RowLanes-1:0] record_o
);

  import npu_pkg::*;
  import npu_rows_pkg::*;

  typedef word_t [3:0] quad_t;
  typedef norm_record_t [RowLanes-1:0] records_t;

  localparam int unsigned Rows = NormMax / 16;
  localparam int unsigned RowW = $clog2(Rows);

  if (NormMax < 32 || NormMax > 8192 || NormMax % 16 != 0) begin : gen_bad_norm_max
    $fatal(1, "npu_norm_param: NormMax = %0d, must be a multiple of 16 from 32 to 8192", NormMax);
  end

  logic streaming_q, eps_valid_q, pop, last, upper_q;
  logic [63:0] eps_q;
  logic [11:0] words_q;  // words of records loaded
  logic [9:0] last_row_q;
  logic [3:0] write;
  quad_t data;
  quad_t read;

  assign share_o.ready = streaming_q;
  assign share_o.last  = last;
  assign last          = streaming_q && eps_valid_q && words_q[11:2] == last_row_q;
  assign pop           = share_i.valid && streaming_q;
  assign eps_valid_o   = eps_valid_q;
  assign eps_o         = eps_q;
  assign octets_o      = words_q[11:1];

  always_comb begin
    write = '0;
    data  = streaming_q ? quad_t'(share_i.data) : quad_t'({4{word_i}});
    if (eps_valid_q) begin
      if (pop) write = '1;
      if (word_valid_i) write[words_q[1:0]] = 1'b1;
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
      if (pop && last) streaming_q <= 1'b0;
      if (pop || word_valid_i) begin
        eps_valid_q <= 1'b1;
        if (!eps_valid_q) eps_q <= data[0][63:0];
        else words_q <= words_q + (pop ? 12'd4 : 12'd1);
      end
    end
  end

  for (genvar b = 0; b < 4; b++) begin : gen_bank
    npu_memory #(
      .DataT(word_t),
      .Rows (Rows)
    ) u_memory (
      .clk_i,
      .rd_en_i  (read_i && octet_i[0] == b[1]),
      .rd_row_i (octet_i[1+:RowW]),
      .rd_data_o(read[b]),
      .wr_en_i  (write[b]),
      .wr_row_i (words_q[2+:RowW]),
      .wr_data_i(data[b])
    );
  end

  always_ff @(posedge clk_i) begin
    if (read_i) upper_q <= octet_i[0];
  end

  assign record_o = records_t'(upper_q ? read[3:2] : read[1:0]);

`ifndef SYNTHESIS
  StartFits_A :
  assert property (@(posedge clk_i) disable iff (!rst_ni)
                   start_i |-> cols_i != '0 && 32'(cols_i) <= NormMax && !streaming_q)
  else
    $error(
        "npu_norm_param: started for a row of no or too many columns, or before the last share came"
    );
  ReadLoaded_A :
  assert property (@(posedge clk_i) disable iff (!rst_ni) read_i |-> 11'(octet_i) < octets_o)
  else $error("npu_norm_param: read of an octet that is not loaded");
  WordNotStreaming_A :
  assert property (@(posedge clk_i) disable iff (!rst_ni) word_valid_i |-> !streaming_q)
  else $error("npu_norm_param: a word from SRAM while lines of the share are missing");
`endif

endmodule
