// SPDX-License-Identifier: Apache-2.0
//
// First-in first-out queue whose reader sees any of its entries, and drops as many of the oldest
// as it likes. There is no path from one side's handshake to the other's.

module npu_window_fifo #(
  parameter type DataT = logic,  // what an entry is, any type
  parameter int unsigned Depth = 8,  // entries, a power of two of at least 2
  localparam int unsigned PtrW = $clog2(Depth)  // bits of an entry's place
) (
  input logic clk_i,  // clock
  input logic rst_ni, // reset, active low

  input  logic valid_i,  // push; may be withdrawn before ready_o
  output logic ready_o,  // room for one more; depends on no input
  input  DataT data_i,   // counts where valid_i and ready_o meet

  output logic            valid_o,  // an entry is there
  output logic [  PtrW:0] count_o,  // entries stored
  input  logic [PtrW-1:0] at_i,     // the entry to look at: how many are older
  output DataT            data_o,   // that one, if at_i is less than count_o
  input  logic [  PtrW:0] drop_i    // so many of the oldest go, at most count_o
);

  if (Depth < 2 || (Depth & (Depth - 1)) != 0) begin : gen_bad_depth
    $fatal(1, "npu_window_fifo: Depth = %0d, must be a power of two of at least 2", Depth);
  end

  DataT mem_q[Depth];
  logic [PtrW-1:0] rd_q, wr_q;
  logic [PtrW:0] count_q;
  logic push;

  assign ready_o = count_q != (PtrW + 1)'(Depth);
  assign count_o = count_q;
  assign valid_o = count_q != '0;
  assign data_o  = mem_q[rd_q+at_i];
  assign push    = valid_i && ready_o;

  always_ff @(posedge clk_i) begin
    if (push) mem_q[wr_q] <= data_i;
  end

  always_ff @(posedge clk_i) begin
    if (!rst_ni) begin
      rd_q    <= '0;
      wr_q    <= '0;
      count_q <= '0;
    end else begin
      rd_q    <= rd_q + PtrW'(drop_i);
      wr_q    <= wr_q + PtrW'(push);
      count_q <= count_q + (PtrW + 1)'(push) - drop_i;
    end
  end

`ifndef SYNTHESIS
  DropStored_A :
  assert property (@(posedge clk_i) disable iff (!rst_ni) drop_i <= count_q)
  else $error("npu_window_fifo: more entries dropped than there are");
`endif

endmodule
