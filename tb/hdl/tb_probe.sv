// SPDX-License-Identifier: Apache-2.0
//
// Writes down what the chip did: every SRAM write with its instruction, every dispatched word and
// every finished instruction, as records that Python reads (tb/logs.py).

module tb_probe (
  input logic               clk_i,
  input logic               rst_ni,
  input logic [63:0]        cycle_i,
  input logic               enable_i,

  input logic [4:0]         sram_wr_fire_i,
  input logic [4:0][15:0]   sram_wr_addr_i,
  input logic [4:0][127:0]  sram_wr_data_i,
  input logic [4:0][31:0]   sram_wr_instr_i,
  input logic               dispatch_fire_i,
  input logic [31:0]        dispatch_instr_i,
  input logic [127:0]       dispatch_word_i,
  input logic [5:0]         engine_done_i,
  input logic [5:0][31:0]   engine_instr_i
);
  import tb_pkg::*;

  always_ff @(posedge clk_i) begin
    if (rst_ni && enable_i) begin
      if (sram_wr_fire_i != '0) begin
        for (int unsigned p = 0; p < 5; p++) begin
          if (sram_wr_fire_i[p])
            tb_log_write(cycle_i, sram_wr_instr_i[p], p, 32'(sram_wr_addr_i[p]), sram_wr_data_i[p]);
        end
      end
      if (dispatch_fire_i)
        tb_log_event(cycle_i, EventDispatch, 0, dispatch_instr_i, dispatch_word_i);
      if (engine_done_i != '0) begin
        for (int unsigned e = 0; e < 6; e++) begin
          if (engine_done_i[e]) tb_log_event(cycle_i, EventDone, e, engine_instr_i[e], '0);
        end
      end
    end
  end

endmodule
