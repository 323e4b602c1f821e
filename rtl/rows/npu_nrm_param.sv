// SPDX-License-Identifier: Apache-2.0
//
// Parameters of a norm, loaded once per instruction and kept for all its rows: the epsilon term
// from the header of the share, and one record of four bytes per column. They come from the stream,
// 64 bytes at a time, or from SRAM, 16 bytes at a time, of which the header is one word. Reading
// gives the eight records of an octet one cycle later. Four banks of 16 bytes serve both widths.

module npu_nrm_param #(
  // Longest row, a multiple of 16
  parameter int unsigned NormMax = 8192
) (
  input logic clk_i,
  input logic rst_ni,

  // A new instruction
  input logic          start_i,
  input logic          from_stream_i,
  input npu_pkg::dim_t cols_i,

  // From SRAM
  input logic           word_valid_i,
  input npu_pkg::word_t word_i,

  // From the stream
  input  logic           stream_valid_i,
  input  npu_pkg::beat_t stream_data_i,
  output logic           stream_ready_o,
  output logic           stream_last_o,

  output logic        eps_valid_o,
  output logic [63:0] eps_o,
  output logic [10:0] octets_o,     // loaded so far

  input  logic                                                   read_i,
  input  logic                      [                       9:0] octet_i,
  output npu_rows_pkg::nrm_record_t [npu_rows_pkg::RowLanes-1:0] record_o
);

  import npu_pkg::*;
  import npu_rows_pkg::*;

  typedef word_t [3:0] quad_t;
  typedef nrm_record_t [RowLanes-1:0] records_t;

  localparam int unsigned Rows = NormMax / 16;
  localparam int unsigned RowW = $clog2(Rows);

  if (NormMax < 32 || NormMax > 8192 || NormMax % 16 != 0) begin : gen_bad_norm_max
    $fatal(1, "npu_nrm_param: NormMax = %0d, must be a multiple of 16 from 32 to 8192", NormMax);
  end

  logic streaming_q, eps_valid_q, pop, upper_q;
  logic [63:0] eps_q;
  logic [11:0] words_q;  // words of records loaded
  logic [9:0] last_row_q;
  logic [3:0] write;
  quad_t data;
  quad_t read_q;

  assign stream_ready_o = streaming_q;
  assign stream_last_o  = streaming_q && eps_valid_q && words_q[11:2] == last_row_q;
  assign pop            = stream_valid_i && stream_ready_o;
  assign eps_valid_o    = eps_valid_q;
  assign eps_o          = eps_q;
  assign octets_o       = words_q[11:1];

  always_comb begin
    write = '0;
    data  = streaming_q ? quad_t'(stream_data_i) : quad_t'({4{word_i}});
    if (eps_valid_q) begin
      if (pop) write = '1;
      if (word_valid_i) write[words_q[1:0]] = 1'b1;
    end
  end

  always_ff @(posedge clk_i or negedge rst_ni) begin
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
      if (pop && stream_last_o) streaming_q <= 1'b0;
      if (pop || word_valid_i) begin
        eps_valid_q <= 1'b1;
        if (!eps_valid_q) eps_q <= data[0][63:0];
        else words_q <= words_q + (pop ? 12'd4 : 12'd1);
      end
    end
  end

  for (genvar b = 0; b < 4; b++) begin : gen_bank
    word_t mem_q[Rows];

    always_ff @(posedge clk_i) begin
      if (write[b]) mem_q[words_q[2+:RowW]] <= data[b];
      if (read_i && octet_i[0] == b[1]) read_q[b] <= mem_q[octet_i[1+:RowW]];
    end
  end

  always_ff @(posedge clk_i) begin
    if (read_i) upper_q <= octet_i[0];
  end

  assign record_o = records_t'(upper_q ? read_q[3:2] : read_q[1:0]);

`ifndef SYNTHESIS
  assert property (@(posedge clk_i) disable iff (!rst_ni)
                   start_i |-> cols_i != '0 && 32'(cols_i) <= NormMax && !streaming_q);
  assert property (@(posedge clk_i) disable iff (!rst_ni) read_i |-> 11'(octet_i) < octets_o);
  assert property (@(posedge clk_i) disable iff (!rst_ni) word_valid_i |-> !streaming_q);
`endif

endmodule
