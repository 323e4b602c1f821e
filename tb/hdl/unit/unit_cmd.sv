// SPDX-License-Identifier: Apache-2.0
//
// Bench of the command port's operations by register: accesses are played as requests {write, offset,
// data}; what a read returns is noted in slot 1. No memory answers, so the ring stays unused.

module unit_cmd;

  logic clk, rst_n, start, ended;
  unit_pkg::program_t played;

  unit_control u_control (
    .clk_o    (clk),
    .rst_no   (rst_n),
    .world_o  (),
    .program_o(played),
    .start_o  (start),
    .end_i    (ended)
  );

  logic valid, waiting, ack, writes;
  logic [111:0] payload;
  logic [31:0] rdata, wdata;
  logic [7:0] offset;

  assign {writes, offset, wdata} = payload[40:0];

  unit_requests u_accesses (
    .clk_i    (clk),
    .rst_ni   (rst_n),
    .start_i  (start),
    .count_i  (played.words),
    .end_o    (ended),
    .valid_o  (valid),
    .ready_i  (ack),
    .payload_o(payload)
  );

  npu_host_pkg::window_req_t req;
  npu_host_pkg::window_rsp_t rsp;

  assign req   = '{valid: valid && !waiting, write: writes, addr: offset, wdata: wdata, wmask: '1};
  assign ack   = rsp.ack;
  assign rdata = rsp.rdata;

  npu_cmd u_cmd (
    .clk_i       (clk),
    .rst_ni      (rst_n),
    .req_i       (req),
    .rsp_o       (rsp),
    .irq_o       (),
    .soft_reset_i(1'b0),
    .regions_i   ('0),
    .stream_i    ('0),
    .launch_o    (),
    .launch_i    ('0),
    .axi_req_o   (),
    .axi_rsp_i   ('0)
  );

  logic [31:0] index;

  always @(posedge clk) begin
    waiting <= rst_n && valid && !ack;
    if (!rst_n) begin
      index <= '0;
    end else if (valid && ack) begin
      index <= index + 32'd1;
      tb_pkg::tb_memory_now(unit_pkg::ObservedAt + unit_pkg::SlotBytes + 16 * index, 128'(rdata));
    end
  end

endmodule
