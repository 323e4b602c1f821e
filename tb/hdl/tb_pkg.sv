// SPDX-License-Identifier: Apache-2.0
//
// What the bench's modules share: the run-time knobs of the memory, the small random generator
// behind every gap (the simulator's own would differ between builds), and the C++ side.

package tb_pkg;

  localparam int unsigned AxiIdBits = 4;

  // What answers: a memory of fixed latency, or one of those that dram.h describes
  typedef enum logic [1:0] {
    MemoryFixed  = 2'd0,
    MemoryDdr4   = 2'd1,
    MemoryLpddr4 = 2'd2
  } memory_e;

  typedef struct packed {
    memory_e memory;  // of a DRAM, latency and spread do not count
    logic [15:0] latency;  // address handshake to first beat, or last write beat to response
    logic [15:0] spread;  // up to so many cycles more, drawn for each burst
    logic [6:0] gap_percent;  // cycles in which no beat or response is offered
    logic [6:0] address_stall_percent;  // cycles in which no address is accepted
    logic [6:0] data_stall_percent;  // cycles in which no write beat is accepted
    logic interleave;  // beats of different identifiers may alternate
    logic silent;  // the channel stops answering accesses to silent_first .. silent_last
    logic [31:0] silent_first;  // byte addresses, inclusive; with all of them it accepts nothing
    logic [31:0] silent_last;
    logic error_enable;  // accesses to error_first .. error_last answer SLVERR
    logic [31:0] error_first;  // byte addresses, inclusive
    logic [31:0] error_last;
    logic [31:0] seed;
  } memory_knobs_t;

  typedef enum logic [1:0] {
    RespOkay   = 2'b00,
    RespSlvErr = 2'b10,
    RespDecErr = 2'b11
  } axi_resp_e;

  // -----------------------------------------------------------------------------------------------
  // The coprocessor's port (CV-X-IF 1.0)
  // -----------------------------------------------------------------------------------------------
  localparam int unsigned XIdBits = 32;  // of identifiers and harts, as wide as they may be
  localparam int unsigned XSources = 3;

  // What the host says there
  typedef struct packed {
    logic issue_valid;
    logic [31:0] issue_instr;
    logic [XIdBits-1:0] issue_hartid;
    logic [XIdBits-1:0] issue_id;
    logic register_valid;
    logic [XIdBits-1:0] register_hartid;
    logic [XIdBits-1:0] register_id;
    logic [XSources-1:0][31:0] register_rs;
    logic [XSources-1:0] register_rs_valid;
    logic result_ready;
  } x_host_t;

  // Apart, for it may follow from the answer to an offer
  typedef struct packed {
    logic valid;
    logic [XIdBits-1:0] hartid;
    logic [XIdBits-1:0] id;
    logic kill;
  } x_commit_t;

  // What the chip says
  typedef struct packed {
    logic issue_ready;
    logic issue_accept;
    logic issue_writeback;
    logic [XSources-1:0] issue_register_read;
    logic [XSources-1:0] issue_float;
    logic register_ready;
    logic result_valid;
    logic [XIdBits-1:0] result_hartid;
    logic [XIdBits-1:0] result_id;
    logic [4:0] result_rd;
    logic result_we;
    logic [31:0] result_data;
  } x_chip_t;

  // The rules of the port that can be seen at its signals (docs/reference/coprocessor-port.md)
  typedef enum int unsigned {
    IdUnique,
    IdIncreases,
    OneHart,
    IssueStable,
    AcceptsOwn,
    RefusedWritesNothing,
    RefusedReadsNothing,
    RegisterWithIssue,
    ReadyTogether,
    OperandsAwaited,
    OthersNotAwaited,
    SourcesKept,
    SourcesStable,
    RegisterBehindIssue,
    RegisterOnce,
    RegisterComplete,
    RegisterAlwaysReady,
    CommitNotAhead,
    CommitPulse,
    CommitFinal,
    KillFinal,
    EveryIssueDecided,
    ResultOfEach,
    ResultOnce,
    ResultOfAccepted,
    ResultOfKilled,
    WaitingIsKilled,
    ResultAfterCommit,
    ResultAfterRegister,
    ResultComes,
    ResultHeld,
    ResultStable,
    ResultWriteback,
    ResultRegister,
    ResultHart,
    CopRules  // how many there are
  } cop_rule_e;

  // What the rules know of what is under way
  typedef struct packed {
    logic [7:0] count;  // accepted instructions
    logic on_memory;  // a committed one of them uses memory
    logic [XIdBits-1:0] oldest_id;  // of the oldest, with count
    logic oldest_on_memory;  // likewise: it uses memory
  } x_under_way_t;

  // An instruction that `cop_agent` offers, with what became of it: a record of offers.bin, whose
  // first byte is the lowest one here (tb/bench/offers.py)
  typedef struct packed {
    logic [31:0] named;  // the identifier that its commit or kill named, modulo 256 as id
    logic [31:0] answered_at;  // cycles, modulo 2^32: first one with its result_valid
    logic [31:0] resulted_at;  // handshake of result
    logic [31:0] committed_at;  // commit or kill
    logic [31:0] issued_at;  // handshake of issue
    logic [31:0] offered_at;  // first one with its issue_valid
    logic [31:0] data;
    logic [7:0] rd;
    logic [7:0] id;
    logic [3:0] float_registers;
    logic [3:0] register_read;
    logic [7:0] state;  // bits of offer_state_e
    logic [31:0] unused;
    logic [7:0] withdraw;  // cycles after which an offer that waits is withdrawn once, 0: never
    logic [7:0] beside;  // its commit names an identifier so far behind it, a kill one before it
    logic [7:0] hold;  // cycles that its result waits for ready
    logic [7:0] step;  // its identifier minus that of the offer before
    logic [7:0] commit_delay;  // cycles from issue on, 0: in the same one; from the offer if early
    logic [XSources-1:0][7:0] source_delay;  // cycles until it is there, from offer or issue on
    logic [15:0] flags;  // bits of offer_flag_e
    logic [15:0] gap;  // cycles without an offer before
    logic [XSources-1:0][31:0] rs;
    logic [31:0] word;
  } offer_t;

  typedef enum logic [3:0] {
    OfferKill   = 4'd0,  // its commit kills it, and all that are younger
    OfferEarly  = 4'd1,  // its commit does not wait for its issue
    OfferBatch  = 4'd2,  // no commit of its own if a younger one is there to be committed
    OfferAlone  = 4'd3,  // only when nothing is under way
    OfferStays  = 4'd4,  // it waits on when it is killed
    OfferRepeat = 4'd5,  // it is committed a second time, or one so far `beside` before it
    OfferSwap   = 4'd6   // it is withdrawn by another identifier, without a cycle between
  } offer_flag_e;

  typedef enum logic [2:0] {
    OfferIssued = 3'd0,
    OfferAccepted = 3'd1,
    OfferWriteback = 3'd2,
    OfferCommitted = 3'd3,
    OfferKilled = 3'd4,
    OfferResulted = 3'd5,
    OfferWritten = 3'd6  // result with `we`
  } offer_state_e;

  // Kinds of record in the event log.
  localparam int unsigned EventDispatch = 1;
  localparam int unsigned EventDone = 2;

  // Kinds of record in the trace: milestones, always written; states and samples with knob_trace.
  localparam int unsigned TraceStart = 1;  // the core takes a start
  localparam int unsigned TraceInterrupt = 2;
  localparam int unsigned TraceTake = 3;  // an engine takes an operation
  localparam int unsigned TraceState = 4;  // an engine, or the sequencer, has a new state_e
  localparam int unsigned TraceSample = 5;  // bus and stream in the last TraceWindow cycles
  localparam int unsigned TraceCmdStart = 6;  // strobe of a start of the command port
  localparam int unsigned TraceCmdInterrupt = 7;
  localparam int unsigned TraceFinish = 8;  // the end of a program
  localparam int unsigned TraceWindow = 16;

  // What an engine or the sequencer does, or what it waits for; the numbers are those of
  // tb/bench/logs.py.
  typedef enum logic [3:0] {
    StateIdle = 4'd0,
    StateWork = 4'd1,
    StatePipeline = 4'd2,  // filling or emptying its own pipeline
    StateReadPort = 4'd3,  // an SRAM read is refused
    StateWritePort = 4'd4,
    StateStream = 4'd5,  // the parameter stream has nothing
    StateReadData = 4'd6,  // of the memory bus
    StateWriteChannel = 4'd7,
    StateResponse = 4'd8,
    StateAccumulator = 4'd9,  // no free bank
    StateParameter = 4'd10,  // the parameters of the tile before are still in use
    StateBarrier = 4'd11,
    StateQueueFull = 4'd12,
    StateTicket = 4'd13,  // no room for one more share, or a rewind
    StateFetch = 4'd14,
    StateEnd = 4'd15  // END waits for the engines
  } state_e;

  // For residue_probe: its rising edge asks for what memories hold, to be added to the file
  logic residue;
  string residue_file;

  function automatic logic [31:0] next_random(logic [31:0] state);
    logic [31:0] x;
    x = (state == '0) ? 32'h9e37_79b9 : state;
    x ^= x << 13;
    x ^= x >> 17;
    x ^= x << 5;
    return x;
  endfunction

  // True in about `percent` of all calls with fresh random bits.
  function automatic logic happens(logic [6:0] percent, logic [11:0] bits);
    return (percent != '0) && (32'(bits) * 32'd100 < 32'(percent) * 32'd4096);
  endfunction

  // Cycles until the memory answers a burst; fresh random bits
  function automatic logic [63:0] delay(memory_knobs_t knobs, logic [15:0] bits);
    logic [16:0] more;
    more = {1'b0, bits} % ({1'b0, knobs.spread} + 17'd1);
    return 64'(knobs.latency) + 64'(more);
  endfunction

  // Whether one of the 16 bytes at `address` lies in the range
  function automatic logic meets(logic [31:0] address, logic [31:0] first, logic [31:0] last);
    return (address | 32'hf) >= first && address <= last;
  endfunction

  // Whether the memory withholds its answer to an access to the 16 bytes at `address`
  function automatic logic withholds(memory_knobs_t knobs, logic [31:0] address);
    return knobs.silent && meets(address, knobs.silent_first, knobs.silent_last);
  endfunction

  // Whether the memory accepts nothing
  function automatic logic is_deaf(memory_knobs_t knobs);
    return knobs.silent && knobs.silent_first == '0 && knobs.silent_last == '1;
  endfunction

  // How the memory answers an access to the 16 bytes at `address`.
  function automatic logic [1:0] response(memory_knobs_t knobs, logic [31:0] address);
    if (!tb_memory_has(address)) return RespDecErr;
    if (knobs.error_enable && meets(address, knobs.error_first, knobs.error_last))
      return RespSlvErr;
    return RespOkay;
  endfunction

  // Implemented in memory_dpi.cpp. Addresses are byte addresses, data one 16-byte beat.
  import "DPI-C" function void tb_open(
    input string run_dir,
    input int unsigned sram_bytes
  );
  import "DPI-C" function bit tb_memory_has(input int unsigned address);
  import "DPI-C" function void tb_memory_read(
    input int unsigned address,
    output bit [127:0] data
  );
  import "DPI-C" function void tb_memory_now(
    input int unsigned address,
    input bit [127:0] data
  );
  import "DPI-C" function void tb_memory_hold(
    input int unsigned address,
    input bit [127:0] data,
    input bit [15:0] strobe
  );
  import "DPI-C" function void tb_memory_commit(input int unsigned beats);
  import "DPI-C" function void tb_memory_forget();
  // When a DRAM answers (dram.h); addresses and beats as above, in cycles that do not go back.
  import "DPI-C" function void tb_dram_forget();
  import "DPI-C" function void tb_dram_choose(
    input int unsigned kind,
    input int unsigned seed
  );
  import "DPI-C" function void tb_dram_read(
    input longint unsigned cycle,
    input int unsigned address,
    input int unsigned beats
  );
  import "DPI-C" function bit tb_dram_readable(input longint unsigned cycle);
  import "DPI-C" function void tb_dram_take();
  import "DPI-C" function bit tb_dram_room(input longint unsigned cycle);
  import "DPI-C" function int unsigned tb_dram_write(
    input longint unsigned cycle,
    input int unsigned address,
    input int unsigned beats
  );
  import "DPI-C" function void tb_sram_store(
    input int unsigned word,
    input bit [127:0] data
  );
  import "DPI-C" function void tb_sram_load(
    input int unsigned word,
    output bit [127:0] data
  );
  import "DPI-C" function void tb_log_write(
    input longint unsigned cycle,
    input int unsigned instr,
    input int unsigned port,
    input int unsigned word,
    input bit [127:0] data
  );
  import "DPI-C" function void tb_log_event(
    input longint unsigned cycle,
    input int unsigned kind,
    input int unsigned engine,
    input int unsigned instr,
    input bit [127:0] word
  );
  import "DPI-C" function void tb_log_trace(
    input longint unsigned cycle,
    input int unsigned kind,
    input int unsigned engine,
    input int unsigned instr,
    input bit [127:0] word
  );
  import "DPI-C" function void tb_access_get(
    input int unsigned index,
    output bit [31:0] address,
    output bit [31:0] data,
    output bit [3:0] strobe,
    output bit writes,
    output bit with_next
  );
  import "DPI-C" function void tb_access_answer(
    input int unsigned index,
    input bit [31:0] data,
    input bit [1:0] resp
  );
  import "DPI-C" function void tb_offer_get(
    input int unsigned index,
    output bit [511:0] offer
  );
  import "DPI-C" function void tb_offer_put(
    input int unsigned index,
    input bit [511:0] offer
  );
  import "DPI-C" function void tb_flush();

endpackage
