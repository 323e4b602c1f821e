// SPDX-License-Identifier: Apache-2.0
//
// Bench of the GEMM engine alone. A token of ARGMAX goes to memory at once.

module unit_gemm
  import npu_pkg::*;
  import npu_isa_pkg::*;
#(
  parameter int unsigned ArrayDim = 16  // rows and columns of the systolic array: 4, 8, 16 or 32
);

  localparam int unsigned NumRd = 4;

  unit_engine_if #(.NumRd(NumRd)) bench ();

  unit_engine #(
    .ArrayDim(ArrayDim),
    .NumRd(NumRd)
  ) u_engine (
    .bench
  );

  logic ready, stored;
  engine_status_t status;
  mem_addr_t token_at;

  assign bench.op_ready = (NumEngines'(ready) << EngGemm) | (NumEngines'(1) << EngSt);
  assign bench.done     = (NumEngines'(status.done) << EngGemm) | (NumEngines'(stored) << EngSt);
  assign token_at       = bench.operations.store.mem;

  npu_gemm #(
    .ArrayDim(ArrayDim)
  ) u_gemm (
    .clk_i         (bench.clk),
    .rst_ni        (bench.rst_n),
    .op_valid_i    (bench.op_valid[EngGemm]),
    .op_ready_o    (ready),
    .op_i          (bench.operations.gemm),
    .status_o      (status),
    .rd_req_o      (bench.rd_req),
    .rd_rsp_i      (bench.rd_rsp),
    .wr_req_o      (bench.wr_req[0]),
    .wr_ready_i    (bench.wr_ready[0]),
    .share_i       (bench.share),
    .share_o       (bench.take),
    .argmax_o      (bench.argmax),
    .argmax_clear_i(bench.argmax_clear),
    .macs_o        ()
  );

  always @(posedge bench.clk) begin
    stored <= bench.rst_n && bench.op_valid[EngSt];
    if (bench.rst_n && bench.op_valid[EngSt]) begin
      tb_pkg::tb_memory_hold({token_at[31:4], 4'b0}, {4{bench.operations.store.token}},
                             16'hf << token_at[3:0]);
      tb_pkg::tb_memory_commit(1);
    end
  end

endmodule
