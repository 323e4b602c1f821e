// SPDX-License-Identifier: Apache-2.0
//
// Store engine: takes rows from SRAM to memory, the rows of K/V heads to the tiles of the cache in
// memory or SRAM and to staging tiles, and a token to memory. Bytes past the end of a row are masked
// by the write strobes; in tiles they are zero. Several instructions are under way: each part of the
// engine goes on to the next one when it is through. An instruction is done when all its words are
// in SRAM and memory has acknowledged all its bursts.

module npu_dma_store
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

  input  logic             op_valid_i,   // an operation; stays until ready, data stable
  output logic             op_ready_o,   // taken, up to eight are inside; independent of op_valid_i
  input  store_operation_t op_i,         // the operation, with op_valid_i
  // Done: words of the oldest one delivered, its bursts acknowledged
  output engine_status_t   status_o,
  // With status_o.done: the operation that is done was a token's
  output logic             token_done_o,

  output sram_rd_req_t rd_req_o,  // stays, address stable, until rd_rsp_i.ready
  input  sram_rd_rsp_t rd_rsp_i,  // ready may depend on the request; words in order

  output mem_req_t wr_req_o,  // to memory; stays until ready, all stable
  // Words of the bursts, in order, maybe ahead; stays until word_ready, all stable
  output mem_wdata_t w_o,
  // Ready may depend on wr_req_o.valid; done: one pulse for every burst, in order
  input mem_wr_rsp_t wr_rsp_i,

  output sram_wr_req_t sram_wr_req_o,   // cache first, then staging; stays until ready, all stable
  input  logic         sram_wr_ready_i  // taken; may depend on sram_wr_req_o.valid
);

  localparam int unsigned Edge = tile_edge(ArrayDim);
  localparam int unsigned NumJobs = 8;
  localparam int unsigned NumBursts = 16;  // without an answer
  localparam int unsigned ReadDepth = 8;

  // The parts of the engine
  localparam int unsigned Bursts = 0;  // asks memory
  localparam int unsigned Source = 1;  // reads words
  localparam int unsigned Place = 2;  // delivers them
  localparam int unsigned Finish = 3;  // waits for the end
  localparam int unsigned NumParts = 4;

  typedef struct packed {
    store_operation_t op;
    shape_t           shape;
    logic [5:0]       stripe;  // K/V: rows of its first stripe
  } job_t;

  function automatic logic to_memory(store_operation_t op);
    return op.op != StoreKv || !op.cache_in_sram;
  endfunction

  // ---------------------------------------------------------------------------------------------
  // Instructions
  // ---------------------------------------------------------------------------------------------
  job_t job_in, job[NumParts];
  logic job_valid[NumParts], job_ready[NumParts];

  always_comb begin
    job_in.op    = op_i;
    job_in.stripe = 6'(Edge) - {1'b0, op_i.phase};
    unique case (op_i.op)
      StoreToken: job_in.shape = row_shape(dim_t'(1), dim_t'(4));
      StoreKv: begin
        job_in.shape = head_shape(Edge, {7'b0, op_i.heads}, op_i.bytes, op_i.rows, op_i.phase);
      end
      default: job_in.shape = row_shape(op_i.rows, op_i.bytes);
    endcase
  end

  npu_multicast_fifo #(
    .DataT     (job_t),
    .Depth     (NumJobs),
    .NumReaders(NumParts),
    .Through   (NumParts'(1) << Source)
  ) u_jobs (
    .clk_i,
    .rst_ni,
    .valid_i(op_valid_i),
    .ready_o(op_ready_o),
    .data_i (job_in),
    .valid_o(job_valid),
    .ready_i(job_ready),
    .data_o (job)
  );

  // ---------------------------------------------------------------------------------------------
  // Bursts. The responses come in order; of each is known whether it ends its instruction.
  // ---------------------------------------------------------------------------------------------
  mem_req_t request;
  logic cut_valid, cut_ready, request_last, issue, answers_room, answer_last;

  assign cut_valid         = job_valid[Bursts] && to_memory(job[Bursts].op);
  assign job_ready[Bursts] = cut_ready || !to_memory(job[Bursts].op);

  npu_dma_bursts #(
    .ArrayDim(ArrayDim)
  ) u_bursts (
    .clk_i,
    .rst_ni,
    .valid_i (cut_valid),
    .ready_o (cut_ready),
    .base_i  (job[Bursts].op.mem[31:4]),
    .pitch_i (job[Bursts].op.mem_pitch[31:4]),
    .shape_i (job[Bursts].shape),
    .instr_i (job[Bursts].op.instr),
    .single_i(1'b0),
    .req_o   (request),
    .last_o  (request_last),
    .single_o(),
    .ready_i (issue),
    .busy_o  ()
  );

  always_comb begin
    wr_req_o       = request;
    wr_req_o.valid = request.valid && answers_room;
  end
  assign issue = wr_req_o.valid && wr_rsp_i.ready;

  npu_fifo #(
    .DataT(logic),
    .Depth(NumBursts)
  ) u_answers (
    .clk_i,
    .rst_ni,
    .valid_i(issue),
    .ready_o(answers_room),
    .data_i (request_last),
    .valid_o(),
    .ready_i(wr_rsp_i.done),
    .data_o (answer_last)
  );

  // ---------------------------------------------------------------------------------------------
  // Words: addresses go to the SRAM reader, data comes back in the same order
  // ---------------------------------------------------------------------------------------------
  typedef struct packed {
    logic [4:0] bytes;
    logic       last;
  } tag_t;

  tag_t tag_in, tag;
  sram_addr_t source_addr;
  logic source_valid, by_read, reader_ready, step, tag_room, tag_valid, data_valid;
  logic word_valid, word_ready, word_taken, from_sram, delivered;
  word_t data;

  assign step = source_valid && (!by_read || reader_ready) && tag_room;

  npu_dma_source #(
    .ArrayDim(ArrayDim)
  ) u_source (
    .clk_i,
    .rst_ni,
    .op_valid_i(job_valid[Source]),
    .op_ready_o(job_ready[Source]),
    .op_i      (job[Source].op),
    .stripe_i  (job[Source].stripe),
    .valid_o   (source_valid),
    .ready_i   (step),
    .read_o    (by_read),
    .addr_o    (source_addr),
    .bytes_o   (tag_in.bytes),
    .last_o    (tag_in.last)
  );

  npu_sram_reader #(
    .Depth(ReadDepth)
  ) u_reader (
    .clk_i,
    .rst_ni,
    .addr_valid_i(source_valid && by_read && tag_room),
    .addr_ready_o(reader_ready),
    .addr_i      (source_addr),
    .data_valid_o(data_valid),
    .data_ready_i(word_taken && from_sram),
    .data_o      (data),
    .rd_req_o,
    .rd_rsp_i
  );

  npu_fifo #(
    .DataT(tag_t),
    .Depth(ReadDepth)
  ) u_tags (
    .clk_i,
    .rst_ni,
    .valid_i(step),
    .ready_o(tag_room),
    .data_i (tag_in),
    .valid_o(tag_valid),
    .ready_i(word_taken),
    .data_o (tag)
  );

  assign from_sram  = job[Place].op.op != StoreToken;
  assign word_valid = tag_valid && (!from_sram || data_valid);
  assign word_taken = word_valid && word_ready;

  npu_dma_place #(
    .ArrayDim(ArrayDim)
  ) u_place (
    .clk_i,
    .rst_ni,
    .op_valid_i(job_valid[Place]),
    .op_ready_o(job_ready[Place]),
    .op_i(job[Place].op),
    .shape_i(job[Place].shape),
    .valid_i(word_valid),
    .ready_o(word_ready),
    .data_i(data),
    .bytes_i(tag.bytes),
    .last_i(tag.last),
    .done_o(delivered),
    .w_o,
    .w_ready_i(wr_rsp_i.word_ready),
    .sram_wr_req_o,
    .sram_wr_ready_i
  );

  // ---------------------------------------------------------------------------------------------
  // End of an instruction
  // ---------------------------------------------------------------------------------------------
  // Instructions whose words are delivered, before this cycle, and those whose bursts are acknowledged
  localparam int unsigned CountW = $clog2(NumJobs + 1);
  logic [CountW-1:0] delivered_q, answered_q;
  logic finish_memory, done;

  assign finish_memory = to_memory(job[Finish].op);
  assign done = job_valid[Finish] && (delivered_q != '0 || delivered) &&
                (!finish_memory || answered_q != '0);
  assign job_ready[Finish] = done;

  always_ff @(posedge clk_i) begin
    if (!rst_ni) begin
      delivered_q <= '0;
      answered_q  <= '0;
    end else begin
      delivered_q <= delivered_q + CountW'(delivered) - CountW'(done);
      answered_q  <= answered_q + CountW'(wr_rsp_i.done && answer_last) -
                     CountW'(done && finish_memory);
    end
  end

  // An answer comes behind the word that it is for.
  assign token_done_o = job_valid[Finish] && job[Finish].op.op == StoreToken && answered_q != '0;

  // It stalls while no word goes out.
  assign status_o.done = done;
  assign status_o.busy = job_valid[Finish];
  assign status_o.stall = job_valid[Finish] && !(w_o.valid && wr_rsp_i.word_ready) &&
                          !(sram_wr_req_o.valid && sram_wr_ready_i);

`ifndef SYNTHESIS
  TokenAnswered_A :
  assert property (@(posedge clk_i) disable iff (!rst_ni) token_done_o |-> done)
  else $error("npu_dma_store: a token is answered before it is delivered");
  AnswerOfBurst_A :
  assert property (@(posedge clk_i) disable iff (!rst_ni) wr_rsp_i.done |-> u_answers.valid_o)
  else $error("npu_dma_store: an answer to a burst that was never sent");
`endif

endmodule
