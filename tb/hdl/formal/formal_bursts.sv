// SPDX-License-Identifier: Apache-2.0
//
// What the engines ask memory for: every burst of transfers, of the parameter stream and of microcode
// stays inside its 4 KiB page, as the memory port's checkers assume, whatever was programmed.

module formal_bursts
  import npu_pkg::*;
  import npu_mem_pkg::*;
  import npu_dma_pkg::*;
  import npu_stream_pkg::*;
  import npu_start_pkg::*;
  import npu_seq_pkg::*;
(
  input logic                           clk_i,           // clock
  input logic                           rst_ni,          // reset, active low
  input logic                           valid_i,
  input mem_word_t                      base_i,
  input mem_word_t                      pitch_i,
  input shape_t                         shape_i,
  input logic                           single_i,
  input logic                           ready_i,
  input logic                           start_i,
  input stream_range_t                  stream_i,
  input logic          [           4:0] limit_i,
  input logic                           ticket_valid_i,
  input ticket_t                        ticket_i,
  input logic                           loop_i,
  input logic          [NumEngines-1:0] line_ready_i,
  input logic          [NumEngines-1:0] line_last_i,
  input image_t                         image_i,
  input redirect_t                      redirect_i,
  input logic          [          31:0] loops_left_i,
  input mem_rd_rsp_t                    rd_rsp_i
);

  mem_req_t transfer, stream, code;
  mem_rd_rsp_t stream_rsp, code_rsp;
  logic begun_q, waits_q, ready;
  mem_word_t base_q, pitch_q;
  shape_t shape_q;
  logic   single_q;

  npu_dma_bursts u_bursts (
    .clk_i,
    .rst_ni,
    .valid_i,
    .ready_o (ready),
    .base_i,
    .pitch_i,
    .shape_i,
    .instr_i ('0),
    .single_i,
    .req_o   (transfer),
    .last_o  (),
    .single_o(),
    .ready_i,
    .busy_o  ()
  );

  always_comb begin
    stream_rsp       = rd_rsp_i;
    stream_rsp.ready = rd_rsp_i.ready && stream.valid;
    code_rsp         = rd_rsp_i;
    code_rsp.ready   = rd_rsp_i.ready && code.valid;
  end

  npu_streamer #(
    .FifoWords(256)
  ) u_streamer (
    .clk_i,
    .rst_ni,
    .start_i,
    .stream_i,
    .limit_i,
    .wants_o       (),
    .held_o        (),
    .stream_o      (),
    .ticket_valid_i,
    .ticket_ready_o(),
    .ticket_i,
    .loop_i,
    .line_valid_o  (),
    .line_data_o   (),
    .line_ready_i,
    .line_last_i,
    .rd_req_o      (stream),
    .rd_rsp_i      (stream_rsp)
  );

  npu_fetch u_fetch (
    .clk_i,
    .rst_ni,
    .start_i,
    .image_i,
    .length_o (),
    .redirect_i,
    .loops_left_i,
    .loop_i,
    .fetched_o(),
    .ready_i,
    .rd_req_o (code),
    .rd_rsp_i (code_rsp)
  );

  function automatic logic in_page(mem_req_t req);
    return {1'b0, req.addr[11:4]} + {1'b0, req.len} < 9'd256;
  endfunction

  initial begun_q = 1'b0;
  always_ff @(posedge clk_i) begin
    begun_q  <= 1'b1;
    waits_q  <= begun_q && rst_ni && valid_i && !ready;
    base_q   <= base_i;
    pitch_q  <= pitch_i;
    shape_q  <= shape_i;
    single_q <= single_i;
  end

  always_comb begin
    assume (begun_q || !rst_ni);
    // A transfer stays until it is taken, and has words.
    assume (!waits_q || valid_i && base_i == base_q && pitch_i == pitch_q && shape_i == shape_q &&
            single_i == single_q);
    assume (shape_i.first != '0 || shape_i.body != '0 || shape_i.last != '0);
    if (begun_q && rst_ni) begin
      Transfer_A : assert (!transfer.valid || in_page(transfer));
      Stream_A : assert (!stream.valid || in_page(stream));
      Code_A : assert (!code.valid || in_page(code));
    end
  end

endmodule
