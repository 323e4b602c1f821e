// SPDX-License-Identifier: Apache-2.0
//
// Reads the tiles of a GEMM operand B that lies in SRAM, two words per cycle, in the order in which
// the array wants them. A strip of a tile is a row of B, or a column for transposed operands; strips
// past the operand are not read and lanes past it are zeroed, so that what lies behind the operand
// never matters.

module npu_gemm_operand_b
  import npu_pkg::*;
  import npu_sram_pkg::*;
  import npu_operation_pkg::*;
  import npu_isa_pkg::*;
#(
  parameter int unsigned Edge = 16  // tile edge in elements, 16 or 32
) (
  input logic clk_i,  // clock
  input logic rst_ni, // reset, active low

  input logic            op_valid_i,  // stays until the last pair has been taken
  input gemm_operation_t op_i,        // stable while op_valid_i

  // A pair of words: strips 2p and 2p+1 (edge 16), or both halves of strip p (edge 32)
  output logic  pair_valid_o,    // stays until pair_ready_i
  input  logic  pair_ready_i,    // may depend on pair_valid_o
  output word_t pair_o      [2], // stable while pair_valid_o; zero past the operand

  // One port for each word of a pair
  output sram_rd_req_t rd_req_o[2],  // stays, address stable, until rd_rsp_i.ready
  input  sram_rd_rsp_t rd_rsp_i[2]   // ready may depend on the request; words in order
);

  localparam int unsigned StripWords = Edge / 16;
  localparam int unsigned PairStrips = 2 / StripWords;  // strips per pair
  localparam int unsigned Pairs = Edge / PairStrips;
  localparam int unsigned PairW = $clog2(Pairs);

  // Where a tile starts and how its strips follow each other, in words
  logic tile_order;
  sram_addr_t strip_stride, k_stride, n_stride, k_tiles, n_tiles;
  assign tile_order = op_i.b_form == GemmBTile;
  assign k_tiles    = (op_i.k + dim_t'(Edge - 1)) / dim_t'(Edge);
  assign n_tiles    = (op_i.n + dim_t'(Edge - 1)) / dim_t'(Edge);

  always_comb begin
    if (tile_order) begin
      // Positions run along N when transposed, along K otherwise; lane blocks are the inner index.
      strip_stride = sram_addr_t'(StripWords);
      k_stride    = sram_addr_t'(Edge * StripWords) * (op_i.transpose_b ? 16'd1 : n_tiles);
      n_stride    = sram_addr_t'(Edge * StripWords) * (op_i.transpose_b ? k_tiles : 16'd1);
    end else if (op_i.transpose_b) begin
      strip_stride = op_i.b_pitch;
      k_stride    = sram_addr_t'(StripWords);
      n_stride    = op_i.b_pitch * sram_addr_t'(Edge);
    end else begin
      strip_stride = op_i.b_pitch;
      k_stride    = op_i.b_pitch * sram_addr_t'(Edge);
      n_stride    = sram_addr_t'(StripWords);
    end
  end

  // ---------------------------------------------------------------------------------------------
  // One walk over tiles and pairs; used twice: once for addresses, once for data
  // ---------------------------------------------------------------------------------------------
  dim_t k_left_q[2], n_left_q[2];
  logic [PairW-1:0] pair_q[2];
  logic step[2], active_q[2], k_last[2], n_last[2], pair_last[2];
  sram_addr_t column_q, tile_q, strip_q;  // addresses: column of tiles, tile, strip
  logic start;

  for (genvar s = 0; s < 2; s++) begin : gen_walk
    assign pair_last[s] = pair_q[s] == PairW'(Pairs - 1);
    assign k_last[s]    = k_left_q[s] <= dim_t'(Edge);
    assign n_last[s]    = n_left_q[s] <= dim_t'(Edge);

    always_ff @(posedge clk_i) begin
      if (!rst_ni) begin
        k_left_q[s] <= '0;
        n_left_q[s] <= '0;
        pair_q[s]   <= '0;
        active_q[s] <= 1'b0;
      end else if (start) begin
        k_left_q[s] <= op_i.k;
        n_left_q[s] <= op_i.n;
        pair_q[s]   <= '0;
        active_q[s] <= 1'b1;
      end else if (step[s]) begin
        pair_q[s] <= pair_last[s] ? '0 : pair_q[s] + 1'b1;
        if (pair_last[s]) begin
          k_left_q[s] <= k_last[s] ? op_i.k : k_left_q[s] - dim_t'(Edge);
          if (k_last[s]) n_left_q[s] <= n_left_q[s] - dim_t'(Edge);
          if (k_last[s] && n_last[s]) active_q[s] <= 1'b0;
        end
      end
    end
  end

  // Is the given strip of the current tile inside the operand, and how many of its lanes are?
  function automatic logic strip_inside(logic [6:0] strip, dim_t k_left, dim_t n_left,
                                        logic transposed);
    return dim_t'(strip) < (transposed ? n_left : k_left);
  endfunction

  // ---------------------------------------------------------------------------------------------
  // Addresses
  // ---------------------------------------------------------------------------------------------
  logic wanted[2], sent_q[2], reader_ready[2];
  sram_addr_t addr[2];

  always_comb begin
    for (int unsigned w = 0; w < 2; w++) begin
      automatic logic [6:0] strip = 7'(pair_q[0]) * 7'(PairStrips) + 7'(w / StripWords);
      addr[w] = strip_q + (w / StripWords != 0 ? strip_stride : '0) + sram_addr_t'(w % StripWords);
      // The second half of a strip exists only where the operand reaches into it.
      wanted[w] = active_q[0] && strip_inside(strip, k_left_q[0], n_left_q[0], op_i.transpose_b) &&
          dim_t'(16 * (w % StripWords)) < (op_i.transpose_b ? k_left_q[0] : n_left_q[0]);
    end
  end

  always_comb begin
    step[0] = active_q[0];
    for (int unsigned w = 0; w < 2; w++) begin
      if (wanted[w] && !sent_q[w] && !reader_ready[w]) step[0] = 1'b0;
    end
  end

  always_ff @(posedge clk_i) begin
    if (!rst_ni) begin
      column_q <= '0;
      tile_q   <= '0;
      strip_q  <= '0;
      for (int unsigned w = 0; w < 2; w++) sent_q[w] <= 1'b0;
    end else begin
      for (int unsigned w = 0; w < 2; w++) begin
        if (step[0]) sent_q[w] <= 1'b0;
        else if (wanted[w] && reader_ready[w]) sent_q[w] <= 1'b1;
      end
      if (start) begin
        column_q <= op_i.b;
        tile_q   <= op_i.b;
        strip_q  <= op_i.b;
      end else if (step[0]) begin
        strip_q <= strip_q + strip_stride * sram_addr_t'(PairStrips);
        if (pair_last[0]) begin
          tile_q  <= tile_q + k_stride;
          strip_q <= tile_q + k_stride;
          if (k_last[0]) begin
            column_q <= column_q + n_stride;
            tile_q   <= column_q + n_stride;
            strip_q  <= column_q + n_stride;
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
      .rd_rsp_i    (rd_rsp_i[w])
    );
    assign word_take[w] = step[1] && expect_word[w];
  end

  always_comb begin
    pair_valid_o = active_q[1];
    for (int unsigned w = 0; w < 2; w++) begin
      automatic logic [6:0] strip = 7'(pair_q[1]) * 7'(PairStrips) + 7'(w / StripWords);
      automatic dim_t lanes = op_i.transpose_b ? k_left_q[1] : n_left_q[1];
      expect_word[w] = strip_inside(strip, k_left_q[1], n_left_q[1], op_i.transpose_b) &&
          dim_t'(16 * (w % StripWords)) < lanes;
      if (expect_word[w] && !word_valid[w]) pair_valid_o = 1'b0;
      for (int unsigned b = 0; b < 16; b++) begin
        pair_o[w][8*b +: 8] =
            (expect_word[w] && dim_t'(16 * (w % StripWords) + b) < lanes) ? word[w][8*b +: 8] : '0;
      end
    end
  end

  assign step[1] = pair_valid_o && pair_ready_i;
  assign start   = op_valid_i && !active_q[0] && !active_q[1];

endmodule
