// SPDX-License-Identifier: Apache-2.0
//
// The writer of the coprocessor's vector unit, whatever its elements and its range are: a word that it
// asks for has been allowed by the guard since the range began. The word is any one, the same for all
// time. Verdicts travel with counters of addresses, which no search finds related: how they are is
// said here, and part of what is proved.

module formal_cop_writer
  import npu_mem_pkg::*;
  import npu_stream_pkg::*;
  import npu_cop_pkg::*;
(
  input logic                  clk_i,      // clock
  input logic                  rst_ni,     // reset, active low
  input logic           [27:0] word_i,     // in the first cycle: of which it is shown
  input cop_range_t            range_i,
  input logic                  bytes_i,
  input logic                  drop_i,
  input logic                  flush_i,
  input logic                  eights_i,
  input cop_group_t            group_i,
  input logic           [ 3:0] size_i,
  input regions_t              regions_i,
  input stream_range_t         stream_i,
  input cop_write_rsp_t        write_i
);

  cop_write_req_t write;
  logic [27:0] word_q;
  logic begun_q, allowed, was_allowed_q;

  npu_cop_writer u_writer (
    .clk_i,
    .rst_ni,
    .range_i,
    .bytes_i,
    .drop_i,
    .flush_i,
    .eights_i,
    .group_i,
    .size_i,
    .ready_o   (),
    .regions_i,
    .stream_i,
    .write_o   (write),
    .write_i,
    .denied_o  (),
    .taken_o   (),
    .answered_o(),
    .empty_o   ()
  );

  // What the guard says of the word, whenever the writer has it look there
  assign allowed = u_writer.allowed && u_writer.u_guard.addr_i == {word_q, 4'b0};

  initial begun_q = 1'b0;
  always_ff @(posedge clk_i) begin
    begun_q <= 1'b1;
    word_q  <= begun_q ? word_q : word_i;
    if (!rst_ni || range_i.start) was_allowed_q <= 1'b0;
    else was_allowed_q <= was_allowed_q || allowed;
  end

  // What the verdicts are of: the word that is filled is the first of those looked at, and behind the
  // last word of memory there is none.
  logic ahead, this_one, next_one, ends;

  assign ahead = u_writer.known_q <= 2'd2 &&
                 u_writer.probe_q == u_writer.word_q + 29'(u_writer.known_q);
  assign this_one = !(u_writer.known_q != '0 && u_writer.this_ok_q) ||
                    (!u_writer.word_q[28] && (u_writer.word_q[27:0] != word_q || was_allowed_q));
  assign next_one = !(u_writer.known_q == 2'd2 && u_writer.next_ok_q) ||
                    (!u_writer.word_q[28] && u_writer.word_q[27:0] != '1 &&
                     (u_writer.word_q[27:0] + 1'b1 != word_q || was_allowed_q));
  assign ends = !u_writer.word_q[28] || u_writer.word_q[27:0] == '0;

  always_comb begin
    assume (begun_q || !rst_ni);
    assume (!group_i.valid || size_i != '0 && size_i <= (eights_i ? 4'd8 : 4'd4));  // Size_A
    if (begun_q && rst_ni) begin
      OnlyAllowed_A :
      assert ((!write.valid || write.word != word_q || was_allowed_q) && ahead && this_one &&
              next_one && ends && (u_writer.strb_q == '0 ||
              (u_writer.known_q != '0 && u_writer.this_ok_q)) &&
              (!u_writer.word_out_q.valid || u_writer.word_out_q.word != word_q || was_allowed_q));
    end
  end

endmodule
