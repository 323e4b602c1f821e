// SPDX-License-Identifier: Apache-2.0
//
// The operation unit: takes one operation at a time and runs it in two steps, a GEMM or VRELU, if
// it is allowed, in as many more as it needs. RESULT changes with the end of a scalar operation.

module npu_cmd_unit
  import npu_cmd_pkg::*;
  import npu_cmd_regs_pkg::*;
#(
  parameter int unsigned ScratchBytes = 64,  // bytes of the scratchpad: 64, 128 or 256
  localparam int unsigned ByteW = $clog2(ScratchBytes)  // width of a byte address
) (
  input logic clk_i,  // clock
  input logic rst_ni, // reset, active low

  input  logic       stop_i,   // pulse: forget what is running and what is offered
  input  logic       valid_i,  // an operation; may be withdrawn
  output logic       ready_o,  // taken, a level while idle; independent of valid_i
  input  operation_t op_i,     // with valid_i
  output logic       done_o,   // pulse, in the last cycle; two cycles after it is taken or later
  output end_e       end_o,    // how it ended, with done_o

  // What the registers show; the results are there in the cycle after done_o
  output logic [31:0] result_o,      // RESULT: of the last scalar operation without error
  output logic [31:0] result_hi_o,   // RESULT_HI, the same
  output logic [ 2:0] busy_count_o,  // cycles that an operation has been running, at most 7; else 0
  output op_e         opcode_o,      // of the last one taken
  output logic        gemm_busy_o,   // a level: a GEMM runs
  output logic        vector_busy_o, // a level: a VRELU runs

  // Scratchpad
  output scratch_write_t             write_o,           // up to eight bytes; never refused
  output logic           [ByteW-1:0] window_addr_o,     // first of eight bytes
  input  logic           [     63:0] window_i,          // eight bytes, first lowest, same cycle
  output logic           [ByteW-1:0] gather_addr_o[8],  // eight single bytes
  input  logic           [      7:0] gather_i     [8],  // the bytes, same cycle

  // Events to count
  output logic        begun_o,         // pulse: an operation that is not refused
  output logic [23:0] macs_o,          // products of a GEMM, in its last cycle; else 0
  output logic [23:0] scratch_bytes_o  // read and written by a tile, in its last cycle; else 0
);

  typedef enum logic [1:0] {
    StIdle,
    StFirst,
    StSecond,
    StTile
  } state_e;

  state_e state_q, state_d;
  operation_t op_q;
  shape_t shape;
  logic [2:0] busy_count_q;
  logic gemm, vector, scalar, nibbles, first, second, refused, tile_start;

  assign ready_o = state_q == StIdle;
  assign shape   = tile_shape(op_q.tile, ScratchBytes > 64);
  assign gemm    = is_gemm(op_q.opcode);
  assign vector  = is_vrelu(op_q.opcode);
  assign scalar  = !gemm && !vector;
  assign nibbles = op_q.opcode == npu_cmd_regs__cmd_op__GEMM_S4;
  assign first   = state_q == StFirst;
  assign second  = state_q == StSecond;

  // ---------------------------------------------------------------------------------------------
  // Parts
  // ---------------------------------------------------------------------------------------------
  logic reserved, legal, gemm_done, vector_done;
  logic [31:0] result, result_hi;
  logic [23:0] gemm_macs;
  logic [15:0] gemm_results;
  scratch_write_t gemm_write, vector_write;
  logic [ByteW-1:0] gemm_addr, vector_addr;

  npu_cmd_scalar u_scalar (
    .clk_i,
    .rst_ni,
    .load_i     (first && scalar),
    .op_i       (op_q),
    .reserved_o (reserved),
    .result_o   (result),
    .result_hi_o(result_hi)
  );

  npu_cmd_check #(
    .ScratchBytes(ScratchBytes)
  ) u_check (
    .clk_i,
    .rst_ni,
    .load_i  (first),
    .opcode_i(op_q.opcode),
    .shape_i (shape),
    .okay_o  (legal)
  );

  npu_cmd_gemm #(
    .ScratchBytes(ScratchBytes)
  ) u_gemm (
    .clk_i,
    .rst_ni,
    .start_i      (tile_start && gemm),
    .stop_i,
    .nibbles_i    (nibbles),
    .shape_i      (shape),
    .done_o       (gemm_done),
    .macs_o       (gemm_macs),
    .results_o    (gemm_results),
    .window_addr_o(gemm_addr),
    .window_i,
    .gather_addr_o,
    .gather_i,
    .write_o      (gemm_write)
  );

  npu_cmd_vrelu #(
    .ScratchBytes(ScratchBytes)
  ) u_vrelu (
    .clk_i,
    .rst_ni,
    .start_i      (tile_start && vector),
    .stop_i,
    .shape_i      (shape),
    .done_o       (vector_done),
    .window_addr_o(vector_addr),
    .window_i,
    .write_o      (vector_write)
  );

  assign write_o       = vector ? vector_write : gemm_write;
  assign window_addr_o = vector ? vector_addr : gemm_addr;

  // ---------------------------------------------------------------------------------------------
  // Steps
  // ---------------------------------------------------------------------------------------------
  assign refused       = second && !scalar && !legal;
  assign tile_start    = second && !scalar && legal;

  always_comb begin
    state_d = state_q;
    done_o  = 1'b0;
    end_o   = EndOkay;
    unique case (state_q)
      StIdle:  if (valid_i) state_d = StFirst;
      StFirst: state_d = StSecond;
      StSecond: begin
        done_o = !tile_start;
        if (refused) end_o = EndRefused;
        else if (scalar && reserved) end_o = EndReserved;
        state_d = tile_start ? StTile : StIdle;
      end
      StTile: begin
        done_o = gemm_done || vector_done;
        if (done_o) state_d = StIdle;
      end
      default: state_d = StIdle;
    endcase
    if (stop_i) begin
      state_d = StIdle;
      done_o  = 1'b0;
    end
  end

  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) begin
      state_q      <= StIdle;
      op_q         <= '0;
      busy_count_q <= '0;
      result_o     <= '0;
      result_hi_o  <= '0;
    end else begin
      state_q <= state_d;
      if (ready_o && valid_i && !stop_i) op_q <= op_i;
      if (state_d == StIdle) busy_count_q <= '0;
      else if (busy_count_q != '1) busy_count_q <= busy_count_q + 3'd1;
      if (done_o && scalar && end_o == EndOkay) begin
        result_o    <= result;
        result_hi_o <= result_hi;
      end
    end
  end

  assign busy_count_o  = busy_count_q;
  assign opcode_o      = op_q.opcode;
  assign gemm_busy_o   = gemm && !ready_o;
  assign vector_busy_o = vector && !ready_o;

  // ---------------------------------------------------------------------------------------------
  // Events: a scalar operation begins with its second step, a tile when it is found legal; what a
  // tile has moved counts at its end.
  // ---------------------------------------------------------------------------------------------
  logic tile_done;
  assign tile_done = done_o && state_q == StTile;
  assign begun_o   = second && !refused;
  assign macs_o    = (tile_done && gemm) ? gemm_macs : '0;

  always_comb begin
    scratch_bytes_o = '0;
    if (tile_done) begin
      if (vector) scratch_bytes_o = {14'b0, shape.len, 1'b0};
      else scratch_bytes_o = (nibbles ? gemm_macs : gemm_macs << 1) + {6'b0, gemm_results, 2'b00};
    end
  end

endmodule
