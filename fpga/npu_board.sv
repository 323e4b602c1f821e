// SPDX-License-Identifier: Apache-2.0
//
// What is on a board beside its clock: the chip, memory in block RAM, and a UART over which a host
// reaches both. The chip has neither command port nor coprocessor and takes weights of 8 bits.

module npu_board #(
  parameter int unsigned ArrayDim = 4,  // of the chip, as npu_top has them
  parameter int unsigned SramKiB = 32,
  parameter int unsigned AccRows = 128,
  parameter int unsigned FifoKiB = 4,
  parameter int unsigned NormMax = 128,
  parameter int unsigned MemoryKiB = 128,  // a power of two from 4 to 1024
  parameter int unsigned Divisor = 32,  // cycles of a bit of the UART, at least 4
  parameter int unsigned IdleCycles = 1 << 23  // behind which a broken request is forgotten
) (
  input  logic clk_i,      // clock
  input  logic rst_ni,     // reset, active low; asynchronous
  input  logic uart_rx_i,  // from the host, asynchronous
  output logic uart_tx_o,  // to the host
  output logic irq_o       // a level: the chip's interrupt
);

  npu_axi_pkg::axil_req_t axil_req;
  npu_axi_pkg::axil_rsp_t axil_rsp;
  npu_axi_pkg::axi_req_t axi_req;
  npu_axi_pkg::axi_rsp_t axi_rsp;
  npu_board_pkg::word_req_t word_req;
  npu_board_pkg::word_rsp_t word_rsp;
  logic rst_n;
  logic rx_valid, rx_ready, tx_valid, tx_ready;
  logic [7:0] rx_data, tx_data;

  npu_reset_sync u_reset (
    .clk_i,
    .rst_ni,
    .rst_no(rst_n)
  );

  // ---------------------------------------------------------------------------------------------
  // Host
  // ---------------------------------------------------------------------------------------------
  npu_uart_rx #(
    .Divisor(Divisor)
  ) u_rx (
    .clk_i,
    .rst_ni (rst_n),
    .rx_i   (uart_rx_i),
    .valid_o(rx_valid),
    .ready_i(rx_ready),
    .data_o (rx_data)
  );

  npu_uart_tx #(
    .Divisor(Divisor)
  ) u_tx (
    .clk_i,
    .rst_ni (rst_n),
    .valid_i(tx_valid),
    .ready_o(tx_ready),
    .data_i (tx_data),
    .tx_o   (uart_tx_o)
  );

  npu_board_bridge #(
    .IdleCycles(IdleCycles)
  ) u_bridge (
    .clk_i,
    .rst_ni    (rst_n),
    .rx_valid_i(rx_valid),
    .rx_ready_o(rx_ready),
    .rx_data_i (rx_data),
    .tx_valid_o(tx_valid),
    .tx_ready_i(tx_ready),
    .tx_data_o (tx_data),
    .axil_req_o(axil_req),
    .axil_rsp_i(axil_rsp),
    .word_req_o(word_req),
    .word_rsp_i(word_rsp),
    .irq_i     (irq_o)
  );

  // ---------------------------------------------------------------------------------------------
  // Memory
  // ---------------------------------------------------------------------------------------------
  npu_board_memory #(
    .KiB(MemoryKiB)
  ) u_memory (
    .clk_i,
    .rst_ni    (rst_n),
    .axi_req_i (axi_req),
    .axi_rsp_o (axi_rsp),
    .word_req_i(word_req),
    .word_rsp_o(word_rsp)
  );

  // ---------------------------------------------------------------------------------------------
  // Chip
  // ---------------------------------------------------------------------------------------------
  npu_top #(
    .ArrayDim(ArrayDim),
    .SramKiB(SramKiB),
    .AccRows(AccRows),
    .FifoKiB(FifoKiB),
    .NormMax(NormMax),
    .NarrowFormats(1'b0),
    .EnableCmd(1'b0),
    .EnableCop(1'b0)
  ) u_chip (
    .clk_i,
    .rst_ni,
    .irq_o,
    .s_axil_awvalid_i       (axil_req.awvalid),
    .s_axil_awready_o       (axil_rsp.awready),
    .s_axil_awaddr_i        (axil_req.awaddr),
    .s_axil_wvalid_i        (axil_req.wvalid),
    .s_axil_wready_o        (axil_rsp.wready),
    .s_axil_wdata_i         (axil_req.wdata),
    .s_axil_wstrb_i         (axil_req.wstrb),
    .s_axil_bvalid_o        (axil_rsp.bvalid),
    .s_axil_bready_i        (axil_req.bready),
    .s_axil_bresp_o         (axil_rsp.bresp),
    .s_axil_arvalid_i       (axil_req.arvalid),
    .s_axil_arready_o       (axil_rsp.arready),
    .s_axil_araddr_i        (axil_req.araddr),
    .s_axil_rvalid_o        (axil_rsp.rvalid),
    .s_axil_rready_i        (axil_req.rready),
    .s_axil_rdata_o         (axil_rsp.rdata),
    .s_axil_rresp_o         (axil_rsp.rresp),
    .x_issue_valid_i        (1'b0),
    .x_issue_ready_o        (),
    .x_issue_instr_i        ('0),
    .x_issue_hartid_i       ('0),
    .x_issue_id_i           ('0),
    .x_issue_accept_o       (),
    .x_issue_writeback_o    (),
    .x_issue_register_read_o(),
    .x_issue_float_o        (),
    .x_register_valid_i     (1'b0),
    .x_register_ready_o     (),
    .x_register_hartid_i    ('0),
    .x_register_id_i        ('0),
    .x_register_rs_i        ('0),
    .x_register_rs_valid_i  ('0),
    .x_commit_valid_i       (1'b0),
    .x_commit_hartid_i      ('0),
    .x_commit_id_i          ('0),
    .x_commit_kill_i        (1'b0),
    .x_result_valid_o       (),
    .x_result_ready_i       (1'b0),
    .x_result_hartid_o      (),
    .x_result_id_o          (),
    .x_result_rd_o          (),
    .x_result_we_o          (),
    .x_result_data_o        (),
    .m_axi_arvalid_o        (axi_req.rd.arvalid),
    .m_axi_arready_i        (axi_rsp.rd.arready),
    .m_axi_arid_o           (axi_req.rd.arid),
    .m_axi_araddr_o         (axi_req.rd.araddr),
    .m_axi_arlen_o          (axi_req.rd.arlen),
    .m_axi_arsize_o         (),
    .m_axi_arburst_o        (),
    .m_axi_rvalid_i         (axi_rsp.rd.rvalid),
    .m_axi_rready_o         (axi_req.rd.rready),
    .m_axi_rid_i            (axi_rsp.rd.rid),
    .m_axi_rdata_i          (axi_rsp.rd.rdata),
    .m_axi_rresp_i          (axi_rsp.rd.rresp),
    .m_axi_rlast_i          (axi_rsp.rd.rlast),
    .m_axi_awvalid_o        (axi_req.wr.awvalid),
    .m_axi_awready_i        (axi_rsp.wr.awready),
    .m_axi_awid_o           (axi_req.wr.awid),
    .m_axi_awaddr_o         (axi_req.wr.awaddr),
    .m_axi_awlen_o          (axi_req.wr.awlen),
    .m_axi_awsize_o         (),
    .m_axi_awburst_o        (),
    .m_axi_wvalid_o         (axi_req.wr.wvalid),
    .m_axi_wready_i         (axi_rsp.wr.wready),
    .m_axi_wdata_o          (axi_req.wr.wdata),
    .m_axi_wstrb_o          (axi_req.wr.wstrb),
    .m_axi_wlast_o          (axi_req.wr.wlast),
    .m_axi_bvalid_i         (axi_rsp.wr.bvalid),
    .m_axi_bready_o         (axi_req.wr.bready),
    .m_axi_bid_i            (axi_rsp.wr.bid),
    .m_axi_bresp_i          (axi_rsp.wr.bresp)
  );

endmodule
