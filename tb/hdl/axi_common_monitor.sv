// SPDX-License-Identifier: Apache-2.0
//
// What AXI4 and AXI4-Lite have in common beyond their channels: silence in reset, from the first edge
// of the clock on, in which a bench's registers become what they are in reset; and no EXOKAY, since
// nobody asks for exclusive accesses.

module axi_common_monitor #(
  parameter string Bus = "AXI"  // what it is called
) (
  input logic clk_i,
  input logic rst_ni,

  input logic [2:0] asks_i,  // valid of AR, AW, W
  input logic rvalid_i,
  input logic [1:0] rresp_i,
  input logic bvalid_i,
  input logic [1:0] bresp_i
);

  localparam logic [1:0] RespExokay = 2'b01;

  logic clocked_q = 1'b0;  // a clock edge has passed
  logic awake_q;  // a clock edge has passed since the reset

  always_ff @(posedge clk_i) clocked_q <= 1'b1;

  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) awake_q <= 1'b0;
    else awake_q <= 1'b1;
  end

  SilentInReset_A :
  assert property (@(posedge clk_i) !clocked_q || awake_q || {asks_i, rvalid_i, bvalid_i} == '0)
  else $error("%s: something is valid in reset", Bus);

  NoExclusive_A :
  assert property (@(posedge clk_i) disable iff (!rst_ni)
                   !(rvalid_i && rresp_i == RespExokay || bvalid_i && bresp_i == RespExokay))
  else $error("%s: EXOKAY without an exclusive access", Bus);

endmodule
