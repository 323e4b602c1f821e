// SPDX-License-Identifier: Apache-2.0
//
// Multiplies two tiles of the scratchpad: eight products per cycle along K, element after element
// of C in the order of its rows. Three steps: read eight lanes, multiply them and add each two
// products, add those sums to what the element has so far and write it if it is finished.

module npu_cmd_gemm
  import npu_cmd_pkg::*;
#(
  parameter int unsigned ScratchBytes = 64,  // bytes of the scratchpad: 64, 128 or 256
  localparam int unsigned ByteW = $clog2(ScratchBytes)  // width of a byte address
) (
  input logic clk_i,  // clock
  input logic rst_ni, // reset, active low

  input  logic          start_i,    // pulse, while idle: the first lanes are read in the next cycle
  input  logic          stop_i,     // pulse: forget what is running
  input  logic          nibbles_i,  // elements of A and B have four bits; stays until the end
  input  shape_t        shape_i,    // legal; stays until the end
  output logic          done_o,     // pulse, in the cycle of the last write
  output logic   [23:0] macs_o,     // products, with done_o
  output logic   [15:0] results_o,  // elements of C, with done_o

  output logic           [  ByteW:0] window_place_o,     // element of A, first of eight bytes
  input  logic           [     63:0] window_i,           // eight bytes, first lowest, same cycle
  output logic           [ByteW-1:0] gather_addr_o [8],  // eight single bytes of B
  input  logic           [      7:0] gather_i      [8],  // the bytes, same cycle
  output scratch_write_t             write_o             // four bytes of C; never refused
);

  localparam int unsigned Lanes = 8;
  localparam int unsigned ElemW = ByteW + 1;  // places of nibbles

  // ---------------------------------------------------------------------------------------------
  // Where to read: row i, column j, and how much of K is left. Sums wrap around only in lanes
  // behind the end of K.
  // ---------------------------------------------------------------------------------------------
  logic reading_q, first, chunk_last, column_last, row_last;
  logic [7:0] row_q, column_q, left_q;
  logic [ElemW-1:0] a_row_q, a_q, b_q, stride_a, stride_b;
  logic [ElemW-1:0] lane_q[Lanes];
  logic [ByteW-1:0] c_row_q, c_q, stride_c;

  assign stride_a    = ElemW'(shape_i.stride_a);
  assign stride_b    = ElemW'(shape_i.stride_b);
  assign stride_c    = ByteW'(shape_i.stride_c);
  assign first       = left_q == shape_i.k;
  assign chunk_last  = left_q <= 8'(Lanes);
  assign column_last = column_q == shape_i.n - 8'd1;
  assign row_last    = row_q == shape_i.m - 8'd1;

  always_ff @(posedge clk_i) begin
    if (!rst_ni) begin
      reading_q <= 1'b0;
      row_q     <= '0;
      column_q  <= '0;
      left_q    <= '0;
      a_row_q   <= '0;
      a_q       <= '0;
      b_q       <= '0;
      c_row_q   <= '0;
      c_q       <= '0;
      lane_q    <= '{default: '0};
    end else if (stop_i) begin
      reading_q <= 1'b0;
    end else if (start_i) begin
      reading_q <= 1'b1;
      row_q     <= '0;
      column_q  <= '0;
      left_q    <= shape_i.k;
      a_row_q   <= ElemW'(shape_i.a);
      a_q       <= ElemW'(shape_i.a);
      b_q       <= ElemW'(shape_i.b);
      c_row_q   <= ByteW'(shape_i.c);
      c_q       <= ByteW'(shape_i.c);
      for (int unsigned l = 0; l < Lanes; l++) lane_q[l] <= ElemW'(l) * stride_b;
    end else if (reading_q) begin
      if (!chunk_last) begin
        left_q <= left_q - 8'(Lanes);
        a_q    <= a_q + ElemW'(Lanes);
        b_q    <= b_q + (stride_b << $clog2(Lanes));
      end else if (!column_last) begin
        left_q   <= shape_i.k;
        column_q <= column_q + 8'd1;
        a_q      <= a_row_q;
        b_q      <= ElemW'(shape_i.b) + ElemW'(column_q) + ElemW'(1);
        c_q      <= c_q + ByteW'(4);
      end else begin
        reading_q <= !row_last;
        left_q    <= shape_i.k;
        column_q  <= '0;
        row_q     <= row_q + 8'd1;
        a_row_q   <= a_row_q + stride_a;
        a_q       <= a_row_q + stride_a;
        b_q       <= ElemW'(shape_i.b);
        c_row_q   <= c_row_q + stride_c;
        c_q       <= c_row_q + stride_c;
      end
    end
  end

  // ---------------------------------------------------------------------------------------------
  // Eight lanes of A, which lie side by side, and of B, which do not
  // ---------------------------------------------------------------------------------------------
  logic [ElemW-1:0] b_place[Lanes];
  logic signed [7:0] a_d[Lanes], b_d[Lanes], a_lane_q[Lanes], b_lane_q[Lanes];
  logic [Lanes-1:0] used;
  logic [35:0] window_nibbles;
  logic multiply_q, first_q, last_q;
  logic [ByteW-1:0] multiply_c_q;

  assign window_place_o = a_q;
  assign window_nibbles = window_i[35:0] >> {a_q[0], 2'b00};

  function automatic logic signed [7:0] extend(logic signed [3:0] nibble);
    return 8'(nibble);
  endfunction

  always_comb begin
    for (int unsigned l = 0; l < Lanes; l++) begin
      used[l]          = 8'(l) < left_q;
      b_place[l]       = b_q + lane_q[l];
      gather_addr_o[l] = nibbles_i ? b_place[l][ElemW-1:1] : b_place[l][ByteW-1:0];
    end
  end

  always_comb begin
    for (int unsigned l = 0; l < Lanes; l++) begin
      a_d[l] = window_i[8*l+:8];
      b_d[l] = gather_i[l];
      if (nibbles_i) begin
        a_d[l] = extend(window_nibbles[4*l+:4]);
        b_d[l] = extend(b_place[l][0] ? gather_i[l][7:4] : gather_i[l][3:0]);
      end
      if (!used[l]) a_d[l] = '0;
    end
  end

  always_ff @(posedge clk_i) begin
    if (!rst_ni) begin
      multiply_q   <= 1'b0;
      first_q      <= 1'b0;
      last_q       <= 1'b0;
      multiply_c_q <= '0;
      a_lane_q     <= '{default: '0};
      b_lane_q     <= '{default: '0};
      macs_o       <= '0;
      results_o    <= '0;
    end else begin
      multiply_q <= reading_q && !stop_i;
      if (start_i) begin
        macs_o    <= '0;
        results_o <= '0;
      end else if (reading_q) begin
        first_q      <= first;
        last_q       <= chunk_last;
        multiply_c_q <= c_q;
        a_lane_q     <= a_d;
        b_lane_q     <= b_d;
        macs_o       <= macs_o + 24'($countones(used));
        results_o    <= results_o + 16'(chunk_last);
      end
    end
  end

  // ---------------------------------------------------------------------------------------------
  // Sum and write
  // ---------------------------------------------------------------------------------------------
  logic signed [16:0] pair_q[Lanes/2];
  logic signed [31:0] sum_d, sum_q;
  logic add_q, add_first_q, write_q;
  logic [ByteW-1:0] write_c_q;

  always_comb begin
    sum_d = add_first_q ? '0 : sum_q;
    for (int unsigned p = 0; p < Lanes / 2; p++) sum_d += 32'(pair_q[p]);
  end

  always_ff @(posedge clk_i) begin
    if (!rst_ni) begin
      pair_q      <= '{default: '0};
      add_q       <= 1'b0;
      add_first_q <= 1'b0;
      sum_q       <= '0;
      write_q     <= 1'b0;
      write_c_q   <= '0;
    end else begin
      add_q   <= multiply_q;
      write_q <= multiply_q && last_q && !stop_i;
      if (multiply_q) begin
        for (int unsigned p = 0; p < Lanes / 2; p++) begin
          pair_q[p] <= 17'(a_lane_q[2*p] * 16'(b_lane_q[2*p])) +
                       17'(a_lane_q[2*p+1] * 16'(b_lane_q[2*p+1]));
        end
        add_first_q <= first_q;
        write_c_q   <= multiply_c_q;
      end
      if (add_q) sum_q <= sum_d;
    end
  end

  assign write_o = '{we: {12'b0, {4{write_q}}}, addr: 8'(write_c_q), data: {96'b0, sum_d}};
  assign done_o  = write_q && !multiply_q && !reading_q;

endmodule
