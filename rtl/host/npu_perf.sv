// SPDX-License-Identifier: Apache-2.0
//
// Performance counters: what a program did and what its engines waited for. They count while a
// program runs and keep their values until the next start or an explicit clear.

module npu_perf
  import npu_pkg::*;
(
  input logic clk_i,
  input logic rst_ni,

  input logic clear_i,
  input logic run_i,

  input logic [          11:0] macs_i,
  input logic                  instr_i,
  input logic                  read_beat_i,
  input logic                  write_beat_i,
  input logic                  stream_beat_i,
  input logic [NumEngines-1:0] busy_i,
  input logic [NumEngines-1:0] stall_i,

  output logic [63:0] cycles_o,
  output logic [63:0] macs_o,
  output logic [31:0] instrs_o,
  output logic [31:0] read_beats_o,
  output logic [31:0] write_beats_o,
  output logic [31:0] stream_beats_o,
  output logic [31:0] busy_o[NumEngines],
  output logic [31:0] stall_o[NumEngines]
);

  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) begin
      cycles_o       <= '0;
      macs_o         <= '0;
      instrs_o       <= '0;
      read_beats_o   <= '0;
      write_beats_o  <= '0;
      stream_beats_o <= '0;
      for (int unsigned e = 0; e < NumEngines; e++) begin
        busy_o[e]  <= '0;
        stall_o[e] <= '0;
      end
    end else if (clear_i) begin
      cycles_o       <= '0;
      macs_o         <= '0;
      instrs_o       <= '0;
      read_beats_o   <= '0;
      write_beats_o  <= '0;
      stream_beats_o <= '0;
      for (int unsigned e = 0; e < NumEngines; e++) begin
        busy_o[e]  <= '0;
        stall_o[e] <= '0;
      end
    end else if (run_i) begin
      cycles_o       <= cycles_o + 64'd1;
      macs_o         <= macs_o + 64'(macs_i);
      instrs_o       <= instrs_o + 32'(instr_i);
      read_beats_o   <= read_beats_o + 32'(read_beat_i);
      write_beats_o  <= write_beats_o + 32'(write_beat_i);
      stream_beats_o <= stream_beats_o + 32'(stream_beat_i);
      for (int unsigned e = 0; e < NumEngines; e++) begin
        busy_o[e]  <= busy_o[e] + 32'(busy_i[e]);
        stall_o[e] <= stall_o[e] + 32'(stall_i[e]);
      end
    end
  end

endmodule
