// SPDX-License-Identifier: Apache-2.0
//
// Bench of the norms and RoPE alone.

module unit_nrm
  import npu_pkg::*;
  import npu_isa_pkg::*;
#(
  parameter int unsigned ArrayDim = 16  // rows and columns of the systolic array: 4, 8, 16 or 32
);

  unit_engine_if bench ();

  unit_engine #(.ArrayDim(ArrayDim)) u_engine (.bench);

  logic ready;
  engine_status_t status;

  assign bench.op_ready = NumEngines'(ready) << EngNrm;
  assign bench.done     = NumEngines'(status.done) << EngNrm;
  assign bench.argmax   = '0;

  npu_nrm #(
    .ArrayDim(ArrayDim)
  ) u_nrm (
    .clk_i     (bench.clk),
    .rst_ni    (bench.rst_n),
    .op_valid_i(bench.op_valid[EngNrm]),
    .op_ready_o(ready),
    .op_i      (bench.operations.nrm),
    .status_o  (status),
    .rd_req_o  (bench.rd_req[0]),
    .rd_rsp_i  (bench.rd_rsp[0]),
    .wr_req_o  (bench.wr_req[0]),
    .wr_ready_i(bench.wr_ready[0]),
    .share_i   (bench.share),
    .share_o   (bench.take)
  );

endmodule
