// SPDX-License-Identifier: Apache-2.0
//
// The behavioural AXI memory behind a block, as the world's knobs have it. With `Faulty` it takes what
// goes wrong from slot `FaultSlot` at the start: the ranges of memory_faults_t, and its flags in bits
// 36:32 of the word behind. While no word is offered it is ready for one, as AXI allows.

module unit_axi_memory
  import npu_axi_pkg::*;
  import tb_pkg::*;
#(
  parameter bit Faulty = 1'b0,
  localparam int unsigned FaultSlot = 9
) (
  input logic             clk_i,
  input logic             rst_ni,
  input unit_pkg::world_t world_i,
  input logic             start_i,
  input logic             speak_i,  // a level: no silence any more

  input  axi_req_t axi_req_i,
  output axi_rsp_t axi_rsp_o
);

  unit_pkg::memory_faults_t faults;
  memory_knobs_t read_knobs, write_knobs;
  logic [63:0] cycle;
  axi_rsp_t answers;

  always @(posedge clk_i) begin
    cycle <= rst_ni ? cycle + 64'd1 : '0;
    if (!rst_ni) begin
      faults <= '0;
    end else if (Faulty && start_i) begin
      automatic bit [1:0][127:0] words;
      for (int unsigned w = 0; w < 2; w++) begin
        tb_memory_read(unit_pkg::ProgramAt + FaultSlot * unit_pkg::SlotBytes + 16 * w, words[w]);
      end
      faults <= {words[0], words[1][36:32]};
    end
  end

  always_comb begin
    read_knobs = '0;
    read_knobs.latency = 16'd5;
    read_knobs.spread = 16'd40;
    read_knobs.gap_percent = world_i.memory_stall;
    read_knobs.address_stall_percent = world_i.memory_stall;
    read_knobs.data_stall_percent = (faults.no_words && !speak_i) ? 7'd100 : world_i.memory_stall;
    read_knobs.interleave = 1'b1;
    read_knobs.silent_first = faults.silent_first;
    read_knobs.silent_last = faults.silent_last;
    read_knobs.error_first = faults.error_first;
    read_knobs.error_last = faults.error_last;
    read_knobs.seed = world_i.seed;
    write_knobs = read_knobs;
    read_knobs.silent = faults.silent_reads && !speak_i;
    read_knobs.error_enable = faults.read_errors;
    write_knobs.silent = faults.silent_writes && !speak_i;
    write_knobs.error_enable = faults.write_errors;
  end

  always_comb begin
    axi_rsp_o = answers;
    axi_rsp_o.wr.wready = answers.wr.wready || !axi_req_i.wr.wvalid;
  end

  axi_memory u_memory (
    .clk_i        (clk_i),
    .rst_ni       (rst_ni),
    .cycle_i      (cycle),
    .read_knobs_i (read_knobs),
    .write_knobs_i(write_knobs),
    .axi_req_i    (axi_req_i),
    .axi_rsp_o    (answers)
  );

endmodule
