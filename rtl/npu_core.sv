// SPDX-License-Identifier: Apache-2.0
//
// The core: sequencer, engines, parameter streamer, SRAM and the memory port. It knows nothing of
// the host's registers; it is given a program, a stream and base addresses, and reports how it
// ended. Everything but the memory port is reset whenever a program ends, however it ends.

module npu_core
  import npu_pkg::*;
  import npu_mem_pkg::*;
  import npu_operation_pkg::*;
  import npu_stream_pkg::*;
  import npu_start_pkg::*;
  import npu_isa_pkg::*;
  import npu_host_pkg::*;
  import npu_seq_pkg::*;
#(
  parameter int unsigned ArrayDim = 16,  // rows and columns of the systolic array: 4, 8, 16 or 32
  parameter int unsigned SramKiB = 256,  // KiB of SRAM, a power of two from 4 to 1024
  // Rows of an accumulator bank, a power of two of at least 4
  parameter int unsigned AccRows = 128,
  parameter int unsigned FifoKiB = 32,  // KiB of the parameter FIFO, a power of two of at least 4
  // Longest norm row in columns, a multiple of 16 from 32 to 8192
  parameter int unsigned NormMax = 8192,
  // Formats of weights in the stream other than int8
  parameter bit NarrowFormats = 1'b1
) (
  input logic clk_i,  // clock
  input logic rst_ni, // reset, active low

  // Control
  // Pulses; start is lost while busy or with soft_reset
  input  control_t            control_i,
  // With control_i.start; launches use the rest of it
  input  start_state_t        start_state_i,
  input  start_value_t        start_value_i,   // behind every start; launches use some
  input  logic          [4:0] stream_limit_i,  // bursts; 0 = found from the memory's latency
  input  mem_settings_t       memory_i,        // regions and time limit, levels
  // How the program stands; the fields say when they hold
  output run_status_t         status_o,
  output generated_t          generated_o,     // of the program that runs or ran last, a level

  // The parameter stream in use, for its protection
  output stream_range_t stream_o,  // bytes; from the cycle after a start until the end

  // Programs of the command port
  input  launch_req_t launch_i,  // a program to run
  output launch_rsp_t launch_o,  // how it fares

  output events_t events_o,  // of this cycle, for the counters

  // Memory port
  // AR, AW and W stay stable until ready; R and B are always taken
  output npu_axi_pkg::axi_req_t axi_req_o,
  // Every ready may depend on its valid; words of an ID in order
  input  npu_axi_pkg::axi_rsp_t axi_rsp_i
);

  localparam int unsigned SramWords = SramKiB * 1024 / WordBytes;

  // Read clients in the order of their priority
  localparam int unsigned NumRd = 3;
  localparam int unsigned RdUcode = 0;
  localparam int unsigned RdLoad = 1;
  localparam int unsigned RdStream = 2;

  logic core_rst_n, start, drain;
  bus_status_t bus;

  // ---------------------------------------------------------------------------------------------
  // Memory port
  // ---------------------------------------------------------------------------------------------
  mem_req_t rd_req[NumRd], wr_req[1];
  mem_rd_rsp_t       rd_rsp      [NumRd];
  mem_wdata_t        w           [    1];
  mem_wr_rsp_t       wr_rsp      [    1];
  logic        [8:0] mem_latency;
  logic              mem_word;

  npu_mem_port #(
    .NumRd    (NumRd),
    .NumWr    (1),
    .RdEngines('{EngStream, EngLd, EngSeq}),
    .WrEngines('{EngSt})
  ) u_mem_port (
    .clk_i,
    .rst_ni,
    .rd_req_i  (rd_req),
    .rd_rsp_o  (rd_rsp),
    .wr_req_i  (wr_req),
    .w_i       (w),
    .wr_rsp_o  (wr_rsp),
    .settings_i(memory_i),
    .stream_i  (stream_o),
    .drain_i   (drain),
    .bus_o     (bus),
    .latency_o (mem_latency),
    .word_o    (mem_word),
    .axi_req_o,
    .axi_rsp_i
  );

  assign events_o.read_beat   = axi_rsp_i.rd.rvalid && axi_req_o.rd.rready;
  assign events_o.write_beat  = axi_req_o.wr.wvalid && axi_rsp_i.wr.wready;
  assign events_o.stream_beat = axi_rsp_i.rd.rvalid && axi_rsp_i.rd.rid == {1'b0, EngStream};

  // ---------------------------------------------------------------------------------------------
  // Program control
  // ---------------------------------------------------------------------------------------------
  progress_t progress;
  error_t engine_error;
  start_state_t start_state;
  start_value_t start_value;

  npu_program u_program (
    .clk_i,
    .rst_ni,
    .control_i,
    .start_state_i,
    .start_value_i,
    .launch_i,
    .launch_ready_o(launch_o.ready),
    .launch_end_o  (launch_o.ended),
    .start_state_o (start_state),
    .start_value_o (start_value),
    .progress_i    (progress),
    .engine_error_i(engine_error),
    .drain_o       (drain),
    .bus_i         (bus),
    .core_rst_no   (core_rst_n),
    .status_o
  );
  assign start           = status_o.started;
  assign launch_o.error  = status_o.error;
  assign launch_o.outcnt = generated_o.outcnt;

  // ---------------------------------------------------------------------------------------------
  // Sequencer and streamer
  // ---------------------------------------------------------------------------------------------
  logic [NumEngines-1:0] op_valid, op_ready, engine_done, unfinished;
  engine_status_t engine_status[NumEngines];
  operations_t operations;
  argmax_t argmax;
  logic argmax_clear;
  machine_t regs;
  logic ticket_valid, ticket_ready;
  ticket_t ticket;

  npu_seq #(
    .ArrayDim(ArrayDim),
    .AccRows(AccRows),
    .NormMax(NormMax),
    .SramWords(SramWords),
    .NarrowFormats(NarrowFormats)
  ) u_seq (
    .clk_i,
    .rst_ni        (core_rst_n),
    .start_i       (start),
    .stop_i        (drain || control_i.abort_program),
    .start_state_i (start_state),
    .start_value_i (start_value),
    .rd_req_o      (rd_req[RdUcode]),
    .rd_rsp_i      (rd_rsp[RdUcode]),
    .regs_o        (regs),
    .argmax_i      (argmax),
    .argmax_clear_o(argmax_clear),
    .ticket_valid_o(ticket_valid),
    .ticket_ready_i(ticket_ready),
    .ticket_o      (ticket),
    .op_valid_o    (op_valid),
    .op_ready_i    (op_ready),
    .operations_o  (operations),
    .done_i        (engine_done),
    .progress_o    (progress),
    .fire_o        (events_o.instr),
    .busy_o        (unfinished)
  );

  logic token_done;

  npu_generated u_generated (
    .clk_i,
    .rst_ni,
    .start_i       (start),
    .run_i         (status_o.busy && !drain),
    .regs_i        (regs),
    .token_sent_i  (argmax_clear),
    .token_stored_i(token_done),
    .generated_o
  );

  for (genvar e = 0; e < int'(NumEngines); e++) begin : gen_engine
    assign engine_done[e] = engine_status[e].done;
    // What is being reset neither works nor waits.
    assign events_o.engine_busy[e] = unfinished[e] && core_rst_n;
    assign events_o.engine_stall[e] = engine_status[e].stall && engine_status[e].busy && core_rst_n;
  end

  logic [NumEngines-1:0] line_valid, line_ready, line_last;
  line_t line_data;

  logic [4:0] stream_limit;
  logic stream_wants, stream_held;

  npu_stream_limit u_stream_limit (
    .clk_i,
    .rst_ni   (core_rst_n),
    .setting_i(stream_limit_i),
    .latency_i(mem_latency),
    .wants_i  (stream_wants),
    .held_i   (stream_held),
    .mine_i   (rd_rsp[RdStream].valid),
    .word_i   (mem_word),
    .load_i   (unfinished[EngLd]),
    .limit_o  (stream_limit)
  );

  stream_range_t stream_range;
  assign stream_range.base   = start_state.image.stream_base;
  assign stream_range.length = start_state.image.stream_len;

  npu_streamer #(
    .FifoWords(FifoKiB * 1024 / WordBytes)
  ) u_streamer (
    .clk_i,
    .rst_ni        (core_rst_n),
    .start_i       (start),
    .stream_i      (stream_range),
    .limit_i       (stream_limit),
    .wants_o       (stream_wants),
    .held_o        (stream_held),
    .stream_o,
    .ticket_valid_i(ticket_valid),
    .ticket_ready_o(ticket_ready),
    .ticket_i      (ticket),
    .loop_i        (regs.loop_left != '0),
    .line_valid_o  (line_valid),
    .line_data_o   (line_data),
    .line_ready_i  (line_ready),
    .line_last_i   (line_last),
    .rd_req_o      (rd_req[RdStream]),
    .rd_rsp_i      (rd_rsp[RdStream])
  );

  npu_engines #(
    .ArrayDim(ArrayDim),
    .SramWords(SramWords),
    .AccRows(AccRows),
    .NormMax(NormMax),
    .NarrowFormats(NarrowFormats)
  ) u_engines (
    .clk_i,
    .rst_ni        (core_rst_n),
    .op_valid_i    (op_valid),
    .op_ready_o    (op_ready),
    .operations_i  (operations),
    .status_o      (engine_status),
    .macs_o        (events_o.macs),
    .error_o       (engine_error),
    .token_done_o  (token_done),
    .argmax_o      (argmax),
    .argmax_clear_i(argmax_clear),
    .line_valid_i  (line_valid),
    .line_data_i   (line_data),
    .line_ready_o  (line_ready),
    .line_last_o   (line_last),
    .mem_rd_req_o  (rd_req[RdLoad]),
    .mem_rd_rsp_i  (rd_rsp[RdLoad]),
    .mem_wr_req_o  (wr_req[0]),
    .mem_w_o       (w[0]),
    .mem_wr_rsp_i  (wr_rsp[0])
  );

endmodule
