// SPDX-License-Identifier: Apache-2.0
//
// The only module of the bench that looks inside the chip. It writes down every SRAM write with its
// instruction, every dispatched word and every finished instruction as records that Python reads
// (tb/logs.py), copies the SRAM to the shared file on request, and shows opcodes for waveforms.

module tb_probe #(
  parameter int unsigned SramKiB = 256
) (
  input logic        clk_i,
  input logic        rst_ni,
  input logic [63:0] cycle_i,
  input logic        log_i,
  input logic        sync_i,   // rising edge: copy the SRAM, flush the logs

  output logic [ 5:0]       engine_busy_o,
  output logic [ 5:0]       engine_stall_o,
  output logic [ 5:0][31:0] engine_instr_o,
  output logic [31:0]       last_dispatched_o,
  output logic              barrier_wait_o
);
  import tb_pkg::*;

  localparam int unsigned NumEngines = npu_pkg::NumEngines;
  localparam int unsigned NumPorts = 5;  // SRAM write ports: ld, gemm, smx, nrm, vec
  localparam int unsigned NumBanks = npu_pkg::NumSramBanks;
  localparam int unsigned BankRows = SramKiB * 1024 / 16 / NumBanks;

  // -----------------------------------------------------------------------------------------------
  // The signals of the chip that the bench depends on
  // -----------------------------------------------------------------------------------------------
  logic dispatch_fire;
  logic [31:0] dispatch_instr;
  logic [127:0] dispatch_word;
  logic [NumEngines-1:0] engine_done;

  assign dispatch_fire  = tb_top.dut.u_core.u_seq.u_dispatch.fire_o;
  assign dispatch_instr = tb_top.dut.u_core.u_seq.u_dispatch.entry_i.index;
  assign dispatch_word  = tb_top.dut.u_core.u_seq.u_dispatch.entry_i.word;
  assign engine_done    = tb_top.dut.u_core.engine_done;
  assign engine_busy_o  = tb_top.dut.u_core.engine_busy_o;
  assign engine_stall_o = tb_top.dut.u_core.engine_stall_o;
  for (genvar e = 0; e < int'(NumEngines); e++) begin : gen_engine_instr
    assign engine_instr_o[e] = tb_top.dut.u_core.u_engines.instr_o[e];
  end
  assign barrier_wait_o =
      tb_top.dut.u_core.u_seq.u_dispatch.entry_valid_i && !tb_top.dut.u_core.instr_o &&
      tb_top.dut.u_core.u_seq.u_dispatch.word.opcode == npu_isa_pkg::OpBarrier;

  logic [NumPorts-1:0] sram_wr_fire;
  logic [NumPorts-1:0][15:0] sram_wr_addr;
  logic [NumPorts-1:0][127:0] sram_wr_data;
  logic [NumPorts-1:0][31:0] sram_wr_instr;

  for (genvar p = 0; p < int'(NumPorts); p++) begin : gen_sram_wr
    assign sram_wr_fire[p]  = tb_top.dut.u_core.u_engines.wr_req[p].valid &&
                              tb_top.dut.u_core.u_engines.wr_ready[p];
    assign sram_wr_addr[p] = tb_top.dut.u_core.u_engines.wr_req[p].addr;
    assign sram_wr_data[p] = tb_top.dut.u_core.u_engines.wr_req[p].data;
    assign sram_wr_instr[p] = tb_top.dut.u_core.u_engines.wr_req[p].instr;
  end

  // -----------------------------------------------------------------------------------------------
  // Logs
  // -----------------------------------------------------------------------------------------------
  always_ff @(posedge clk_i) begin
    if (rst_ni && log_i) begin
      if (sram_wr_fire != '0) begin
        for (int unsigned p = 0; p < NumPorts; p++) begin
          if (sram_wr_fire[p])
            tb_log_write(cycle_i, sram_wr_instr[p], p, 32'(sram_wr_addr[p]), sram_wr_data[p]);
        end
      end
      if (dispatch_fire) tb_log_event(cycle_i, EventDispatch, 0, dispatch_instr, dispatch_word);
      if (engine_done != '0) begin
        for (int unsigned e = 0; e < NumEngines; e++) begin
          if (engine_done[e]) tb_log_event(cycle_i, EventDone, e, engine_instr_o[e], '0);
        end
      end
    end
  end

  // -----------------------------------------------------------------------------------------------
  // The shared files
  // -----------------------------------------------------------------------------------------------
  initial begin
    string run_dir;
    if (!$value$plusargs("run_dir=%s", run_dir)) $fatal(1, "+run_dir=<folder> is missing");
    tb_open(run_dir, SramKiB * 1024);
  end

  always @(posedge sync_i) tb_flush();

  for (genvar b = 0; b < int'(NumBanks); b++) begin : gen_sram_copy
    always @(posedge sync_i) begin
      for (int unsigned r = 0; r < BankRows; r++) begin
        automatic logic [15:0] row = 16'(r << 4);
        // The bank of a word is its low nibble XOR a fold of the rest, so the fold gives it back.
        tb_sram_store(32'({row[15:4], npu_pkg::sram_bank(row | 16'(b))}),
                      tb_top.dut.u_core.u_engines.u_sram.gen_bank[b].u_bank.mem_q[r]);
      end
    end
  end

  // -----------------------------------------------------------------------------------------------
  // For waveforms: opcode bytes, which the viewer shows as mnemonics; unread, so the fast build
  // drops them
  // -----------------------------------------------------------------------------------------------
  localparam int unsigned Depth = 1024;  // more words than the queues of all engines hold
  localparam int unsigned Bits = $clog2(Depth);

  logic [7:0] opcodes[Depth];
  logic [7:0] dispatched = '0;
  logic [7:0] ld, st, gemm, smx, nrm, vec;

  always_ff @(posedge clk_i) begin
    if (dispatch_fire) begin
      opcodes[dispatch_instr[Bits-1:0]] <= dispatch_word[7:0];
      dispatched <= dispatch_word[7:0];
      last_dispatched_o <= dispatch_instr;
    end
  end

  assign ld   = engine_busy_o[0] ? opcodes[engine_instr_o[0][Bits-1:0]] : '0;
  assign st   = engine_busy_o[1] ? opcodes[engine_instr_o[1][Bits-1:0]] : '0;
  assign gemm = engine_busy_o[2] ? opcodes[engine_instr_o[2][Bits-1:0]] : '0;
  assign smx  = engine_busy_o[3] ? opcodes[engine_instr_o[3][Bits-1:0]] : '0;
  assign nrm  = engine_busy_o[4] ? opcodes[engine_instr_o[4][Bits-1:0]] : '0;
  assign vec  = engine_busy_o[5] ? opcodes[engine_instr_o[5][Bits-1:0]] : '0;

endmodule
