// SPDX-License-Identifier: Apache-2.0
//
// Reads the tiles of a GEMM operand B that lies in SRAM, two words per cycle, in the order in which
// the array wants them. A line of a tile is a row of B, or a column for transposed operands; lines
// past the operand are not read and lanes past it are zeroed, so that what lies behind the operand
// never matters.

module npu_gemm_operand_b
  import npu_pkg::*;
  import npu_isa_pkg::*;
#(
  parameter int unsigned Edge = 16  // tile edge in elements, 16 or 32
) (
  input logic clk_i,  // clock
  input logic rst_ni, // reset, active low

  input logic      cmd_valid_i,  // stays until the last pair has been taken
  input gemm_cmd_t cmd_i,        // stable while cmd_valid_i

  // A pair of words: tile lines 2p and 2p+1 (edge 16), or both halves of tile line p (edge 32)
  output logic  pair_valid_o,    // stays until pair_ready_i
  input  logic  pair_ready_i,    // may depend on pair_valid_o
  output word_t pair_o      [2], // stable while pair_valid_o; zero past the operand

  // One port for each word of a pair
  output sram_rd_req_t rd_req_o  [2],  // stays, address stable, until rd_ready_i
  input  logic         rd_ready_i[2],  // granted; may depend on rd_req_o.valid
  input  sram_rd_rsp_t rd_rsp_i  [2]   // words in the order asked for; never refused
);

  localparam int unsigned LineWords = Edge / 16;
  localparam int unsigned PairLines = 2 / LineWords;  // lines per pair
  localparam int unsigned Pairs = Edge / PairLines;
  localparam int unsigned PairW = $clog2(Pairs);

  // Where a tile starts and how its lines follow each other, in words
  logic tile_order;
  sram_addr_t line_stride, k_stride, n_stride, k_tiles, n_tiles;
  assign tile_order = cmd_i.b_form == GemmBTile;
  assign k_tiles    = (cmd_i.k + dim_t'(Edge - 1)) / dim_t'(Edge);
  assign n_tiles    = (cmd_i.n + dim_t'(Edge - 1)) / dim_t'(Edge);

  always_comb begin
    if (tile_order) begin
      // Positions run along N when transposed, along K otherwise; lane blocks are the inner index.
      line_stride = sram_addr_t'(LineWords);
      k_stride    = sram_addr_t'(Edge * LineWords) * (cmd_i.transpose_b ? 16'd1 : n_tiles);
      n_stride    = sram_addr_t'(Edge * LineWords) * (cmd_i.transpose_b ? k_tiles : 16'd1);
    end else if (cmd_i.transpose_b) begin
      line_stride = cmd_i.b_pitch;
      k_stride    = sram_addr_t'(LineWords);
      n_stride    = cmd_i.b_pitch * sram_addr_t'(Edge);
    end else begin
      line_stride = cmd_i.b_pitch;
      k_stride    = cmd_i.b_pitch * sram_addr_t'(Edge);
      n_stride    = sram_addr_t'(LineWords);
    end
  end

  // ---------------------------------------------------------------------------------------------
  // One walk over tiles and pairs; used twice: once for addresses, once for data
  // ---------------------------------------------------------------------------------------------
  dim_t k_left_q[2], n_left_q[2];
  logic [PairW-1:0] pair_q[2];
  logic step[2], active_q[2], k_last[2], n_last[2], pair_last[2];
  sram_addr_t column_q, tile_q, line_q;  // addresses: column of tiles, tile, line
  logic start;

  for (genvar s = 0; s < 2; s++) begin : gen_walk
    assign pair_last[s] = pair_q[s] == PairW'(Pairs - 1);
    assign k_last[s]    = k_left_q[s] <= dim_t'(Edge);
    assign n_last[s]    = n_left_q[s] <= dim_t'(Edge);

    always_ff @(posedge clk_i or negedge rst_ni) begin
      if (!rst_ni) begin
        k_left_q[s] <= '0;
        n_left_q[s] <= '0;
        pair_q[s]   <= '0;
        active_q[s] <= 1'b0;
      end else if (start) begin
        k_left_q[s] <= cmd_i.k;
        n_left_q[s] <= cmd_i.n;
        pair_q[s]   <= '0;
        active_q[s] <= 1'b1;
      end else if (step[s]) begin
        pair_q[s] <= pair_last[s] ? '0 : pair_q[s] + 1'b1;
        if (pair_last[s]) begin
          k_left_q[s] <= k_last[s] ? cmd_i.k : k_left_q[s] - dim_t'(Edge);
          if (k_last[s]) n_left_q[s] <= n_left_q[s] - dim_t'(Edge);
          if (k_last[s] && n_last[s]) active_q[s] <= 1'b0;
        end
      end
    end
  end

  // Is the given line of the current tile inside the operand, and how many of its lanes are?
  function automatic logic line_inside(logic [6:0] line, dim_t k_left, dim_t n_left,
                                       logic transposed);
    return dim_t'(line) < (transposed ? n_left : k_left);
  endfunction

  // ---------------------------------------------------------------------------------------------
  // Addresses
  // ---------------------------------------------------------------------------------------------
  logic wanted[2], sent_q[2], reader_ready[2];
  sram_addr_t addr[2];

  always_comb begin
    for (int unsigned w = 0; w < 2; w++) begin
      automatic logic [6:0] line = 7'(pair_q[0]) * 7'(PairLines) + 7'(w / LineWords);
      addr[w] = line_q + (w / LineWords != 0 ? line_stride : '0) + sram_addr_t'(w % LineWords);
      // The second half of a line exists only where the operand reaches into it.
      wanted[w] = active_q[0] && line_inside(line, k_left_q[0], n_left_q[0], cmd_i.transpose_b) &&
          dim_t'(16 * (w % LineWords)) < (cmd_i.transpose_b ? k_left_q[0] : n_left_q[0]);
    end
  end

  always_comb begin
    step[0] = active_q[0];
    for (int unsigned w = 0; w < 2; w++) begin
      if (wanted[w] && !sent_q[w] && !reader_ready[w]) step[0] = 1'b0;
    end
  end

  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) begin
      column_q <= '0;
      tile_q   <= '0;
      line_q   <= '0;
      for (int unsigned w = 0; w < 2; w++) sent_q[w] <= 1'b0;
    end else begin
      for (int unsigned w = 0; w < 2; w++) begin
        if (step[0]) sent_q[w] <= 1'b0;
        else if (wanted[w] && reader_ready[w]) sent_q[w] <= 1'b1;
      end
      if (start) begin
        column_q <= cmd_i.b;
        tile_q   <= cmd_i.b;
        line_q   <= cmd_i.b;
      end else if (step[0]) begin
        line_q <= line_q + line_stride * sram_addr_t'(PairLines);
        if (pair_last[0]) begin
          tile_q <= tile_q + k_stride;
          line_q <= tile_q + k_stride;
          if (k_last[0]) begin
            column_q <= column_q + n_stride;
            tile_q   <= column_q + n_stride;
            line_q   <= column_q + n_stride;
          end
        end
      end
    end
  end

  // ---------------------------------------------------------------------------------------------
  // Data
  // ---------------------------------------------------------------------------------------------
  logic expect_word[2], word_valid[2], word_take[2];
  word_t word[2];

  for (genvar w = 0; w < 2; w++) begin : gen_reader
    npu_sram_reader u_reader (
      .clk_i,
      .rst_ni,
      .addr_valid_i(wanted[w] && !sent_q[w]),
      .addr_ready_o(reader_ready[w]),
      .addr_i      (addr[w]),
      .data_valid_o(word_valid[w]),
      .data_ready_i(word_take[w]),
      .data_o      (word[w]),
      .rd_req_o    (rd_req_o[w]),
      .rd_ready_i  (rd_ready_i[w]),
      .rd_rsp_i    (rd_rsp_i[w])
    );
    assign word_take[w] = step[1] && expect_word[w];
  end

  always_comb begin
    pair_valid_o = active_q[1];
    for (int unsigned w = 0; w < 2; w++) begin
      automatic logic [6:0] line = 7'(pair_q[1]) * 7'(PairLines) + 7'(w / LineWords);
      automatic dim_t lanes = cmd_i.transpose_b ? k_left_q[1] : n_left_q[1];
      expect_word[w] = line_inside(line, k_left_q[1], n_left_q[1], cmd_i.transpose_b) &&
          dim_t'(16 * (w % LineWords)) < lanes;
      if (expect_word[w] && !word_valid[w]) pair_valid_o = 1'b0;
      for (int unsigned b = 0; b < 16; b++) begin
        pair_o[w][8*b +: 8] =
            (expect_word[w] && dim_t'(16 * (w % LineWords) + b) < lanes) ? word[w][8*b +: 8] : '0;
      end
    end
  end

  assign step[1] = pair_valid_o && pair_ready_i;
  assign start   = cmd_valid_i && !active_q[0] && !active_q[1];

endmodule
