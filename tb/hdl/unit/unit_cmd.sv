// SPDX-License-Identifier: Apache-2.0
//
// Bench of the command port: accesses are played as requests {after the interrupt, write, offset,
// data}; what a read returns is noted in slot 1. The ring works on the behavioural AXI memory. A
// program that it launches takes a random time; its end is made of its start values.

module unit_cmd;
  import npu_pkg::*;
  import npu_mem_pkg::*;
  import npu_stream_pkg::*;
  import npu_isa_pkg::*;
  import tb_pkg::*;

  logic clk, rst_n, start, ended;
  unit_pkg::world_t   world;
  unit_pkg::program_t played;

  unit_control u_control (
    .clk_o    (clk),
    .rst_no   (rst_n),
    .world_o  (world),
    .program_o(played),
    .start_o  (start),
    .end_i    (ended)
  );

  logic valid, waiting, ack, irq, after_irq, writes;
  logic [111:0] payload;
  logic [31:0] rdata, wdata;
  logic [7:0] offset;

  assign {after_irq, writes, offset, wdata} = payload[41:0];

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

  always_comb begin
    req.valid = valid && !waiting && (!after_irq || irq);
    req.write = writes;
    req.addr  = offset;
    req.wdata = wdata;
    req.wmask = '1;
  end
  assign ack   = rsp.ack;
  assign rdata = rsp.rdata;

  regions_t regions;
  stream_range_t stream;
  npu_host_pkg::launch_req_t launch;
  npu_host_pkg::launch_rsp_t program_end;
  logic takes;
  npu_axi_pkg::axi_req_t axi_req;
  npu_axi_pkg::axi_rsp_t axi_rsp;

  // As tb/unit/test_cmd.py knows them
  always_comb begin
    regions       = '0;
    regions[1]    = '{read: 1'b1, write: 1'b0, base: 20'h00300, limit: 20'h00312};
    regions[3]    = '{read: 1'b0, write: 1'b1, base: 20'h00320, limit: 20'h00323};
    regions[4]    = '{read: 1'b0, write: 1'b1, base: 20'h00380, limit: 20'h00383};
    stream.base   = 32'h0032_2040;
    stream.length = 32'h0000_0080;
  end

  npu_cmd u_cmd (
    .clk_i       (clk),
    .rst_ni      (rst_n),
    .req_i       (req),
    .rsp_o       (rsp),
    .irq_o       (irq),
    .soft_reset_i(1'b0),
    .regions_i   (regions),
    .stream_i    (stream),
    .launch_o    (launch),
    .launch_i    (program_end),
    .axi_req_o   (axi_req),
    .axi_rsp_i   (axi_rsp)
  );

  unit_axi_memory #(
    .Faulty(1'b1)
  ) u_memory (
    .clk_i    (clk),
    .rst_ni   (rst_n),
    .world_i  (world),
    .start_i  (start),
    .speak_i  (1'b0),
    .axi_req_i(axi_req),
    .axi_rsp_o(axi_rsp)
  );

  // A program; bit 0 of its POS says whether it fails, bits 14:8 how.
  logic running;
  logic [31:0] random;

  assign program_end.ready = takes && launch.valid;

  always @(posedge clk) begin
    random            <= rst_n ? next_random(random) : world.seed;
    takes             <= rst_n && !running && !program_end.ready && random[1:0] == '0;
    program_end.ended <= rst_n && running && !program_end.ended && random[4:2] == '0;
    if (!rst_n || program_end.ended) running <= 1'b0;
    if (rst_n && program_end.ready) begin
      running <= 1'b1;
      program_end.outcnt <= launch.start.token ^ launch.start.base0 ^ launch.start.base1 ^
          launch.start.ucode_base ^ launch.start.ucode_len;
      program_end.error <= '{
          valid: launch.start.pos[0],
          code: error_e'(launch.start.pos[11:8]),
          engine: engine_e'(launch.start.pos[14:12]),
          default: '0
      };
    end
  end

  logic [31:0] index;

  always @(posedge clk) begin
    waiting <= rst_n && valid && !ack && (waiting || req.valid);
    if (!rst_n) begin
      index <= '0;
    end else if (valid && ack) begin
      index <= index + 32'd1;
      tb_memory_now(unit_pkg::ObservedAt + unit_pkg::SlotBytes + 16 * index, 128'(rdata));
    end
  end

endmodule
