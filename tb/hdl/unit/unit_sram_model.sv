// SPDX-License-Identifier: Apache-2.0
//
// Behavioural SRAM of a bench: the bytes are a file that Python maps as well, every port may be
// refused in any cycle, and nobody waits for anybody else. Data follow an accepted read by one cycle.

module unit_sram_model
  import npu_sram_pkg::*;
  import tb_pkg::*;
#(
  parameter int unsigned NumRd = 1,
  parameter int unsigned NumWr = 1
) (
  input logic             clk_i,
  input logic             rst_ni,
  input unit_pkg::world_t world_i,

  input  sram_rd_req_t rd_req_i  [NumRd],
  output sram_rd_rsp_t rd_rsp_o  [NumRd],
  input  sram_wr_req_t wr_req_i  [NumWr],
  output logic         wr_ready_o[NumWr]
);

  logic [31:0] random;
  logic [NumRd+NumWr-1:0] refused;
  logic [NumRd-1:0] rd_ready, valid;
  logic [127:0] data[NumRd];

  for (genvar r = 0; r < int'(NumRd); r++) begin : gen_read
    assign rd_ready[r] = rd_req_i[r].valid && !refused[r];
    assign rd_rsp_o[r] = '{ready: rd_ready[r], valid: valid[r], data: data[r]};
  end
  for (genvar w = 0; w < int'(NumWr); w++) begin : gen_write
    assign wr_ready_o[w] = wr_req_i[w].valid && !refused[NumRd+w];
  end

  // A behavioural model: state is updated in program order within one clock edge.
  /* verilator lint_off BLKSEQ */
  always @(posedge clk_i) begin
    if (!rst_ni) begin
      random = world_i.seed;
      refused <= '0;
      for (int unsigned r = 0; r < NumRd; r++) valid[r] <= 1'b0;
    end else begin
      for (int unsigned p = 0; p < NumRd + NumWr; p++) begin
        random = next_random(random);
        refused[p] <= happens((p < NumRd) ? world_i.read_stall : world_i.write_stall, random[19:8]);
      end
      for (int unsigned r = 0; r < NumRd; r++) begin
        automatic bit [127:0] word = {4{random}};
        if (rd_ready[r]) tb_sram_load(32'(rd_req_i[r].addr), word);
        valid[r] <= rd_ready[r];
        data[r]  <= word;
      end
      for (int unsigned w = 0; w < NumWr; w++) begin
        if (wr_ready_o[w]) tb_sram_store(32'(wr_req_i[w].addr), wr_req_i[w].data);
      end
    end
  end
  /* verilator lint_on BLKSEQ */

endmodule
