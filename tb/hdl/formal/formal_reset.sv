// SPDX-License-Identifier: Apache-2.0
//
// One cycle of reset is enough, from any state: two of each block begin with anything in their
// registers, get the same inputs, and are told apart by nobody from the reset on.

module formal_reset
  import npu_axi_pkg::*;
  import npu_host_pkg::*;
  import npu_mem_pkg::*;
  import npu_stream_pkg::*;
  import npu_pkg::*;
(
  input logic                           clk_i,            // clock
  input logic                           rst_ni,           // reset, active low
  input logic                           flush_i,
  input logic                           valid_i,
  input logic          [           1:0] data_i,
  input logic                           ready_i,
  input axil_req_t                      axil_req_i,
  input window_rsp_t                    window_rsp_i,
  input mem_req_t                       req_i       [1],
  input mem_wdata_t                     w_i         [1],
  input mem_settings_t                  settings_i,
  input stream_range_t                  stream_i,
  input logic                           drain_i,
  input axi_rsp_t                       axi_rsp_i,
  input logic          [NumEngines-1:0] start_i,
  input logic          [NumEngines-1:0] done_i,
  input logic          [NumEngines-1:0] mask_i,
  input logic          [           2:0] most_i
);

  logic begun_q, reset_q;  // there was a reset
  logic [1:0] data[2], valid, ready, ok;
  logic [1:0][NumEngines-1:0] busy;
  axil_rsp_t axil[2];
  window_req_t access[2];
  axi_rd_req_t rd[2];
  axi_wr_req_t wr[2];
  logic [4:0] limit[2];

  for (genvar i = 0; i < 2; i++) begin : gen_pair
    npu_flush_fifo #(
      .DataT(logic [1:0]),
      .Depth(3)
    ) u_fifo (
      .clk_i,
      .rst_ni,
      .flush_i,
      .valid_i,
      .ready_o(ready[i]),
      .data_i,
      .valid_o(valid[i]),
      .ready_i,
      .data_o (data[i]),
      .count_o()
    );
    npu_axil_slave u_slave (
      .clk_i,
      .rst_ni,
      .axil_req_i,
      .axil_rsp_o(axil[i]),
      .window_o  (),
      .req_o     (access[i]),
      .rsp_i     (window_rsp_i)
    );
    npu_axi_read #(
      .NumClients(1),
      .MaxOutstanding(2),
      .Engines(3'd2)
    ) u_read (
      .clk_i,
      .rst_ni,
      .req_i,
      .rsp_o    (),
      .settings_i,
      .drain_i,
      .idle_o   (),
      .stuck_o  (),
      .error_o  (),
      .on_bus_o (),
      .axi_req_o(rd[i]),
      .axi_rsp_i(axi_rsp_i.rd)
    );
    npu_axi_write #(
      .NumClients(1),
      .MaxOutstanding(2),
      .Engines(3'd2)
    ) u_write (
      .clk_i,
      .rst_ni,
      .req_i,
      .w_i,
      .rsp_o    (),
      .settings_i,
      .stream_i,
      .drain_i,
      .idle_o   (),
      .stuck_o  (),
      .error_o  (),
      .axi_req_o(wr[i]),
      .axi_rsp_i(axi_rsp_i.wr)
    );
    npu_unfinished u_unfinished (
      .clk_i,
      .rst_ni,
      .start_i,
      .done_i,
      .barrier_mask_i(mask_i),
      .barrier_most_i(most_i),
      .barrier_ok_o  (ok[i]),
      .busy_o        (busy[i])
    );
    npu_stream_limit u_limit (
      .clk_i,
      .rst_ni,
      .setting_i('0),
      .latency_i(settings_i.timeout[8:0]),
      .wants_i  (valid_i),
      .held_i   (ready_i),
      .mine_i   (data_i[0]),
      .word_i   (data_i[1]),
      .load_i   (flush_i),
      .limit_o  (limit[i])
    );
  end

  initial begun_q = 1'b0;
  always_ff @(posedge clk_i) begin
    begun_q <= 1'b1;
    reset_q <= begun_q ? reset_q || !rst_ni : !rst_ni;
  end

  always_comb begin
    assume (begun_q || !rst_ni);
    if (begun_q && reset_q) begin
      Fifo_A :
      assert (ready[0] == ready[1] && valid[0] == valid[1] && (!valid[0] || data[0] == data[1]));
      AxilSlave_A : assert (axil[0] == axil[1] && access[0] == access[1]);
      AxiRead_A : assert (rd[0] == rd[1]);
      AxiWrite_A : assert (wr[0] == wr[1]);
      Unfinished_A : assert (ok[0] == ok[1] && busy[0] == busy[1]);
      StreamLimit_A : assert (limit[0] == limit[1]);
    end
  end

endmodule
