// SPDX-License-Identifier: Apache-2.0
//
// Delivers the words of a store to all their destinations: the write channel of memory, the K/V
// cache in SRAM, staging tiles in SRAM. A word leaves when the last of them has taken it.

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

  input store_operation_t op_i,    // of the word; steady from an operation's first word to its last
  input shape_t           shape_i, // of the same operation

  input  logic        valid_i,  // a word; stays until ready, all stable
  output logic        ready_o,  // the last destination takes it; only with valid_i
  input  word_t       data_i,   // the word, with valid_i; not used for a token
  input  logic  [4:0] bytes_i,  // bytes of it that count, 0 to 16 from the lowest; with valid_i

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
  word_t data;
  logic [15:0] lanes;

  npu_dma_walk #(
    .ArrayDim(ArrayDim),
    .AddrBits($bits(sram_addr_t))
  ) u_cache_walk (
    .clk_i,
    .rst_ni,
    .shape_i,
    .pitch_i(op_i.mem_pitch[19:4]),
    .step_i (valid_i && ready_o),
    .words_i(6'd1),
    .at_o   (cache_at),
    .left_o (),
    .last_o ()
  );

  npu_dma_walk #(
    .ArrayDim(ArrayDim),
    .AddrBits($bits(sram_addr_t))
  ) u_stage_walk (
    .clk_i,
    .rst_ni,
    .shape_i,
    .pitch_i(op_i.stage_pitch),
    .step_i (valid_i && ready_o),
    .words_i(6'd1),
    .at_o   (stage_at),
    .left_o (),
    .last_o ()
  );

  assign lanes = 16'((17'd1 << bytes_i) - 17'd1);
  for (genvar i = 0; i < int'(WordBytes); i++) begin : gen_lane
    assign data[8*i+:8] = lanes[i] ? data_i[8*i+:8] : 8'h00;
  end

  always_comb begin
    w_o.valid = valid_i && to_memory && !memory_q;
    w_o.data  = data;
    w_o.strb  = '1;
    if (op_i.op == StoreRows) w_o.strb = lanes;
    if (op_i.op == StoreToken) begin
      w_o.data = {4{op_i.token}};
      w_o.strb = 16'h000f << op_i.mem[3:0];
    end
  end

  logic cache_turn;
  assign cache_turn = to_cache && !cache_q;
  always_comb begin
    sram_wr_req_o.valid = valid_i && (cache_turn || (to_stage && !stage_q));
    sram_wr_req_o.addr  = cache_turn ? op_i.mem[19:4] + cache_at : op_i.stage + stage_at;
    sram_wr_req_o.data  = data;
  end

  assign memory_take = w_o.valid && w_ready_i;
  assign cache_take = sram_wr_req_o.valid && sram_wr_ready_i && cache_turn;
  assign stage_take = sram_wr_req_o.valid && sram_wr_ready_i && !cache_turn;
  assign ready_o     = (!to_memory || memory_q || memory_take) &&
                       (!to_cache || cache_q || cache_take) &&
                       (!to_stage || stage_q || stage_take);

  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) begin
      memory_q <= 1'b0;
      cache_q  <= 1'b0;
      stage_q  <= 1'b0;
    end else if (valid_i) begin
      memory_q <= !ready_o && (memory_q || memory_take);
      cache_q  <= !ready_o && (cache_q || cache_take);
      stage_q  <= !ready_o && (stage_q || stage_take);
    end
  end

endmodule
