// SPDX-License-Identifier: Apache-2.0
//
// Counts a second time what the chip's performance counters count, by their definitions on the page
// of registers: beats on the memory bus by their owners, words that the dispatcher takes, operations
// that enter an engine's queue, leave it and are finished, and what is refused at the engines' ports. The bench holds the
// registers against these figures after every program; MACS follow from the program instead.

module perf_monitor #(
  parameter int unsigned NumEngines = 6
) (
  input logic clk_i,
  input logic rst_ni,

  // What begins and ends STATUS.BUSY, and what clears the counters
  input logic start_i,       // a program starts
  input logic soft_reset_i,
  input logic core_rst_ni,   // its one cycle is the last one of a program
  input logic clear_i,       // PERF_CTRL.CLEAR

  // Memory bus; the top bit of an identifier tells the command port from programs
  input npu_axi_pkg::axi_req_t req_i,
  input npu_axi_pkg::axi_rsp_t rsp_i,

  // Instructions
  input logic                  word_i,   // the dispatcher takes one
  input logic [NumEngines-1:0] queue_i,  // the engine's queue takes an operation
  input logic [NumEngines-1:0] take_i,   // the engine takes it out of the queue
  input logic [NumEngines-1:0] done_i,   // the engine has finished one
  input logic [NumEngines-1:0] waits_i,  // it does what STALL counts, if it has an operation

  output logic [          63:0]       cycles_o,
  output logic [          31:0]       instrs_o,
  output logic [          31:0]       read_beats_o,
  output logic [          31:0]       write_beats_o,
  output logic [          31:0]       stream_beats_o,
  output logic [NumEngines-1:0][31:0] busy_o,
  output logic [NumEngines-1:0][31:0] stall_o
);

  localparam logic [tb_pkg::AxiIdBits-1:0] StreamId = {1'b0, npu_isa_pkg::EngStream};

  logic running_q;  // STATUS.BUSY
  bit owners[$];  // of the write bursts whose data is not complete: 1 for the command port
  int unsigned unfinished_q[NumEngines];  // instructions of the engines
  int unsigned in_hand_q[NumEngines];  // of these, those that are out of the queue
  logic taken, beat, written;

  assign taken   = req_i.wr.awvalid && rsp_i.wr.awready;
  assign beat    = rsp_i.rd.rvalid && req_i.rd.rready;
  assign written = req_i.wr.wvalid && rsp_i.wr.wready;

  always @(posedge clk_i) begin
    if (running_q) begin
      cycles_o       <= cycles_o + 64'd1;
      instrs_o       <= instrs_o + 32'(word_i);
      read_beats_o   <= read_beats_o + 32'(beat && !rsp_i.rd.rid[$high(rsp_i.rd.rid)]);
      stream_beats_o <= stream_beats_o + 32'(beat && rsp_i.rd.rid == StreamId);
      if (written) write_beats_o <= write_beats_o + 32'(!owners[0]);
      for (int unsigned e = 0; e < NumEngines; e++) begin
        busy_o[e]  <= busy_o[e] + 32'(core_rst_ni && unfinished_q[e] != 0);
        stall_o[e] <= stall_o[e] + 32'(core_rst_ni && in_hand_q[e] != 0 && waits_i[e]);
      end
    end
    if (!rst_ni || start_i || clear_i) begin
      cycles_o       <= '0;
      instrs_o       <= '0;
      read_beats_o   <= '0;
      write_beats_o  <= '0;
      stream_beats_o <= '0;
      busy_o         <= '0;
      stall_o        <= '0;
    end

    running_q <= running_q ? core_rst_ni : start_i || soft_reset_i;
    if (written && req_i.wr.wlast) void'(owners.pop_front());
    if (taken) owners.push_back(req_i.wr.awid[$high(req_i.wr.awid)]);
    for (int unsigned e = 0; e < NumEngines; e++) begin
      unfinished_q[e] <= unfinished_q[e] + 32'(queue_i[e]) - 32'(done_i[e]);
      in_hand_q[e]    <= in_hand_q[e] + 32'(take_i[e]) - 32'(done_i[e]);
      if (!core_rst_ni) begin
        unfinished_q[e] <= 0;
        in_hand_q[e]    <= 0;
      end
    end
    if (!rst_ni) begin
      running_q <= 1'b0;
      owners.delete();
    end
  end

endmodule
