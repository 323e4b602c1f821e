// SPDX-License-Identifier: Apache-2.0
//
// Feeds the rows of operand A to the array: for every column tile and every inner tile, all rows. A
// row of bytes enters once; a row of 16-bit values enters twice, high bytes then low bytes, as two
// rows of sums. A tile's rows start when its weights are loaded and, for the first inner tile, when
// an accumulator bank is free. Lanes past the inner dimension are zero, whatever lies there.

module npu_gemm_feeder
  import npu_pkg::*;
#(
  parameter int unsigned ArrayDim = 16,
  parameter int unsigned AccRows = 128,
  localparam int unsigned RowW = $clog2(AccRows)
) (
  input  logic clk_i,
  input  logic rst_ni,

  input  logic      cmd_valid_i,
  output logic      cmd_ready_o,
  input  gemm_cmd_t cmd_i,

  output sram_rd_req_t rd_req_o,
  input  logic         rd_ready_i,
  input  sram_rd_rsp_t rd_rsp_i,

  input  logic tile_loaded_i,  // weights of one more tile have been presented to the array
  output logic tile_used_o,  // the last row of a tile enters the array
  input  logic bank_free_i,  // an accumulator bank has been drained

  output logic              row_valid_o,
  output logic              row_set_o,
  output logic signed [8:0] row_act_o [ArrayDim],
  output logic              row_bank_o,
  output logic [RowW-1:0]   row_index_o,
  output logic              row_first_o,
  output logic              row_last_o,

  output logic [11:0] macs_o  // multiplications on valid lanes of the row that enters
);

  localparam int unsigned RowWords = ArrayDim / 16;  // of bytes

  // ---------------------------------------------------------------------------------------------
  // Addresses: columns tiles, inner tiles, rows, words of a row's slice
  // ---------------------------------------------------------------------------------------------
  logic wide;
  assign wide = cmd_i.a_type == GemmAInt16 || cmd_i.a_type == GemmAUint16;

  dim_t ak_left_q, an_left_q, am_q;  // inner lanes and columns not yet covered, row
  sram_addr_t a_tile_q, a_row_q;
  logic [2:0] a_word_q;
  logic addr_done_q;  // all addresses of this command are out
  logic addr_valid, addr_ready, addr_step;
  logic [2:0] slice_words;  // of this inner tile

  // Words that hold the valid lanes of an inner tile
  function automatic logic [2:0] words_of(dim_t lanes_left, logic is_wide);
    logic [6:0] bytes;
    bytes = (lanes_left >= dim_t'(ArrayDim)) ? 7'(ArrayDim) : 7'(lanes_left);
    if (is_wide) bytes = bytes << 1;
    return 3'((bytes + 7'd15) >> 4);
  endfunction

  assign slice_words = words_of(ak_left_q, wide);
  assign addr_valid  = cmd_valid_i && !addr_done_q;
  assign addr_step   = addr_valid && addr_ready;

  logic aw_last, am_last, ak_last, an_last;
  assign aw_last = a_word_q + 3'd1 == slice_words;
  assign am_last = am_q + 1'b1 == cmd_i.m;
  assign ak_last = ak_left_q <= dim_t'(ArrayDim);
  assign an_last = an_left_q <= dim_t'(ArrayDim);

  logic fresh_q;  // counters must be loaded from the command
  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) begin
      ak_left_q   <= '0;
      an_left_q   <= '0;
      am_q        <= '0;
      a_tile_q    <= '0;
      a_row_q     <= '0;
      a_word_q    <= '0;
      addr_done_q <= 1'b1;
      fresh_q     <= 1'b1;
    end else if (cmd_valid_i && fresh_q) begin
      ak_left_q   <= cmd_i.k;
      an_left_q   <= cmd_i.n;
      am_q        <= '0;
      a_tile_q    <= cmd_i.a;
      a_row_q     <= cmd_i.a;
      a_word_q    <= '0;
      addr_done_q <= 1'b0;
      fresh_q     <= 1'b0;
    end else begin
      if (addr_step) begin
        a_word_q <= aw_last ? '0 : a_word_q + 3'd1;
        if (aw_last) begin
          a_row_q <= a_row_q + cmd_i.a_pitch;
          am_q    <= am_q + 1'b1;
          if (am_last) begin
            am_q      <= '0;
            ak_left_q <= ak_left_q - dim_t'(ArrayDim);
            a_tile_q  <= a_tile_q + sram_addr_t'(wide ? 2 * RowWords : RowWords);
            a_row_q   <= a_tile_q + sram_addr_t'(wide ? 2 * RowWords : RowWords);
            if (ak_last) begin
              ak_left_q <= cmd_i.k;
              an_left_q <= an_left_q - dim_t'(ArrayDim);
              a_tile_q  <= cmd_i.a;
              a_row_q   <= cmd_i.a;
              if (an_last) addr_done_q <= 1'b1;
            end
          end
        end
      end
      if (cmd_ready_o) fresh_q <= 1'b1;
    end
  end

  logic word_valid, word_ready;
  word_t word;

  npu_sram_reader u_reader (
    .clk_i,
    .rst_ni,
    .addr_valid_i(addr_valid),
    .addr_ready_o(addr_ready),
    .addr_i      (a_row_q + sram_addr_t'(a_word_q)),
    .data_valid_o(word_valid),
    .data_ready_i(word_ready),
    .data_o      (word),
    .rd_req_o,
    .rd_ready_i,
    .rd_rsp_i
  );

  // ---------------------------------------------------------------------------------------------
  // Rows: words are gathered into a slice, the slice enters the array in one or two passes
  // ---------------------------------------------------------------------------------------------
  dim_t k_left_q, n_left_q, m_q;
  logic [2:0] gathered_q;
  word_t [2*RowWords-1:0] gather_q, gather, slice_q;
  logic slice_valid_q, pass_q;  // pass 1: low bytes
  logic rows_loaded_q;  // row counters hold this command
  logic gather_last, slice_take, slice_free, issue, slice_last;
  dim_t g_k_left_q, g_m_q;  // the gathering side's own place

  assign gather_last = gathered_q + 3'd1 == words_of(g_k_left_q, wide);
  assign slice_last  = issue && (!wide || pass_q);
  assign slice_free  = !slice_valid_q || slice_last;
  assign word_ready  = rows_loaded_q && (!gather_last || slice_free);
  assign slice_take  = word_valid && word_ready && gather_last;

  always_comb begin
    gather = gather_q;
    for (int unsigned w = 0; w < 2 * RowWords; w++) begin
      if (gathered_q == 3'(w)) gather[w] = word;
    end
  end

  logic [1:0] loaded_q;  // tiles whose weights are in the array and whose rows are not yet through
  logic [1:0] banks_q;  // free accumulator banks
  logic set_q, bank_q;
  logic m_last, k_first_q, k_last, n_last, tile_end, column_start, column_end;

  assign m_last       = m_q + 1'b1 == cmd_i.m;
  assign k_last       = k_left_q <= dim_t'(ArrayDim);
  assign n_last       = n_left_q <= dim_t'(ArrayDim);
  assign column_start = k_first_q && m_q == '0 && !pass_q;
  assign issue        = slice_valid_q && loaded_q != '0 && (!column_start || banks_q != '0);
  assign tile_end     = slice_last && m_last;
  assign column_end   = tile_end && k_last;
  assign cmd_ready_o  = column_end && n_last;
  assign tile_used_o  = tile_end;

  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) begin
      k_left_q      <= '0;
      n_left_q      <= '0;
      m_q           <= '0;
      g_k_left_q    <= '0;
      g_m_q         <= '0;
      gathered_q    <= '0;
      gather_q      <= '0;
      slice_q       <= '0;
      slice_valid_q <= 1'b0;
      pass_q        <= 1'b0;
      rows_loaded_q <= 1'b0;
      loaded_q      <= '0;
      banks_q       <= 2'd2;
      set_q         <= 1'b0;
      bank_q        <= 1'b0;
      k_first_q     <= 1'b1;
    end else begin
      if (cmd_valid_i && fresh_q) begin
        k_left_q      <= cmd_i.k;
        n_left_q      <= cmd_i.n;
        m_q           <= '0;
        g_k_left_q    <= cmd_i.k;
        g_m_q         <= '0;
        gathered_q    <= '0;
        rows_loaded_q <= 1'b1;
        k_first_q     <= 1'b1;
      end

      if (word_valid && word_ready) begin
        gather_q   <= gather;
        gathered_q <= gather_last ? '0 : gathered_q + 3'd1;
        if (gather_last) begin
          slice_q <= gather;
          g_m_q   <= g_m_q + 1'b1;
          if (g_m_q + 1'b1 == cmd_i.m) begin
            g_m_q      <= '0;
            g_k_left_q <= (g_k_left_q <= dim_t'(ArrayDim)) ? cmd_i.k
                                                           : g_k_left_q - dim_t'(ArrayDim);
          end
        end
      end
      if (slice_take) slice_valid_q <= 1'b1;
      else if (slice_last) slice_valid_q <= 1'b0;

      if (issue) pass_q <= wide && !pass_q;
      if (slice_last) begin
        m_q <= m_last ? '0 : m_q + 1'b1;
        if (m_last) begin
          set_q     <= !set_q;
          k_first_q <= k_last;
          k_left_q  <= k_last ? cmd_i.k : k_left_q - dim_t'(ArrayDim);
          if (k_last) begin
            n_left_q <= n_left_q - dim_t'(ArrayDim);
            bank_q   <= !bank_q;
          end
        end
      end
      if (cmd_ready_o) rows_loaded_q <= 1'b0;

      loaded_q <= loaded_q + {1'b0, tile_loaded_i} - {1'b0, tile_end};
      banks_q  <= banks_q + {1'b0, bank_free_i} - {1'b0, issue && column_start};
    end
  end

  // ---------------------------------------------------------------------------------------------
  // Lanes
  // ---------------------------------------------------------------------------------------------
  logic [5:0] k_lanes, n_lanes;
  assign k_lanes = k_last ? 6'(k_left_q) : 6'(ArrayDim);
  assign n_lanes = n_last ? 6'(n_left_q) : 6'(ArrayDim);

  always_comb begin
    for (int unsigned l = 0; l < ArrayDim; l++) begin
      automatic logic [7:0] high = slice_q[0][7:0];
      automatic logic [7:0] low = slice_q[0][7:0];
      automatic logic [7:0] plain = slice_q[l/16][8*(l%16)+:8];
      low  = slice_q[l/8][16*(l%8)+:8];
      high = slice_q[l/8][16*(l%8)+8+:8];
      unique case (cmd_i.a_type)
        GemmAInt8:   row_act_o[l] = {plain[7], plain};
        GemmAUint8:  row_act_o[l] = {1'b0, plain};
        GemmAInt16:  row_act_o[l] = pass_q ? {1'b0, low} : {high[7], high};
        GemmAUint16: row_act_o[l] = {1'b0, pass_q ? low : high};
        default:     row_act_o[l] = '0;
      endcase
      if (6'(l) >= k_lanes) row_act_o[l] = '0;
    end
  end

  assign row_valid_o = issue;
  assign row_set_o   = set_q;
  assign row_bank_o  = bank_q;
  assign row_index_o = wide ? RowW'({m_q, pass_q}) : RowW'(m_q);
  assign row_first_o = k_first_q;
  assign row_last_o  = k_last;

  assign macs_o  = issue ? 12'(k_lanes) * 12'(n_lanes) : '0;

`ifndef SYNTHESIS
  assert property (@(posedge clk_i) disable iff (!rst_ni) loaded_q <= 2'd2);
  assert property (@(posedge clk_i) disable iff (!rst_ni) banks_q <= 2'd2);
`endif

endmodule
