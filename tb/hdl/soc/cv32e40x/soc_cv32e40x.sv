// SPDX-License-Identifier: Apache-2.0
//
// CV32E40X (a package of its own) as the machine's core, with its buses.

module soc_cv32e40x
  import soc_pkg::*;
(
  input logic clk_i,
  input logic rst_ni,

  input  logic [ 6:0] gap_percent_i,
  input  logic [31:0] seed_i,
  input  logic        irq_i,          // machine external interrupt
  output logic        sleeping_o,     // in wfi
  output logic [31:0] pc_o,           // of the instruction that is decoded

  // Devices and registers of the chip: as from soc_data_bus
  output logic    device_valid_o,
  output access_t device_access_o,
  input  answer_t device_answer_i,
  output logic    chip_valid_o,
  output access_t chip_access_o,
  input  logic    chip_done_i,
  input  answer_t chip_answer_i,

  // CV-X-IF 1.0, X_ISSUE_REGISTER_SPLIT = 0, X_NUM_RS = 3
  soc_x_if.host x
);

  logic instr_req, instr_gnt, instr_rvalid, instr_err;
  logic [31:0] instr_addr, instr_rdata;
  logic data_stall, data_req, data_gnt, data_rvalid, data_err, data_we;
  logic [3:0] data_be;
  logic [31:0] data_addr, data_wdata, data_rdata;
  logic [4:0] third;
  logic third_owed;

  if_xif #(
    .X_NUM_RS  (3),
    .X_ID_WIDTH(4)
  ) xif ();

  cv32e40x_core #(
    .X_EXT     (1'b1),
    .X_NUM_RS  (3),
    .X_ID_WIDTH(4)
  ) u_core (
    .clk_i,
    .rst_ni,
    .scan_cg_en_i       (1'b0),
    .boot_addr_i        ('0),
    .dm_exception_addr_i('0),
    .dm_halt_addr_i     ('0),
    .mhartid_i          ('0),
    .mimpid_patch_i     ('0),
    .mtvec_addr_i       ('0),
    .instr_req_o        (instr_req),
    .instr_gnt_i        (instr_gnt),
    .instr_rvalid_i     (instr_rvalid),
    .instr_addr_o       (instr_addr),
    .instr_memtype_o    (),
    .instr_prot_o       (),
    .instr_dbg_o        (),
    .instr_rdata_i      (instr_rdata),
    .instr_err_i        (instr_err),
    .data_req_o         (data_req),
    .data_gnt_i         (data_gnt),
    .data_rvalid_i      (data_rvalid),
    .data_addr_o        (data_addr),
    .data_be_o          (data_be),
    .data_we_o          (data_we),
    .data_wdata_o       (data_wdata),
    .data_memtype_o     (),
    .data_prot_o        (),
    .data_dbg_o         (),
    .data_atop_o        (),
    .data_rdata_i       (data_rdata),
    .data_err_i         (data_err),
    .data_exokay_i      (1'b0),
    .mcycle_o           (),
    .xif_compressed_if  (xif),
    .xif_issue_if       (xif),
    .xif_commit_if      (xif),
    .xif_mem_if         (xif),
    .xif_mem_result_if  (xif),
    .xif_result_if      (xif),
    .irq_i              (32'(irq_i) << IrqExternal),
    .wu_wfe_i           (1'b0),
    .clic_irq_i         (1'b0),
    .clic_irq_id_i      ('0),
    .clic_irq_level_i   ('0),
    .clic_irq_priv_i    ('0),
    .clic_irq_shv_i     (1'b0),
    .fencei_flush_req_o (),
    .fencei_flush_ack_i (1'b1),
    .debug_req_i        (1'b0),
    .debug_havereset_o  (),
    .debug_running_o    (),
    .debug_halted_o     (),
    .fetch_enable_i     (1'b1),
    .core_sleep_o       (sleeping_o)
  );

  assign pc_o = u_core.if_id_pipe.pc;

  soc_profile u_profile (
    .clk_i,
    .rst_ni,
    .retired_i(u_core.wb_valid && u_core.last_op_wb),
    .pc_i     (u_core.ex_wb_pipe.pc)
  );

  soc_instr_bus u_instr_bus (
    .clk_i,
    .rst_ni,
    .gap_percent_i,
    .seed_i,
    .req_i   (instr_req),
    .gnt_o   (instr_gnt),
    .addr_i  (instr_addr),
    .rvalid_o(instr_rvalid),
    .rdata_o (instr_rdata),
    .err_o   (instr_err)
  );

  soc_data_bus u_data_bus (
    .clk_i,
    .rst_ni,
    .gap_percent_i,
    .seed_i  (~seed_i),
    .stall_i (data_stall),
    .req_i   (data_req),
    .gnt_o   (data_gnt),
    .addr_i  (data_addr),
    .we_i    (data_we),
    .be_i    (data_be),
    .wdata_i (data_wdata),
    .rvalid_o(data_rvalid),
    .rdata_o (data_rdata),
    .err_o   (data_err),
    .device_valid_o,
    .device_access_o,
    .device_answer_i,
    .chip_valid_o,
    .chip_access_o,
    .chip_done_i,
    .chip_answer_i
  );

  assign third_owed =
      (u_core.id_ex_pipe.instr_valid && u_core.id_ex_pipe.rf_we &&
       u_core.id_ex_pipe.rf_waddr == third) ||
      (u_core.ex_wb_pipe.instr_valid && u_core.ex_wb_pipe.rf_we &&
       u_core.ex_wb_pipe.rf_waddr == third);

  soc_cv32e40x_xif u_xif (
    .clk_i,
    .rst_ni,
    .compressed_if(xif),
    .issue_if     (xif),
    .commit_if    (xif),
    .mem_if       (xif),
    .result_if    (xif),
    .ex_ready_i   (u_core.ex_ready),
    .wb_ready_i   (u_core.wb_ready),
    .data_stall_o (data_stall),
    .third_o      (third),
    .third_value_i(u_core.register_file_wrapper_i.register_file_i.mem[third]),
    .third_owed_i (third_owed),
    .x
  );

endmodule
