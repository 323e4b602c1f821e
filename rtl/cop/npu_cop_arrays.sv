// SPDX-License-Identifier: Apache-2.0
//
// A range of elements on its way: from memory to a unit, and its results back to memory. It knows how
// far everything has come, and which element has failed.

module npu_cop_arrays
  import npu_mem_pkg::*;
  import npu_stream_pkg::*;
  import npu_cop_pkg::*;
(
  input logic clk_i,  // clock
  input logic rst_ni, // reset, active low

  input logic              start_i,  // pulse: a range begins; the memory owes nothing
  input cop_count_t        count_i,  // its elements, at least 1, with start_i
  input cop_job_t          job_i,    // levels: of the instruction; addresses with start_i
  input logic       [31:0] value_i,  // a level: what is written where nothing is read

  input logic run_i,   // a level: goes on; else asks for nothing more
  input logic drop_i,  // a level: forgets what is not yet asked for
  input logic late_i,  // a level: no more words come

  output cop_progress_t progress_o,  // how it goes
  output cop_bus_t      bus_o,       // what the memory owes

  // Units
  output cop_piece_t piece_o,  // elements; withdrawn by drop_i
  input  logic       ready_i,  // takes them
  input  logic       idle_i,   // a level: results hold everything that was taken
  input  cop_group_t group_i,  // results to write, in order
  output logic       ready_o,  // takes them; from a register

  // Protection
  input mem_settings_t settings_i,  // levels: regions for new requests, limit of waits in cycles
  input stream_range_t stream_i,    // a level: no writes to these bytes; none if the length is 0

  // Memory port
  output npu_axi_pkg::axi_req_t axi_req_o,  // stays until taken, stable; answers always taken
  input  npu_axi_pkg::axi_rsp_t axi_rsp_i   // ready may depend on valid
);

  cop_count_t size;
  logic [1:0] reads;
  logic stop, denied, write_denied;

  assign size = in_bytes(count_i, job_i.bytes);
  assign reads = {job_i.reads_b, job_i.reads_a};
  // What the writer says is of the last instruction that wrote.
  assign write_denied = denied && job_i.writes_d;
  assign stop = !run_i || write_denied;

  // ---------------------------------------------------------------------------------------------
  // Operands
  // ---------------------------------------------------------------------------------------------
  cop_read_req_t read_req[2];
  cop_read_rsp_t read_rsp[2];
  cop_write_req_t write_req;
  cop_write_rsp_t write_rsp;
  cop_chunk_t chunks[2];
  logic chunks_taken, dealt;
  logic [4:0] dealing, piece_size;  // elements that a unit takes, and their bytes
  cop_range_t read_range[2], write_range;

  assign read_range = '{
          '{start: start_i && reads[0], addr: job_i.a, bytes: size},
          '{start: start_i && reads[1], addr: job_i.b, bytes: size}
      };
  assign write_range = '{start: start_i && job_i.writes_d, addr: job_i.d, bytes: size};

  for (genvar o = 0; o < 2; o++) begin : gen_operand
    npu_cop_reader u_reader (
      .clk_i,
      .rst_ni,
      .range_i(read_range[o]),
      .bytes_i(job_i.bytes),
      .stop_i(stop || late_i),
      .late_i(late_i),
      .read_o(read_req[o]),
      .read_i(read_rsp[o]),
      .chunk_o(chunks[o]),
      .ready_i(chunks_taken)  // without an operand, of what an instruction before it has left
    );
  end

  npu_cop_pieces u_pieces (
    .clk_i,
    .rst_ni,
    .start_i,
    .count_i,
    .stop_i  (stop),
    .drop_i,
    .bytes_i (job_i.bytes),
    .reads_i (reads),
    .value_i,
    .most_i  (job_i.most),
    .chunk_i (chunks),
    .ready_o (chunks_taken),
    .piece_o,
    .size_o  (dealing),
    .ready_i,
    .failed_o(progress_o.read_failed),
    .code_o  (progress_o.read_code),
    .second_o(progress_o.read_second),
    .next_o  (progress_o.next_read),
    .done_o  (dealt)
  );

  // ---------------------------------------------------------------------------------------------
  // Destination: pieces and their results follow each other, only the last piece is a small one
  // ---------------------------------------------------------------------------------------------
  localparam int unsigned PendingBits = 7;  // of the bytes inside a unit

  cop_count_t next_write, answered, dealt_q;
  logic written;
  logic [PendingBits-1:0] pending_q;  // bytes dealt without a result
  logic [3:0] group_size;
  cop_group_t group;
  logic group_taken;

  assign piece_size = job_i.bytes ? dealing : {dealing[2:0], 2'b00};
  assign group_size = (pending_q < PendingBits'(job_i.most)) ? pending_q[3:0] : job_i.most[3:0];

  // Units ask whether their results are taken in the middle of long paths.
  npu_skid_buffer #(
    .DataT(logic [63:0])
  ) u_groups (
    .clk_i,
    .rst_ni,
    .flush_i(drop_i),
    .valid_i(group_i.valid),
    .ready_o,
    .data_i (group_i.data),
    .valid_o(group.valid),
    .ready_i(group_taken),
    .data_o (group.data)
  );

  npu_cop_writer u_writer (
    .clk_i,
    .rst_ni,
    .range_i   (write_range),
    .bytes_i   (job_i.bytes),
    .eights_i  (job_i.most[3]),
    .drop_i,
    .flush_i   (dealt && pending_q == '0),
    .group_i   (group),
    .size_i    (group_size),
    .ready_o   (group_taken),
    .regions_i (settings_i.regions),
    .stream_i,
    .write_o   (write_req),
    .write_i   (write_rsp),
    .denied_o  (denied),
    .taken_o   (next_write),
    .answered_o(answered),
    .empty_o   (written)
  );

  always_ff @(posedge clk_i) begin
    if (!rst_ni) begin
      dealt_q   <= '0;
      pending_q <= '0;
    end else if (start_i) begin
      dealt_q   <= '0;
      pending_q <= '0;
    end else begin
      if (piece_o.valid && ready_i) dealt_q <= dealt_q + CountBits'(piece_size);
      if (job_i.writes_d)
        pending_q <= pending_q + ((piece_o.valid && ready_i) ? PendingBits'(piece_size) : '0)
                     - ((group.valid && group_taken) ? PendingBits'(group_size) : '0);
    end
  end

  npu_cop_mem u_mem (
    .clk_i,
    .rst_ni,
    .read_i (read_req),
    .read_o (read_rsp),
    .write_i(write_req),
    .write_o(write_rsp),
    .settings_i,
    .bus_o,
    .axi_req_o,
    .axi_rsp_i
  );

  // ---------------------------------------------------------------------------------------------
  // How far it is
  // ---------------------------------------------------------------------------------------------
  // Everything before an element that cannot be read, or may not be written, is written.
  assign progress_o.done = write_denied ? written && !bus_o.writes :
                           dealt && idle_i && (!job_i.writes_d ||
                                               (pending_q == '0 && written && !bus_o.writes));
  assign progress_o.write_denied = write_denied;
  assign progress_o.write_failed = write_rsp.done && write_rsp.error;
  assign progress_o.next_write = in_elements(next_write, job_i.bytes);
  assign progress_o.answered = in_elements(answered, job_i.bytes);
  assign progress_o.dealt = in_elements(dealt_q, job_i.bytes);

`ifndef SYNTHESIS
  ResultOfPiece_A :
  assert property (@(posedge clk_i) disable iff (!rst_ni)
                   job_i.writes_d && group_i.valid && !drop_i && !write_denied |-> pending_q != '0)
  else $error("npu_cop_arrays: a result without a piece");
  PendingFits_A :
  assert property (@(posedge clk_i) disable iff (!rst_ni) job_i.writes_d && run_i |->
                   pending_q < PendingBits'(2 ** (PendingBits - 1)) || !(piece_o.valid && ready_i))
  else $error("npu_cop_arrays: more bytes are inside a unit than are counted");
`endif

endmodule
