// SPDX-License-Identifier: Apache-2.0
//
// Brings the chunks of both operands together and deals them out in pieces as large as a unit takes.
// The first element that cannot be read ends it: those before it are dealt, nothing behind it is.

module npu_cop_pieces
  import npu_cop_pkg::*;
(
  input logic clk_i,  // clock
  input logic rst_ni, // reset, active low

  input logic       start_i,  // pulse: forget what was before
  input cop_count_t count_i,  // elements, with start_i
  input logic       stop_i,   // a level: take no more chunks
  input logic       drop_i,   // a level: forget what has been taken

  // Of the instruction, levels
  input logic        bytes_i,  // elements are bytes; else words
  input logic [ 1:0] reads_i,  // which operands there are
  input logic [31:0] value_i,  // the element where there are none
  input logic [ 4:0] most_i,   // bytes that the unit takes at once: 4, 8 or 16

  input  cop_chunk_t       chunk_i[2],  // of both operands
  output logic             ready_o,     // takes the chunks of all operands that there are
  output cop_piece_t       piece_o,     // withdrawn by drop_i
  output logic       [4:0] size_o,      // elements that are taken of it
  input  logic             ready_i,     // takes the piece

  output logic       failed_o,  // a level: the element next_o cannot be read
  output cop_code_e  code_o,    // with failed_o: why
  output logic       second_o,  // with failed_o: that of the second operand
  output cop_count_t next_o,    // the first element that is not taken
  output logic       done_o     // a level: no piece is there or will come
);

  // ---------------------------------------------------------------------------------------------
  // What is wrong with the elements of the chunks
  // ---------------------------------------------------------------------------------------------
  logic [1:0][4:0] readable;  // elements before the first one that cannot be read; or 16
  logic [4:0] present, good;
  logic [1:0] failing;
  cop_count_t left_q;
  logic load, fails, second;

  for (genvar o = 0; o < 2; o++) begin : gen_operand
    assign readable[o] = reads_i[o] ? chunk_i[o].good : 5'd16;
    assign failing[o]  = readable[o] < present;
  end

  // The first operand is read before the second one.
  assign second = readable[1] < readable[0];
  assign fails  = failing != '0;
  assign good   = fails ? readable[second] : present;

  always_comb begin
    present = bytes_i ? 5'd16 : 5'd4;
    if (left_q < CountBits'(present)) present = left_q[4:0];
  end

  // ---------------------------------------------------------------------------------------------
  // The pair of chunks that is dealt
  // ---------------------------------------------------------------------------------------------
  typedef struct packed {
    logic [63:0] a, b;
    logic [4:0] count;  // elements that are left of the pair
    logic [4:0] size;  // of the piece
  } waiting_t;

  logic [127:0] a_q, b_q;
  logic [4:0] pair_q, most_q;  // elements that are left of it, and of the largest piece
  logic failed_q, dealt, taken, take, last;
  waiting_t waiting, oldest;

  assign dealt   = pair_q != '0;
  assign last    = pair_q <= most_q;
  assign take    = dealt && taken;
  assign waiting = '{a: a_q[63:0], b: b_q[63:0], count: pair_q, size: last ? pair_q : most_q};

  // Whether a unit takes a piece is known late. Those that do not take every piece take 8 bytes of
  // either operand at most.
  npu_skid_buffer #(
    .DataT(waiting_t)
  ) u_piece (
    .clk_i,
    .rst_ni,
    .flush_i(start_i || drop_i),
    .valid_i(dealt),
    .ready_o(taken),
    .data_i (waiting),
    .valid_o(piece_o.valid),
    .ready_i,
    .data_o (oldest)
  );

  assign piece_o.a = {a_q[127:64], oldest.a};
  assign piece_o.b = {b_q[127:64], oldest.b};
  assign piece_o.count = oldest.count;
  assign size_o = oldest.size;
  assign load = left_q != '0 && !failed_q && !stop_i && !drop_i &&
                (chunk_i[0].valid || !reads_i[0]) && (chunk_i[1].valid || !reads_i[1]) &&
                (!dealt || (take && last));
  assign ready_o = load;

  always_ff @(posedge clk_i) begin
    if (!rst_ni) begin
      a_q      <= '0;
      b_q      <= '0;
      pair_q   <= '0;
      most_q   <= '0;
      left_q   <= '0;
      next_o   <= '0;
      failed_q <= 1'b0;
      code_o   <= CodeNone;
      second_o <= 1'b0;
    end else if (start_i) begin
      pair_q   <= '0;
      most_q   <= bytes_i ? most_i : {2'b00, most_i[4:2]};
      left_q   <= count_i;
      next_o   <= '0;
      failed_q <= 1'b0;
    end else if (drop_i) begin
      pair_q <= '0;
      left_q <= '0;
    end else begin
      if (take) begin
        pair_q <= last ? '0 : pair_q - most_q;
        // Behind a piece of 16 bytes there is nothing.
        a_q    <= most_i[3] ? a_q >> 64 : a_q >> 32;
        b_q    <= most_i[3] ? b_q >> 64 : b_q >> 32;
      end
      if (load) begin
        a_q <= reads_i[0] ? chunk_i[0].data : 128'(value_i);
        b_q <= chunk_i[1].data;
        pair_q <= good;
        left_q <= left_q - CountBits'(present);
        next_o <= next_o + CountBits'(good);
        failed_q <= fails;
        second_o <= second;
        code_o <= chunk_i[second].code;
      end
    end
  end

  assign failed_o = failed_q;
  assign done_o   = !piece_o.valid && (left_q == '0 || failed_q || stop_i);

`ifndef SYNTHESIS
  WideIsTaken_A :
  assert property (@(posedge clk_i) disable iff (!rst_ni) piece_o.valid && most_i[4] |-> ready_i)
  else $error("npu_cop_pieces: a piece of 16 bytes has to wait");
`endif

endmodule
