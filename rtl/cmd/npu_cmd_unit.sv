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

  input  logic         stop_i,   // pulse: forget what is running and what is offered
  input  logic         valid_i,  // an operation; may be withdrawn
  input  operation_t   op_i,     // with valid_i
  output unit_status_t status_o, // ready is independent of valid_i

  // Scratchpad
  output scratch_write_t             write_o,           // up to eight bytes; never refused
  output logic           [ByteW-1:0] window_addr_o,     // first of eight bytes
  input  logic           [     63:0] window_i,          // eight bytes, first lowest, same cycle
  output logic           [ByteW-1:0] gather_addr_o[8],  // eight single bytes
  input  logic           [      7:0] gather_i     [8],  // the bytes, same cycle

  output unit_events_t events_o  // to count
);

  typedef enum logic [2:0] {
    StIdle,
    StFirst,
    StSecond,
    StTile,
    StRefused
  } state_e;

  state_e state_q, state_d;
  // What was taken; npu_cmd_scalar keeps the operands.
  op_e opcode_q;
  logic ternary_q;
  logic [31:0] acc_q;
  tile_t tile_q;
  shape_t shape;
  logic [2:0] busy_count_q;
  logic [31:0] result_q, result_hi_q;
  logic ready, take, done;
  end_e how;
  logic gemm_q, vector_q, nibbles_q;  // what opcode_q is
  logic scalar, first, second, tile_start, begun_q;

  assign ready  = state_q == StIdle;
  assign take   = ready && valid_i && !stop_i;
  assign shape  = tile_shape(tile_q, ScratchBytes > 64);
  assign scalar = !gemm_q && !vector_q;
  assign first  = state_q == StFirst;
  assign second = state_q == StSecond;

  // ---------------------------------------------------------------------------------------------
  // Parts
  // ---------------------------------------------------------------------------------------------
  logic reserved, legal, gemm_done, vector_done;
  logic [31:0] result, result_hi;
  logic [23:0] gemm_macs;
  logic [15:0] gemm_results;
  scratch_write_t gemm_write, vector_write;
  logic [  ByteW:0] gemm_place;
  logic [ByteW-1:0] vector_addr;

  npu_cmd_scalar u_scalar (
    .clk_i,
    .rst_ni,
    .take_i     (take),
    .op_i,
    .load_i     (first && scalar),
    .opcode_i   (opcode_q),
    .ternary_i  (ternary_q),
    .acc_i      (acc_q),
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
    .opcode_i(opcode_q),
    .shape_i (shape),
    .okay_o  (legal)
  );

  npu_cmd_gemm #(
    .ScratchBytes(ScratchBytes)
  ) u_gemm (
    .clk_i,
    .rst_ni,
    .start_i       (tile_start && gemm_q),
    .stop_i,
    .nibbles_i     (nibbles_q),
    .shape_i       (shape),
    .done_o        (gemm_done),
    .macs_o        (gemm_macs),
    .results_o     (gemm_results),
    .window_place_o(gemm_place),
    .window_i,
    .gather_addr_o,
    .gather_i,
    .write_o       (gemm_write)
  );

  npu_cmd_vrelu #(
    .ScratchBytes(ScratchBytes)
  ) u_vrelu (
    .clk_i,
    .rst_ni,
    .start_i      (tile_start && vector_q),
    .stop_i,
    .shape_i      (shape),
    .done_o       (vector_done),
    .window_addr_o(vector_addr),
    .window_i,
    .write_o      (vector_write)
  );

  assign write_o = vector_q ? vector_write : gemm_write;
  always_comb begin
    window_addr_o = nibbles_q ? gemm_place[ByteW:1] : gemm_place[ByteW-1:0];
    if (vector_q) window_addr_o = vector_addr;
  end

  // ---------------------------------------------------------------------------------------------
  // Steps
  // ---------------------------------------------------------------------------------------------
  assign tile_start = second && !scalar && legal;

  always_comb begin
    state_d = state_q;
    done = 1'b0;
    how = EndOkay;
    unique case (state_q)
      StIdle:  if (valid_i) state_d = StFirst;
      StFirst: state_d = StSecond;
      StSecond: begin
        done = scalar;
        if (reserved) how = EndReserved;
        if (scalar) state_d = StIdle;
        else state_d = legal ? StTile : StRefused;
      end
      StRefused: begin
        done = 1'b1;
        how = EndRefused;
        state_d = StIdle;
      end
      StTile: begin
        done = gemm_done || vector_done;
        if (done) state_d = StIdle;
      end
      default: state_d = StIdle;
    endcase
    if (stop_i) begin
      state_d = StIdle;
      done = 1'b0;
    end
  end

  always_ff @(posedge clk_i) begin
    if (!rst_ni) begin
      state_q      <= StIdle;
      opcode_q     <= op_e'('0);
      ternary_q    <= 1'b0;
      acc_q        <= '0;
      tile_q       <= '0;
      gemm_q       <= 1'b0;
      vector_q     <= 1'b0;
      nibbles_q    <= 1'b0;
      begun_q      <= 1'b0;
      busy_count_q <= '0;
      result_q     <= '0;
      result_hi_q  <= '0;
    end else begin
      state_q <= state_d;
      begun_q <= second && (scalar || legal);
      if (take) begin
        opcode_q  <= op_i.opcode;
        ternary_q <= op_i.ternary;
        acc_q     <= op_i.acc;
        tile_q    <= op_i.tile;
        gemm_q    <= is_gemm(op_i.opcode);
        vector_q  <= is_vrelu(op_i.opcode);
        nibbles_q <= op_i.opcode == npu_cmd_regs__cmd_op__GEMM_S4;
      end
      if (state_d == StIdle) busy_count_q <= '0;
      else if (busy_count_q != '1) busy_count_q <= busy_count_q + 3'd1;
      if (done && scalar && how == EndOkay) begin
        result_q    <= result;
        result_hi_q <= result_hi;
      end
    end
  end

  assign status_o = '{
          ready: ready,
          done: done,
          how: how,
          result: result_q,
          result_hi: result_hi_q,
          busy_count: busy_count_q,
          opcode: opcode_q,
          gemm_busy: gemm_q && !ready,
          vector_busy: vector_q && !ready
      };

  // ---------------------------------------------------------------------------------------------
  // Events: a scalar operation begins with its second step, a tile when it is found legal, and is
  // counted a cycle later; what a tile has moved counts at its end.
  // ---------------------------------------------------------------------------------------------
  logic tile_done;
  assign tile_done = done && state_q == StTile;
  assign events_o.begun = begun_q;
  assign events_o.macs = (tile_done && gemm_q) ? gemm_macs : '0;

  always_comb begin
    events_o.bytes = '0;
    if (tile_done) begin
      if (vector_q) events_o.bytes = {14'b0, shape.len, 1'b0};
      else events_o.bytes = (nibbles_q ? gemm_macs : gemm_macs << 1) + {6'b0, gemm_results, 2'b00};
    end
  end

endmodule
