// SPDX-License-Identifier: Apache-2.0
//
// The core's data bus (OBI): memory and devices answer a cycle after the grant, the chip's registers
// when the chip does; in all of them random gaps. One access at a time is under way.

module soc_data_bus
  import soc_pkg::*;
(
  input logic clk_i,
  input logic rst_ni,

  input logic [ 6:0] gap_percent_i,
  input logic [31:0] seed_i,

  input  logic        stall_i,   // nothing is granted
  input  logic        req_i,
  output logic        gnt_o,
  input  logic [31:0] addr_i,
  input  logic        we_i,
  input  logic [ 3:0] be_i,
  input  logic [31:0] wdata_i,
  output logic        rvalid_o,
  output logic [31:0] rdata_o,
  output logic        err_o,

  // Devices: read and write act in the cycle of the access
  output logic    device_valid_o,
  output access_t device_access_o,
  input  answer_t device_answer_i,  // a cycle after the access

  // Registers of the chip: an access is held until it is done
  output logic    chip_valid_o,
  output access_t chip_access_o,  // the word's address from the first register
  input  logic    chip_done_i,
  input  answer_t chip_answer_i   // with done
);

  typedef enum logic [1:0] {
    FromHere,    // answer_q
    FromDevice,
    FromChip
  } source_e;

  logic no_grant, no_answer;
  logic pending_q;
  logic there;  // the answer
  source_e source_q;
  access_t access, access_q;
  answer_t answer, answer_q;
  logic chip_done_q;
  logic to_ram, to_device, to_cop, to_chip;

  soc_gaps u_gaps (
    .clk_i,
    .rst_ni,
    .percent_i  (gap_percent_i),
    .seed_i     (seed_i),
    .no_grant_o (no_grant),
    .no_answer_o(no_answer)
  );

  assign access = '{we: we_i, address: addr_i, be: be_i, wdata: wdata_i};
  assign to_ram = addr_i[31:28] == HomeRam && ram_has(addr_i);
  assign to_device = addr_i[31:28] == HomeDevices && addr_i[27:12] == '0;
  assign to_cop = addr_i[31:28] == HomeCopWindow && addr_i[27:8] == '0;
  assign to_chip = addr_i[31:28] == HomeChip && addr_i[27:12] == '0;

  assign gnt_o = req_i && !stall_i && !no_grant && (!pending_q || rvalid_o);
  assign there = source_q != FromChip || chip_done_q;
  assign rvalid_o = pending_q && there && !no_answer;
  assign answer = source_q == FromDevice ? device_answer_i : answer_q;
  assign {rdata_o, err_o} = answer;

  assign device_valid_o = gnt_o && to_device;
  assign device_access_o = access;
  assign chip_valid_o = pending_q && source_q == FromChip && !chip_done_q;
  assign chip_access_o = access_q;

  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) begin
      pending_q   <= 1'b0;
      source_q    <= FromHere;
      access_q    <= '0;
      answer_q    <= '0;
      chip_done_q <= 1'b0;
    end else begin
      pending_q <= gnt_o || (pending_q && !rvalid_o);
      if (gnt_o) begin
        access_q <= access;
        access_q.address <= {
          20'h0, to_cop ? CopWindow | {4'h0, addr_i[7:2], 2'h0} : {addr_i[11:2], 2'h0}
        };
        chip_done_q <= 1'b0;
        source_q <= FromHere;
        answer_q <= '{rdata: '0, err: 1'b1};
        if (to_ram) begin
          answer_q <= '{rdata: ram_read(addr_i), err: 1'b0};
          if (we_i) ram_write(access);
        end
        if (to_device) source_q <= FromDevice;
        if (to_cop || to_chip) source_q <= FromChip;
      end else if (chip_valid_o && chip_done_i) begin
        chip_done_q <= 1'b1;
        answer_q <= chip_answer_i;
      end
    end
  end

endmodule
