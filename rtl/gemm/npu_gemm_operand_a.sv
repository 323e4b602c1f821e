// SPDX-License-Identifier: Apache-2.0
//
// Reads operand A as slices: the elements of one row that meet one tile of weights. For every
// column tile and every inner tile it delivers the slice of each row. Only words that hold elements
// of A are read; what the rest of a slice holds is of no meaning. An empty sum is a slice of one
// word none of whose lanes counts. Where rows lie in lines, the next one begins behind the last
// inner tile of a line. A depthwise operation's slice has the channels of a column tile, its inner
// tiles are lines of A, and each has three rows more.

module npu_gemm_operand_a
  import npu_pkg::*;
  import npu_sram_pkg::*;
  import npu_operation_pkg::*;
  import npu_isa_pkg::*;
#(
  parameter int unsigned Edge = 16,  // tile edge in elements, 16 or 32
  parameter bit Depthwise = 1'b1,  // with depthwise operations
  localparam int unsigned SliceWords = 2 * Edge / 16  // words of a slice of 16-bit elements
) (
  input logic clk_i,  // clock
  input logic rst_ni, // reset, active low

  input logic            start_i,  // pulse: first cycle of op_i; not while slices are left
  input gemm_operation_t op_i,     // stays until its last slice has been taken

  output logic                   slice_valid_o,  // stays until slice_ready_i
  input  logic                   slice_ready_i,  // may depend on slice_valid_o
  output word_t [SliceWords-1:0] slice_o,        // first element lowest; stable while slice_valid_o

  output sram_rd_req_t rd_req_o,  // stays, address stable, until rd_rsp_i.ready
  input  sram_rd_rsp_t rd_rsp_i   // ready may depend on the request; words in order
);

  logic wide;
  assign wide = op_i.a_type inside {GemmAInt16, GemmAUint16};

  logic depthwise;
  dim_t rows;  // of an inner tile
  assign depthwise = Depthwise && op_i.depthwise;

  if (Depthwise) begin : gen_rows
    dim_t rows_q;
    always_ff @(posedge clk_i) begin
      if (!rst_ni) rows_q <= '0;
      else if (start_i) rows_q <= op_i.m + (depthwise ? DepthwiseTaps - 1'b1 : '0);
    end
    assign rows = rows_q;
  end else begin : gen_plain_rows
    assign rows = op_i.m;
  end

  // Words that hold the valid lanes of an inner tile
  function automatic logic [2:0] words_of(dim_t left, logic is_wide);
    logic [6:0] bytes;
    bytes = (left >= dim_t'(Edge)) ? 7'(Edge) : 7'(left);
    if (is_wide) bytes = bytes << 1;
    if (bytes == '0) bytes = 7'd1;
    return 3'((bytes + 7'd15) >> 4);
  endfunction

  // ---------------------------------------------------------------------------------------------
  // Addresses: column tiles, inner tiles, rows, words of a row's slice
  // ---------------------------------------------------------------------------------------------
  dim_t k_left_q, n_left_q, m_q;  // inner lanes and columns not yet covered, row
  dim_t lanes_left;  // of the rows of A
  sram_addr_t column_q, next_column;  // first word of the column tile
  sram_addr_t line_q, left_q;  // of the line: its first word, words from the inner tile on
  sram_addr_t tile_q, row_q, next_tile, tile_words, line;  // line: words, 0 for a whole row
  logic [2:0] word_q;
  logic active_q;  // addresses of this operation are still to go out
  logic addr_ready, step, word_last, m_last, line_last, k_last, n_last;

  assign step = active_q && addr_ready;
  assign lanes_left = depthwise ? n_left_q : k_left_q;
  assign word_last = word_q + 3'd1 == words_of(lanes_left, wide);
  assign m_last = m_q + 1'b1 == rows;
  assign k_last = k_left_q <= dim_t'(Edge);
  assign n_last = n_left_q <= dim_t'(Edge);
  assign line = (op_i.b_form == GemmBStream) ? op_i.b : '0;
  assign tile_words = sram_addr_t'(wide ? SliceWords : SliceWords / 2);
  assign line_last = depthwise || left_q == tile_words;  // never where rows are whole: below zero
  assign next_tile = line_last ? line_q + op_i.b_pitch : tile_q + tile_words;
  assign next_column = !Depthwise ? op_i.a :
                       column_q + (depthwise ? sram_addr_t'(SliceWords / 2) : '0);

  always_ff @(posedge clk_i) begin
    if (!rst_ni) begin
      k_left_q <= '0;
      n_left_q <= '0;
      m_q      <= '0;
      column_q <= '0;
      line_q   <= '0;
      left_q   <= '0;
      tile_q   <= '0;
      row_q    <= '0;
      word_q   <= '0;
      active_q <= 1'b0;
    end else if (start_i) begin
      k_left_q <= op_i.k;
      n_left_q <= op_i.n;
      m_q      <= '0;
      column_q <= op_i.a;
      line_q   <= op_i.a;
      left_q   <= line;
      tile_q   <= op_i.a;
      row_q    <= op_i.a;
      word_q   <= '0;
      active_q <= 1'b1;
    end else if (step) begin
      word_q <= word_last ? '0 : word_q + 3'd1;
      if (word_last) begin
        row_q <= row_q + op_i.a_pitch;
        m_q   <= m_q + 1'b1;
        if (m_last) begin
          m_q      <= '0;
          k_left_q <= k_left_q - dim_t'(Edge);
          left_q   <= line_last ? line : left_q - tile_words;
          if (line_last) line_q <= next_tile;
          tile_q <= next_tile;
          row_q  <= next_tile;
          if (k_last) begin
            k_left_q <= op_i.k;
            n_left_q <= n_left_q - dim_t'(Edge);
            column_q <= next_column;
            line_q   <= next_column;
            left_q   <= line;
            tile_q   <= next_column;
            row_q    <= next_column;
            if (n_last) active_q <= 1'b0;
          end
        end
      end
    end
  end

  logic word_valid, word_ready;
  word_t word;

  npu_sram_reader u_reader (
    .clk_i,
    .rst_ni,
    .addr_valid_i(active_q),
    .addr_ready_o(addr_ready),
    .addr_i      (row_q + sram_addr_t'(word_q)),
    .data_valid_o(word_valid),
    .data_ready_i(word_ready),
    .data_o      (word),
    .rd_req_o,
    .rd_rsp_i
  );

  // ---------------------------------------------------------------------------------------------
  // Data: words are gathered into a slice
  // ---------------------------------------------------------------------------------------------
  dim_t g_k_left_q, g_n_left_q, g_m_q;  // the gathering side's own place
  logic [2:0] gathered_q;
  word_t [SliceWords-1:0] gather_q, gather;
  logic gather_last, take;

  assign gather_last = gathered_q + 3'd1 == words_of(depthwise ? g_n_left_q : g_k_left_q, wide);
  assign word_ready  = !gather_last || !slice_valid_o || slice_ready_i;
  assign take        = word_valid && word_ready;

  always_comb begin
    gather = gather_q;
    for (int unsigned w = 0; w < SliceWords; w++) if (gathered_q == 3'(w)) gather[w] = word;
  end

  always_ff @(posedge clk_i) begin
    if (!rst_ni) begin
      g_k_left_q    <= '0;
      g_n_left_q    <= '0;
      g_m_q         <= '0;
      gathered_q    <= '0;
      gather_q      <= '0;
      slice_valid_o <= 1'b0;
      slice_o       <= '0;
    end else begin
      if (start_i) begin
        g_k_left_q <= op_i.k;
        g_n_left_q <= op_i.n;
        g_m_q      <= '0;
        gathered_q <= '0;
      end else if (take) begin
        gather_q   <= gather;
        gathered_q <= gather_last ? '0 : gathered_q + 3'd1;
        if (gather_last) begin
          slice_o <= gather;
          g_m_q   <= g_m_q + 1'b1;
          if (g_m_q + 1'b1 == rows) begin
            g_m_q      <= '0;
            g_k_left_q <= (g_k_left_q <= dim_t'(Edge)) ? op_i.k : g_k_left_q - dim_t'(Edge);
            if (g_k_left_q <= dim_t'(Edge)) g_n_left_q <= g_n_left_q - dim_t'(Edge);
          end
        end
      end
      if (take && gather_last) slice_valid_o <= 1'b1;
      else if (slice_ready_i) slice_valid_o <= 1'b0;
    end
  end

endmodule
