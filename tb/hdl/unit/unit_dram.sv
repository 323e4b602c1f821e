// SPDX-License-Identifier: Apache-2.0
//
// A plain reader at the DRAM of the bench: long bursts, one address behind the other, as many of them
// under way as have room, every beat taken at once. In the long run no chip gets more. Of the program,
// `words` says which memory it is and `stream_bytes` how many bytes are read; the cycles from the first
// address to the last beat lie at address 0 then.

module unit_dram;

  localparam logic [7:0] Beats = 8'd16;  // of a burst
  localparam logic [31:0] Room = 32'd256;  // beats that may be under way
  localparam logic [31:0] Wrap = 32'h3f_ffff;  // addresses begin again behind 4 MiB

  logic clk, rst_n, start, ended;
  logic [63:0] cycle = '0;
  unit_pkg::world_t world;
  unit_pkg::program_t played;
  tb_pkg::memory_knobs_t knobs;
  npu_axi_pkg::axi_req_t req;
  npu_axi_pkg::axi_rsp_t rsp;

  unit_control u_control (
    .clk_o    (clk),
    .rst_no   (rst_n),
    .world_o  (world),
    .program_o(played),
    .start_o  (start),
    .end_i    (ended)
  );

  always_comb begin
    knobs = '0;
    knobs.memory = tb_pkg::memory_e'(played.words[1:0]);
    knobs.seed = world.seed;
  end

  axi_memory u_memory (
    .clk_i        (clk),
    .rst_ni       (rst_n),
    .cycle_i      (cycle),
    .read_knobs_i (knobs),
    .write_knobs_i(knobs),
    .axi_req_i    (req),
    .axi_rsp_o    (rsp)
  );

  logic [31:0] asked, came;  // beats
  logic [63:0] began;
  logic runs, told;

  assign ended = runs && came == played.stream_bytes >> 4;

  always_comb begin
    req = '0;
    req.rd.arvalid = runs && asked != played.stream_bytes >> 4 && asked - came + 32'(Beats) <= Room;
    req.rd.araddr = (asked << 4) & Wrap;
    req.rd.arlen = Beats - 8'd1;
    req.rd.rready = 1'b1;
  end

  always @(posedge clk) begin
    cycle <= cycle + 64'd1;
    if (!rst_n) begin
      runs  <= 1'b0;
      told  <= 1'b0;
      asked <= '0;
      came  <= '0;
    end else begin
      if (start) runs <= 1'b1;
      if (start) began <= cycle;
      if (ended && !told) tb_pkg::tb_memory_now(0, 128'(cycle - began - 64'd1));
      told <= ended;
      if (req.rd.arvalid && rsp.rd.arready) asked <= asked + 32'(Beats);
      if (rsp.rd.rvalid) came <= came + 32'd1;
    end
  end

endmodule
