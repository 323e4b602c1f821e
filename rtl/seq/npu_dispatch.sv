// SPDX-License-Identifier: Apache-2.0
//
// Dispatches checked instructions in program order into the queues of the engines. The scoreboard
// counts the unfinished instructions of every engine; a barrier waits until those of its mask are
// down to its number. Instructions that take a share of the stream draw a ticket. Everything that
// depends on registers is checked here; a refused instruction waits for the older ones to finish.

module npu_dispatch
  import npu_pkg::*;
  import npu_isa_pkg::*;
  import npu_seq_pkg::*;
(
  input logic clk_i,
  input logic rst_ni,

  // Start of a program
  input logic             start_i,
  input mem_addr_t        base_i         [8],
  input logic      [31:0] pos_i,
  input logic      [31:0] stream_length_i,

  input  logic   stop_i,         // the program ends: nothing more is dispatched
  input  logic   entry_valid_i,
  output logic   entry_ready_o,
  input  entry_t entry_i,

  output logic           ticket_valid_o,
  input  logic           ticket_ready_i,
  output logic           ticket_rewind_o,
  output engine_e        ticket_engine_o,
  output logic    [31:0] ticket_offset_o,

  // Queues of the engines
  output logic       [NumEngines-1:0] cmd_valid_o,
  input  logic       [NumEngines-1:0] cmd_ready_i,
  output load_cmd_t                   load_o,
  output store_cmd_t                  store_o,
  output gemm_cmd_t                   gemm_o,
  output smx_cmd_t                    smx_o,
  output nrm_cmd_t                    nrm_o,
  output vec_cmd_t                    vec_o,
  input  logic       [NumEngines-1:0] done_i,

  // End of the program: a level, until reset
  output logic   end_o,
  output fault_t fault_o,

  output instr_idx_t last_instr_o,  // dispatched last

  // For the counters: a word is dispatched; engines with unfinished instructions
  output logic                  fire_o,
  output logic [NumEngines-1:0] busy_o
);

  // ---------------------------------------------------------------------------------------------
  // Machine registers
  // ---------------------------------------------------------------------------------------------
  mem_addr_t base_q[8];
  logic [31:0] pos_q, offset_q, length_q;  // offset_q: where the next share begins
  logic [31:0] value;
  instr_t word;
  logic set_fire;

  assign word  = entry_i.word;
  assign value = {word.src1, word.src0};

  logic is_engine, bad_address;
  engine_e   engine;
  mem_addr_t mem_addr;

  npu_decode u_decode (
    .entry_i,
    .base_i       (base_q),
    .pos_i        (pos_q),
    .is_engine_o  (is_engine),
    .engine_o     (engine),
    .bad_address_o(bad_address),
    .mem_addr_o   (mem_addr),
    .load_o,
    .store_o,
    .gemm_o,
    .smx_o,
    .nrm_o,
    .vec_o
  );

  // ---------------------------------------------------------------------------------------------
  // Scoreboard
  // ---------------------------------------------------------------------------------------------
  localparam int unsigned CountW = 5;
  logic [CountW-1:0] count_q[NumEngines];
  logic all_idle, barrier_ok;
  logic [NumEngines-1:0] mask;
  assign mask = (word.m[NumEngines-1:0] == '0) ? '1 : word.m[NumEngines-1:0];

  always_comb begin
    all_idle   = 1'b1;
    barrier_ok = 1'b1;
    for (int unsigned e = 0; e < NumEngines; e++) begin
      busy_o[e] = count_q[e] != '0;
      if (busy_o[e]) all_idle = 1'b0;
      if (mask[e] && 16'(count_q[e]) > word.n) barrier_ok = 1'b0;
    end
  end

  // ---------------------------------------------------------------------------------------------
  // The instruction at the head
  // ---------------------------------------------------------------------------------------------
  error_e error;
  mem_addr_t error_addr;
  logic takes_share, is_end, rewind, go;

  assign takes_share = is_engine && entry_i.share != '0;
  assign is_end      = word.opcode == OpEnd;
  assign rewind      = word.opcode == OpSet && word.dst == SetStream && value != offset_q;

  always_comb begin
    error      = entry_i.error;
    error_addr = entry_i.error_addr;
    // A bad memory address goes before a bad SRAM range.
    if (bad_address && error inside {ErrNone, ErrSramRange}) begin
      error      = ErrBadAddress;
      error_addr = mem_addr;
    end else if (error == ErrNone && takes_share &&
                 {1'b0, offset_q} + {1'b0, entry_i.share} > {1'b0, length_q}) begin
      error = ErrStreamEnd;
    end else if (error == ErrNone && is_end && offset_q != '0 && offset_q != length_q) begin
      error = ErrStreamLeft;
    end
  end

  always_comb begin
    go = entry_valid_i && error == ErrNone && !end_o && !stop_i;
    if (is_engine) begin
      go &= cmd_ready_i[engine] && (!takes_share || ticket_ready_i);
    end else begin
      unique case (word.opcode)
        OpBarrier: go &= barrier_ok;
        OpSet:     go &= !rewind || ticket_ready_i;
        OpEnd:     go &= all_idle;
        default:   ;
      endcase
    end
  end

  assign entry_ready_o   = go;
  assign fire_o          = go;
  assign set_fire        = go && word.opcode == OpSet;
  assign ticket_valid_o  = go && (takes_share || rewind);
  assign ticket_rewind_o = rewind;
  assign ticket_engine_o = engine;
  assign ticket_offset_o = value;

  always_comb begin
    cmd_valid_o = '0;
    if (go && is_engine) cmd_valid_o[engine] = 1'b1;
  end

  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) begin
      for (int unsigned e = 0; e < NumEngines; e++) count_q[e] <= '0;
    end else begin
      for (int unsigned e = 0; e < NumEngines; e++) begin
        count_q[e] <= count_q[e] + CountW'(cmd_valid_o[e]) - CountW'(done_i[e]);
      end
    end
  end

  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) begin
      for (int unsigned b = 0; b < 8; b++) base_q[b] <= '0;
      pos_q    <= '0;
      offset_q <= '0;
      length_q <= '0;
    end else if (start_i) begin
      base_q   <= base_i;
      pos_q    <= pos_i;
      offset_q <= '0;
      length_q <= stream_length_i;
    end else begin
      if (go && takes_share) offset_q <= offset_q + entry_i.share;
      if (set_fire) begin
        if (word.dst == SetStream) offset_q <= value;
        else if (word.dst == SetPos) pos_q <= word.flags[FlagAdd] ? pos_q + value : value;
        else begin
          base_q[word.dst[2:0]] <= word.flags[FlagAdd] ? base_q[word.dst[2:0]] + value : value;
        end
      end
    end
  end

  // ---------------------------------------------------------------------------------------------
  // End
  // ---------------------------------------------------------------------------------------------
  logic refuse;
  assign refuse = entry_valid_i && error != ErrNone && all_idle && !end_o;

  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) begin
      end_o        <= 1'b0;
      fault_o      <= '0;
      last_instr_o <= '0;
    end else begin
      if (refuse) begin
        end_o <= 1'b1;
        fault_o <= '{
            valid: 1'b1,
            code: error,
            engine: EngSeq,
            instr: entry_i.index,
            addr: error_addr
        };
      end else if (go && is_end) begin
        end_o <= 1'b1;
      end
      if (go) last_instr_o <= entry_i.index;
    end
  end

`ifndef SYNTHESIS
  for (genvar e = 0; e < int'(NumEngines); e++) begin : gen_check
    assert property (@(posedge clk_i) disable iff (!rst_ni) done_i[e] |-> count_q[e] != '0)
    else $error("npu_dispatch: engine %0d finished an instruction that it never had", e);
  end
`endif

endmodule
