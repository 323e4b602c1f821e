// SPDX-License-Identifier: Apache-2.0
//
// Microcode fetch: reads the program from memory ahead of its execution into a small queue and
// hands it out word by word with its index; a word that is waited for goes past the queue. After the last word it reports the end, so that a
// program without END is noticed. A LOOP that arrives is followed to its target while turns are
// left, so that the next turn is there in time; the dispatcher redirects the fetch where that was
// wrong.

module npu_fetch
  import npu_pkg::*;
  import npu_mem_pkg::*;
  import npu_start_pkg::*;
  import npu_isa_pkg::*;
  import npu_seq_pkg::*;
#(
  parameter int unsigned QueueWords = 64  // words of the queue, at least a burst of 16
) (
  input logic clk_i,  // clock
  input logic rst_ni, // reset, active low

  input  logic          start_i,  // pulse: a program starts; once after every reset
  input  image_t        image_i,  // where the program lies, with start_i
  output logic   [31:0] length_o, // words of the program that runs, zero before start_i

  input redirect_t redirect_i,  // drop what is fetched and go on elsewhere

  input logic [31:0] loops_left_i,  // value of LOOPLEFT, turns that are left; a level
  input logic        loop_i,        // pulse: a LOOP that was followed is dispatched

  output fetched_t fetched_o,  // the next word
  input  logic     ready_i,    // it is taken; must not depend on fetched_o

  // At most 16 words; a redirect or a followed LOOP changes it before ready
  output mem_req_t rd_req_o,
  input mem_rd_rsp_t rd_rsp_i  // words in the order of the requests; never refused
);

  typedef struct packed {
    logic  followed;
    word_t word;
  } slot_t;

  localparam int unsigned CountW = $clog2(QueueWords + 1);
  localparam int unsigned FetchBurst = 16;

  logic active_q;
  mem_addr_t base_q, addr_q;
  logic [31:0] length_q, left_q;  // words of the program, words not yet asked for
  logic [CountW-1:0] pending_q, pending;  // words asked for and not yet arrived
  logic [CountW-1:0] drop_q;  // the first of them that nobody wants
  logic [CountW-1:0] used_q;  // places of the queue: words in it and pending ones
  // Followed loops that are not yet dispatched, and LOOPLEFT, both a cycle late: what is left of
  // the turns when all of them are dispatched is the same.
  logic [CountW:0] ahead_q;
  logic [31:0] loops_left_q;
  logic loop_q;
  instr_idx_t index_q;
  logic [4:0] page, burst;  // words up to the next boundary of bursts, at most a whole one
  logic has_room, issue, take, room;

  // No burst crosses a boundary of 4 KiB.
  assign page = (addr_q[11:8] == '1) ? 5'(FetchBurst) - {1'b0, addr_q[7:4]} : 5'(FetchBurst);
  assign burst = (left_q < 32'(page)) ? left_q[4:0] : page;
  assign has_room = used_q <= CountW'(QueueWords - FetchBurst);

  // An error names the word that could not be read: npu_core derives it from the address.
  always_comb begin
    rd_req_o.valid = active_q && left_q != '0 && has_room;
    rd_req_o.addr  = addr_q;
    rd_req_o.len   = {3'b0, burst} - 8'd1;
    rd_req_o.instr = '0;
  end

  // ---------------------------------------------------------------------------------------------
  // What arrives
  // ---------------------------------------------------------------------------------------------
  instr_t arrived, handed;
  slot_t slot, queued, head;
  logic wanted, dropped, follow, queued_valid;
  logic [31:0] target, next;

  assign arrived = instr_t'(rd_rsp_i.data);
  assign target = {arrived.src1, arrived.src0};
  assign wanted = rd_rsp_i.valid && drop_q == '0 && !redirect_i.valid;
  assign dropped = rd_rsp_i.valid && drop_q != '0;
  assign follow        = wanted && arrived.opcode == OpLoop && target < length_q &&
                         loops_left_q > 32'(ahead_q);
  assign slot.followed = follow;
  assign slot.word = rd_rsp_i.data;
  assign next = redirect_i.valid ? redirect_i.index : target;

  assign issue = rd_req_o.valid && rd_rsp_i.ready;
  assign pending = pending_q + (issue ? CountW'(burst) : '0) - CountW'(rd_rsp_i.valid);

  // ---------------------------------------------------------------------------------------------
  // What is handed out
  // ---------------------------------------------------------------------------------------------
  assign take = fetched_o.valid && ready_i;
  assign handed = instr_t'(head.word);
  assign head = queued_valid ? queued : slot;
  assign fetched_o.valid = queued_valid || wanted;
  assign fetched_o.word = head.word;
  assign fetched_o.followed = head.followed;
  assign fetched_o.index = index_q;
  assign fetched_o.past_end = active_q && index_q == length_q;
  assign length_o = length_q;

  always_ff @(posedge clk_i) begin
    if (!rst_ni) begin
      active_q  <= 1'b0;
      base_q    <= '0;
      addr_q    <= '0;
      length_q  <= '0;
      left_q    <= '0;
      pending_q <= '0;
      drop_q    <= '0;
      ahead_q   <= '0;
      used_q    <= '0;
      index_q   <= '0;
    end else if (start_i) begin
      active_q <= 1'b1;
      base_q   <= image_i.ucode_base;
      addr_q   <= image_i.ucode_base;
      length_q <= image_i.ucode_len;
      left_q   <= image_i.ucode_len;
      index_q  <= '0;
    end else begin
      pending_q <= pending;
      if (redirect_i.valid || follow) begin
        addr_q <= base_q + {next[27:0], 4'b0};
        left_q <= length_q - next;
        drop_q <= pending;
      end else begin
        if (issue) begin
          addr_q <= addr_q + {23'b0, burst, 4'b0};
          left_q <= left_q - {27'b0, burst};
        end
        if (dropped) drop_q <= drop_q - 1'b1;
      end
      if (redirect_i.valid) index_q <= redirect_i.index;
      else if (take) index_q <= head.followed ? {handed.src1, handed.src0} : index_q + 1'b1;
      if (redirect_i.valid) ahead_q <= '0;
      else ahead_q <= ahead_q + (CountW + 1)'(follow) - (CountW + 1)'(loop_q);
      if (redirect_i.valid) used_q <= pending;
      else used_q <= used_q + (issue ? CountW'(burst) : '0) - CountW'(dropped) - CountW'(take);
    end
  end

  always_ff @(posedge clk_i) begin
    if (!rst_ni) begin
      loop_q       <= 1'b0;
      loops_left_q <= '0;
    end else begin
      loop_q       <= loop_i;
      loops_left_q <= loops_left_i;
    end
  end

  npu_flush_fifo #(
    .DataT(slot_t),
    .Depth(QueueWords)
  ) u_queue (
    .clk_i,
    .rst_ni,
    .flush_i(redirect_i.valid),
    .valid_i(wanted && (queued_valid || !ready_i)),
    .ready_o(room),
    .data_i (slot),
    .valid_o(queued_valid),
    .ready_i,
    .data_o (queued),
    .count_o()
  );

`ifndef SYNTHESIS
  WordRoom_A :
  assert property (@(posedge clk_i) disable iff (!rst_ni) wanted |-> room)
  else $error("npu_fetch: a word came for which there is no room");
  LoopFollowed_A :
  assert property (@(posedge clk_i) disable iff (!rst_ni) loop_q |-> ahead_q != '0)
  else $error("npu_fetch: a loop is dispatched that was not followed");
`endif

endmodule
