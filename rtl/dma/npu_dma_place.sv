// SPDX-License-Identifier: Apache-2.0
//
// Delivers the words of a store to all their destinations: the write channel of memory, the K/V
// cache in SRAM, staging tiles in SRAM. A word leaves when the last of them has taken it; those for
// SRAM wait in a queue, and an operation is delivered when the last of them is granted. The words of
// the next one do not wait for that, unless none of them is for SRAM.

module npu_dma_place
  import npu_pkg::*;
  import npu_sram_pkg::*;
  import npu_mem_pkg::*;
  import npu_operation_pkg::*;
  import npu_dma_pkg::*;
#(
  parameter int unsigned ArrayDim = 16  // rows and columns of the systolic array: 4, 8, 16 or 32
) (
  input logic clk_i,  // clock
  input logic rst_ni, // reset, active low

  input logic op_valid_i,  // an operation; stays until op_ready_o, all stable
  output logic op_ready_o,  // pulse: its last word leaves, only with op_valid_i
  input store_operation_t op_i,  // of the words, with op_valid_i
  input shape_t shape_i,  // of the same operation

  input  logic        valid_i,  // a word; stays until ready, all stable
  output logic        ready_o,  // the last destination takes it; only with valid_i
  input  word_t       data_i,   // the word, with valid_i; not used for a token
  input  logic  [4:0] bytes_i,  // bytes of it that count, 0 to 16 from the lowest; with valid_i
  input  logic        last_i,   // the last word of the operation, with valid_i
  output logic        done_o,   // pulse: all words of the oldest operation are delivered

  output mem_wdata_t w_o,       // to the write channel of memory; stays until ready, all stable
  input  logic       w_ready_i, // taken; may come without w_o.valid

  output sram_wr_req_t sram_wr_req_o,   // cache first, then staging; stays until ready, all stable
  input  logic         sram_wr_ready_i  // taken; may depend on sram_wr_req_o
);

  logic to_memory, to_cache, to_stage;
  assign to_cache  = op_i.op == StoreKv && op_i.cache_in_sram;
  assign to_stage  = op_i.op == StoreKv && op_i.stage_valid;
  assign to_memory = !to_cache;

  // Destinations that have the word already
  logic memory_q, cache_q, stage_q;
  logic memory_take, cache_take, stage_take;
  sram_addr_t cache_at, stage_at;
  mem_word_t cache_left, stage_left;
  word_t data;
  logic [15:0] lanes;

  typedef struct packed {
    sram_addr_t addr;
    word_t      data;
    logic       last;  // nothing of its operation follows in SRAM
  } placed_word_t;

  placed_word_t placed_word, written;
  logic sram_valid, sram_room, waiting, cache_turn;

  // Each walk goes once over the places of an operation.
  logic placed, word, walked, walked_q, there;
  assign placed     = to_cache || to_stage;
  assign word       = valid_i && op_valid_i && (placed ? there : !waiting);
  assign op_ready_o = ready_o && last_i;

  always_ff @(posedge clk_i) begin
    if (!rst_ni) walked_q <= 1'b0;
    else walked_q <= !op_ready_o && (walked_q || walked);
  end

  // Words for SRAM are the last to be delivered; memory tells by its answers.
  assign done_o = (waiting && sram_wr_ready_i && written.last) || (op_ready_o && !placed);

  npu_dma_walk #(
    .ArrayDim(ArrayDim),
    .AddrBits($bits(sram_addr_t))
  ) u_cache_walk (
    .clk_i,
    .rst_ni,
    .valid_i(op_valid_i && placed && !walked_q),
    .ready_o(walked),
    .base_i (op_i.mem[19:4]),
    .pitch_i(op_i.mem_pitch[19:4]),
    .shape_i,
    .tag_i  (1'b0),
    .valid_o(there),
    .at_o   (cache_at),
    .left_o (cache_left),
    .last_o (),
    .tag_o  (),
    .step_i (ready_o && placed),
    .words_i(6'd1),
    .end_i  (cache_left == mem_word_t'(1))
  );

  npu_dma_walk #(
    .ArrayDim(ArrayDim),
    .AddrBits($bits(sram_addr_t))
  ) u_stage_walk (
    .clk_i,
    .rst_ni,
    .valid_i(op_valid_i && placed && !walked_q),
    .ready_o(),
    .base_i (op_i.stage),
    .pitch_i(op_i.stage_pitch),
    .shape_i,
    .tag_i  (1'b0),
    .valid_o(),
    .at_o   (stage_at),
    .left_o (stage_left),
    .last_o (),
    .tag_o  (),
    .step_i (ready_o && placed),
    .words_i(6'd1),
    .end_i  (stage_left == mem_word_t'(1))
  );

  assign lanes = 16'((17'd1 << bytes_i) - 17'd1);
  for (genvar i = 0; i < int'(WordBytes); i++) begin : gen_lane
    assign data[8*i+:8] = lanes[i] ? data_i[8*i+:8] : 8'h00;
  end

  always_comb begin
    w_o.valid = word && to_memory && !memory_q;
    w_o.data  = data;
    w_o.strb  = '1;
    if (op_i.op == StoreRows) w_o.strb = lanes;
    if (op_i.op == StoreToken) begin
      w_o.data = {4{op_i.token}};
      w_o.strb = 16'h000f << op_i.mem[3:0];
    end
  end

  assign cache_turn = to_cache && !cache_q;
  always_comb begin
    sram_valid = word && (cache_turn || (to_stage && !stage_q));
    placed_word = '{
        addr: cache_turn ? cache_at : stage_at,
        data: data,
        last: last_i && !(cache_turn && to_stage)
    };
  end

  npu_fifo #(
    .DataT(placed_word_t),
    .Depth(2)
  ) u_placed (
    .clk_i,
    .rst_ni,
    .valid_i(sram_valid),
    .ready_o(sram_room),
    .data_i (placed_word),
    .valid_o(waiting),
    .ready_i(sram_wr_ready_i),
    .data_o (written)
  );

  assign sram_wr_req_o = '{valid: waiting, addr: written.addr, data: written.data};

  assign memory_take = w_o.valid && w_ready_i;
  assign cache_take = sram_valid && sram_room && cache_turn;
  assign stage_take = sram_valid && sram_room && !cache_turn;
  assign ready_o     = word && (!to_memory || memory_q || memory_take) &&
                       (!to_cache || cache_q || cache_take) &&
                       (!to_stage || stage_q || stage_take);

  always_ff @(posedge clk_i) begin
    if (!rst_ni) begin
      memory_q <= 1'b0;
      cache_q  <= 1'b0;
      stage_q  <= 1'b0;
    end else if (word) begin
      memory_q <= !ready_o && (memory_q || memory_take);
      cache_q  <= !ready_o && (cache_q || cache_take);
      stage_q  <= !ready_o && (stage_q || stage_take);
    end
  end

`ifndef SYNTHESIS
  logic [1:0] lasts_q;  // last words of operations among those that wait for SRAM
  logic last_comes, last_leaves;
  assign last_comes  = sram_valid && sram_room && placed_word.last;
  assign last_leaves = done_o && !(op_ready_o && !placed);
  always_ff @(posedge clk_i) begin
    if (!rst_ni) lasts_q <= '0;
    else lasts_q <= lasts_q + 2'(last_comes) - 2'(last_leaves);
  end

  DeliveredOnce_A :
  assert property (@(posedge clk_i) disable iff (!rst_ni) last_leaves |-> lasts_q != '0)
  else $error("npu_dma_place: an operation is delivered that is not there, or twice");
  InOrder_A :
  assert property (@(posedge clk_i) disable iff (!rst_ni) op_ready_o && !placed |-> !waiting)
  else $error("npu_dma_place: an operation is delivered before an older one");
`endif

endmodule
