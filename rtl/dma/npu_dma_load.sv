// SPDX-License-Identifier: Apache-2.0
//
// Load engine: brings rows, gathered rows and pieces of the K/V cache into SRAM. One side walks the
// source and asks for words, for which it has reserved room; the other walks the destination and
// writes what arrives, with the bytes past the end of a row as zero. The asking side runs on into
// the next instructions while the data of older ones is still coming in: as many as hide the latency
// of a memory behind rows of 256 bytes. A K/V cache in SRAM is read word by word through a port of
// its own, which also reads the row numbers of a gather.

module npu_dma_load
  import npu_pkg::*;
  import npu_sram_pkg::*;
  import npu_mem_pkg::*;
  import npu_operation_pkg::*;
  import npu_dma_pkg::*;
  import npu_isa_pkg::*;
#(
  parameter int unsigned ArrayDim   = 16,  // rows and columns of the systolic array: 4, 8, 16 or 32
  // Words asked of memory and not yet written, at least a burst of 32
  parameter int unsigned QueueWords = 128
) (
  input logic clk_i,  // clock
  input logic rst_ni, // reset, active low

  input  logic            op_valid_i,  // an operation; stays until ready, data stable
  // Taken, while older ones are inside; independent of op_valid_i
  output logic            op_ready_o,
  input  load_operation_t op_i,        // the operation, with op_valid_i
  output engine_status_t  status_o,    // done: the last word of the oldest operation is written
  // A row of a list lies outside the address space: a level until reset
  output error_t          error_o,

  output mem_req_t rd_req_o,  // to memory, with room for its words; stays until ready, all stable
  input mem_rd_rsp_t rd_rsp_i,  // ready may depend on rd_req_o.valid; words in order, never refused

  // Row numbers or cache; stays, address stable, until sram_rd_rsp_i.ready
  output sram_rd_req_t sram_rd_req_o,
  input  sram_rd_rsp_t sram_rd_rsp_i,  // ready may depend on the request; words in order

  output sram_wr_req_t wr_req_o,   // stays until ready, all stable
  input  logic         wr_ready_i  // taken; may depend on wr_req_o.valid
);

  localparam int unsigned Edge = tile_edge(ArrayDim);
  localparam int unsigned RoomW = $clog2(QueueWords + 1);
  localparam int unsigned CopyDepth = 8;  // words on their way from SRAM to SRAM

  function automatic logic is_copy(load_operation_t op);
    return op.op == LoadKv && op.cache_in_sram;
  endfunction

  // ---------------------------------------------------------------------------------------------
  // Asking side
  // ---------------------------------------------------------------------------------------------
  logic ask_q;  // an operation is being asked for
  load_operation_t ask_op_q;
  shape_t ask_shape_q, shape, row;
  logic [3:0] tail;
  logic accept, fill_ready, by_list, ask_ready, ask_end, request_ready, is_single, asking;
  mem_req_t request;
  logic row_valid, row_last, list_bad;
  mem_word_t list_row;
  mem_addr_t list_bad_addr;

  always_comb begin
    shape = row_shape(op_i.rows, op_i.bytes);
    tail  = op_i.bytes[3:0];
    if (op_i.op == LoadKv) begin
      shape = head_shape(Edge, op_i.rows, op_i.bytes, op_i.positions, '0);
      tail  = '0;
    end
  end

  assign op_ready_o = !ask_q && fill_ready;
  assign accept     = op_valid_i && op_ready_o;
  assign by_list    = ask_q && ask_op_q.op == LoadList;
  assign ask_end    = ask_ready && (!by_list || row_last);

  // Rows are asked for in the cycle in which they come, what is left of them from registers.
  load_operation_t ask_op;
  logic at_once;
  assign ask_op  = ask_q ? ask_op_q : op_i;
  assign at_once = accept && op_i.op == LoadRows;

  always_ff @(posedge clk_i) begin
    if (!rst_ni) begin
      ask_q       <= 1'b0;
      ask_op_q    <= '0;
      ask_shape_q <= '0;
    end else if (accept) begin
      ask_q       <= !(at_once && ask_ready);
      ask_op_q    <= op_i;
      ask_shape_q <= shape;
    end else if (ask_end) begin
      ask_q <= 1'b0;
    end
  end

  // The rows of a list are transfers of their own.
  always_comb begin
    row = ask_q ? ask_shape_q : row_shape(op_i.rows, op_i.bytes);
    if (by_list) row.count = dim_t'(1);
  end

  npu_dma_bursts #(
    .ArrayDim(ArrayDim)
  ) u_bursts (
    .clk_i,
    .rst_ni,
    .valid_i (ask_q ? !by_list || row_valid : at_once),
    .ready_o (ask_ready),
    .base_i  (by_list ? list_row : ask_op.mem[31:4]),
    .pitch_i (ask_op.mem_pitch[31:4]),
    .shape_i (row),
    .instr_i (ask_op.instr),
    .single_i(ask_q && is_copy(ask_op_q)),
    .req_o   (request),
    .last_o  (),
    .single_o(is_single),
    .ready_i (request_ready),
    .busy_o  (asking)
  );

  // Where the request in front of memory and SRAM goes
  logic copy, reader_ready, issue, take, queue_valid, room;
  logic [RoomW-1:0] room_q;
  word_t queue_data;

  assign copy = request.valid && is_single;
  always_comb begin
    rd_req_o       = request;
    rd_req_o.valid = request.valid && !is_single && 32'(room_q) > {24'b0, request.len};
  end

  assign issue         = rd_req_o.valid && rd_rsp_i.ready;
  assign request_ready = copy ? reader_ready : issue;

  always_ff @(posedge clk_i) begin
    if (!rst_ni) room_q <= RoomW'(QueueWords);
    else room_q <= room_q - (issue ? RoomW'(request.len) + 1'b1 : '0) + RoomW'(take);
  end

  npu_fifo #(
    .DataT(word_t),
    .Depth(QueueWords)
  ) u_data (
    .clk_i,
    .rst_ni,
    .valid_i(rd_rsp_i.valid),
    .ready_o(room),
    .data_i (rd_rsp_i.data),
    .valid_o(queue_valid),
    .ready_i(take),
    .data_o (queue_data)
  );

  // ---------------------------------------------------------------------------------------------
  // Words from SRAM: a list is read when nothing that is copied is left
  // ---------------------------------------------------------------------------------------------
  logic list_turn, list_addr_valid, list_word_ready, reader_valid, copy_take, in_sram;
  logic [3:0] copies_q;  // operations that copy
  sram_addr_t list_addr;
  word_t reader_data;

  assign in_sram   = is_copy(op_i);
  assign list_turn = by_list && copies_q == '0;

  npu_dma_list u_list (
    .clk_i,
    .rst_ni,
    .valid_i     (list_turn),
    .list_i      (ask_op_q.list),
    .mem_i       (ask_op_q.mem),
    .pitch_i     (ask_op_q.mem_pitch[19:4]),
    .rows_i      (ask_op_q.rows),
    .bytes_i     (ask_op_q.bytes),
    .addr_valid_o(list_addr_valid),
    .addr_ready_i(reader_ready),
    .addr_o      (list_addr),
    .word_valid_i(reader_valid),
    .word_ready_o(list_word_ready),
    .word_i      (reader_data),
    .row_valid_o (row_valid),
    .row_ready_i (ask_ready),
    .row_last_o  (row_last),
    .row_o       (list_row),
    .bad_o       (list_bad),
    .bad_addr_o  (list_bad_addr)
  );

  npu_sram_reader #(
    .Depth(CopyDepth)
  ) u_reader (
    .clk_i,
    .rst_ni,
    .addr_valid_i(copy || list_addr_valid),
    .addr_ready_o(reader_ready),
    .addr_i      (list_turn ? list_addr : request.addr[19:4]),
    .data_valid_o(reader_valid),
    .data_ready_i(list_turn ? list_word_ready : copy_take),
    .data_o      (reader_data),
    .rd_req_o    (sram_rd_req_o),
    .rd_rsp_i    (sram_rd_rsp_i)
  );

  always_ff @(posedge clk_i) begin
    if (!rst_ni) copies_q <= '0;
    else copies_q <= copies_q + 4'(accept && in_sram) - 4'(status_o.done && copy_take);
  end

  // A bad row is reported when all before it have been asked for.
  always_comb begin
    error_o = '0;
    if (list_bad && !asking) begin
      error_o = '{
          valid: 1'b1,
          code: ErrBadAddress,
          engine: EngLd,
          instr: ask_op_q.instr,
          addr: list_bad_addr
      };
    end
  end

  // ---------------------------------------------------------------------------------------------
  // Writing side
  // ---------------------------------------------------------------------------------------------
  fill_t fill;
  assign fill = '{
          sram: op_i.sram,
          pitch: op_i.sram_pitch,
          tail: tail,
          copy: in_sram,
          shape: shape
      };

  npu_dma_fill #(
    .ArrayDim(ArrayDim)
  ) u_fill (
    .clk_i,
    .rst_ni,
    .valid_i       (accept),
    .ready_o       (fill_ready),
    .fill_i        (fill),
    .memory_valid_i(queue_valid),
    .memory_take_o (take),
    .memory_word_i (queue_data),
    .copy_valid_i  (reader_valid),
    .copy_take_o   (copy_take),
    .copy_word_i   (reader_data),
    .wr_req_o,
    .wr_ready_i,
    .status_o
  );

`ifndef SYNTHESIS
  WordRoom_A :
  assert property (@(posedge clk_i) disable iff (!rst_ni) rd_rsp_i.valid |-> room)
  else $error("npu_dma_load: a word came for which there is no room");
`endif

endmodule
