// SPDX-License-Identifier: Apache-2.0
//
// Bench of the queues: FIFOs of several depths with and without flush, one with three readers, one
// whose reader sees all entries, and a skid buffer, all with the same input. What an entry carries when
// it is not valid is of no interest. And of a block's clock: its edges are counted.

module unit_cells;

  localparam int unsigned NumFifos = 6;
  localparam int unsigned Depths[NumFifos] = '{1, 2, 3, 4, 8, 5};
  localparam int unsigned Plain = 5;  // the one without flush and count
  localparam int unsigned NumReaders = 3;

  typedef struct packed {
    logic [95:0]           unused;
    logic [15:0]           data;
    logic [10:0]           unused_too;
    logic [NumReaders-1:0] ready;       // the first one is that of all FIFOs with one reader
    logic                  flush;
    logic                  valid;
  } drive_t;

  typedef struct packed {
    logic [7:0]  unused;
    logic        ready;
    logic        valid;
    logic [5:0]  count;
    logic [15:0] data;
  } queue_t;

  logic clk, rst_n, start, ended;
  unit_pkg::program_t played;
  drive_t drive;
  logic [2:0][127:0] drives;  // of which the first word is used
  queue_t [11:0] observed;

  unit_control u_control (
    .clk_o    (clk),
    .rst_no   (rst_n),
    .world_o  (),
    .program_o(played),
    .start_o  (start),
    .end_i    (ended)
  );

  unit_player #(
    .Words(3)
  ) u_player (
    .clk_i    (clk),
    .rst_ni   (rst_n),
    .start_i  (start),
    .cycles_i (played.words),
    .end_o    (ended),
    .drive_o  (drives),
    .observe_i(observed)
  );

  assign drive = drives[0];

  for (genvar f = 0; f < int'(NumFifos); f++) begin : gen_fifo
    assign observed[f].unused = '0;

    if (f == int'(Plain)) begin : gen_plain
      npu_fifo #(
        .DataT(logic [15:0]),
        .Depth(Depths[f])
      ) u_fifo (
        .clk_i  (clk),
        .rst_ni (rst_n),
        .valid_i(drive.valid),
        .ready_o(observed[f].ready),
        .data_i (drive.data),
        .valid_o(observed[f].valid),
        .ready_i(drive.ready[0]),
        .data_o (observed[f].data)
      );
      assign observed[f].count = '0;
    end else begin : gen_flush
      logic [$clog2(Depths[f]+1)-1:0] count;
      assign observed[f].count = 6'(count);

      npu_flush_fifo #(
        .DataT(logic [15:0]),
        .Depth(Depths[f])
      ) u_fifo (
        .clk_i  (clk),
        .rst_ni (rst_n),
        .flush_i(drive.flush),
        .valid_i(drive.valid),
        .ready_o(observed[f].ready),
        .data_i (drive.data),
        .valid_o(observed[f].valid),
        .ready_i(drive.ready[0]),
        .data_o (observed[f].data),
        .count_o(count)
      );
    end
  end

  logic shared_ready;
  logic shared_valid[NumReaders], ready[NumReaders];
  logic [15:0] shared_data[NumReaders];

  npu_multicast_fifo #(
    .DataT     (logic [15:0]),
    .Depth     (4),
    .NumReaders(NumReaders),
    .Through   (NumReaders'(2))
  ) u_multicast (
    .clk_i  (clk),
    .rst_ni (rst_n),
    .valid_i(drive.valid),
    .ready_o(shared_ready),
    .data_i (drive.data),
    .valid_o(shared_valid),
    .ready_i(ready),
    .data_o (shared_data)
  );

  for (genvar r = 0; r < int'(NumReaders); r++) begin : gen_reader
    assign ready[r] = drive.ready[r];
    assign observed[NumFifos+r] = '{
            ready: shared_ready,
            valid: shared_valid[r],
            data: shared_data[r],
            default: '0
        };
  end

  // As many go as the readiness says, if there are so many.
  logic window_ready, window_valid;
  logic [3:0] window_count, window_drop;
  logic [15:0] window_data;
  assign window_drop = (4'(drive.ready) > window_count) ? window_count : 4'(drive.ready);

  npu_window_fifo #(
    .DataT(logic [15:0]),
    .Depth(8)
  ) u_window (
    .clk_i  (clk),
    .rst_ni (rst_n),
    .valid_i(drive.valid),
    .ready_o(window_ready),
    .data_i (drive.data),
    .valid_o(window_valid),
    .count_o(window_count),
    .at_i   (drive.data[2:0]),
    .data_o (window_data),
    .drop_i (window_drop)
  );

  assign observed[NumFifos+NumReaders+1] = '{
          ready: window_ready,
          valid: window_valid,
          count: 6'(window_count),
          data: window_data,
          default: '0
      };

  localparam int unsigned Skid = NumFifos + NumReaders + 2;

  npu_skid_buffer #(
    .DataT(logic [15:0])
  ) u_skid (
    .clk_i  (clk),
    .rst_ni (rst_n),
    .flush_i(drive.flush),
    .valid_i(drive.valid),
    .ready_o(observed[Skid].ready),
    .data_i (drive.data),
    .valid_o(observed[Skid].valid),
    .ready_i(drive.ready[0]),
    .data_o (observed[Skid].data)
  );
  assign observed[Skid].unused = '0;
  assign observed[Skid].count  = '0;

  logic block_clk;
  logic [15:0] edges_q;

  npu_block_clock u_clock (
    .clk_i  (clk),
    .rst_ni (rst_n),
    .awake_i(drive.valid),
    .clk_o  (block_clk)
  );

  always_ff @(posedge block_clk or negedge rst_n) begin
    if (!rst_n) edges_q <= '0;
    else edges_q <= edges_q + 1'b1;
  end

  assign observed[NumFifos+NumReaders] = '{data: edges_q, default: '0};

endmodule
