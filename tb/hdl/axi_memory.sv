// SPDX-License-Identifier: Apache-2.0
//
// Behavioural AXI4 memory: 128-bit data, 32-bit addresses, INCR bursts of full beats. Its bytes
// are a file that Python maps too (memory_dpi.cpp), so loading costs nothing and Python sees each
// write at once. Knobs change at run time; one DRAM follows another one only when nothing is read.
// An address outside the file answers DECERR.

module axi_memory (
  input logic                         clk_i,
  input logic                         rst_ni,
  input logic                  [63:0] cycle_i,
  input tb_pkg::memory_knobs_t        read_knobs_i,
  input tb_pkg::memory_knobs_t        write_knobs_i,

  input  npu_axi_pkg::axi_req_t axi_req_i,
  output npu_axi_pkg::axi_rsp_t axi_rsp_o
);

  axi_memory_read u_read (
    .clk_i,
    .rst_ni,
    .cycle_i,
    .knobs_i(read_knobs_i),
    .req_i  (axi_req_i.rd),
    .rsp_o  (axi_rsp_o.rd)
  );

  axi_memory_write u_write (
    .clk_i,
    .rst_ni,
    .cycle_i,
    .knobs_i(write_knobs_i),
    .req_i  (axi_req_i.wr),
    .rsp_o  (axi_rsp_o.wr)
  );

endmodule
