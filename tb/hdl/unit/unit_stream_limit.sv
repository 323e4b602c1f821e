// SPDX-License-Identifier: Apache-2.0
//
// Bench of the stream's limit: two of them, with the bus of the chip and with one that takes fewer
// bursts, see the same cycles.

module unit_stream_limit;

  localparam int unsigned NumLimits = 2;
  localparam logic [4:0] Most[NumLimits] = '{5'd16, 5'd5};

  typedef struct packed {
    logic [98:0] unused;
    logic        load;
    logic        word;
    logic        mine;
    logic        held;
    logic        wants;
    logic [6:0]  unused_too;
    logic [8:0]  latency;
    logic [2:0]  unused_three;
    logic [4:0]  setting;
  } drive_t;

  logic clk, rst_n, start, ended;
  unit_pkg::program_t played;
  drive_t drive;
  logic [15:0][7:0] limits;

  unit_control u_control (
    .clk_o    (clk),
    .rst_no   (rst_n),
    .world_o  (),
    .program_o(played),
    .start_o  (start),
    .end_i    (ended)
  );

  unit_player u_player (
    .clk_i    (clk),
    .rst_ni   (rst_n),
    .start_i  (start),
    .cycles_i (played.words),
    .end_o    (ended),
    .drive_o  (drive),
    .observe_i(limits)
  );

  for (genvar i = 0; i < int'(NumLimits); i++) begin : gen_limit
    npu_stream_limit #(
      .LatencyW(9),
      .Most    (Most[i])
    ) u_limit (
      .clk_i    (clk),
      .rst_ni   (rst_n),
      .setting_i(drive.setting),
      .latency_i(drive.latency),
      .wants_i  (drive.wants),
      .held_i   (drive.held),
      .mine_i   (drive.mine),
      .word_i   (drive.word),
      .load_i   (drive.load),
      .limit_o  (limits[i][4:0])
    );
    assign limits[i][7:5] = '0;
  end
  assign limits[15:NumLimits] = '0;

endmodule
