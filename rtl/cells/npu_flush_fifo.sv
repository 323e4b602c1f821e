// SPDX-License-Identifier: Apache-2.0
//
// First-in first-out queue with valid/ready on both sides. The head is visible as soon as it is
// stored (one cycle after the push); there is no path from one side's handshake to the other's. A
// flush empties it, and what is pushed at the same time is lost.

module npu_flush_fifo #(
  parameter type DataT = logic,  // what an entry is, any type
  parameter int unsigned Depth = 4  // entries, at least 1
) (
  input logic clk_i,   // clock
  input logic rst_ni,  // reset, active low
  input logic flush_i, // drops all entries, and what is pushed in the same cycle

  input  logic valid_i,  // push; may be withdrawn before ready_o
  output logic ready_o,  // room for one more; depends on neither valid_i nor ready_i
  input  DataT data_i,   // counts where valid_i and ready_o meet

  output logic valid_o,  // an entry is there; stays until ready_i or flush_i
  input  logic ready_i,  // pop; may depend on valid_o
  output DataT data_o,   // oldest entry, stable while valid_o

  output logic [$clog2(Depth+1)-1:0] count_o  // entries stored, the one at data_o included
);

  localparam int unsigned PtrW = (Depth > 1) ? $clog2(Depth) : 1;
  localparam logic [PtrW-1:0] Last = PtrW'(Depth - 1);

  if (Depth < 1) begin : gen_bad_depth
    $fatal(1, "npu_flush_fifo: Depth = %0d, must be at least 1", Depth);
  end

  DataT mem_q[Depth];
  logic [PtrW-1:0] rd_q, wr_q;
  logic [$clog2(Depth+1)-1:0] count_q;
  // What valid and ready say, in registers of their own: both sides begin long paths.
  logic some_q, room_q;
  logic push, pop;

  assign ready_o = room_q;
  assign valid_o = some_q;
  assign data_o  = mem_q[rd_q];
  assign count_o = count_q;
  assign push    = valid_i && ready_o;
  assign pop     = valid_o && ready_i;

  always_ff @(posedge clk_i) begin
    if (push) mem_q[wr_q] <= data_i;
  end

  always_ff @(posedge clk_i) begin
    if (!rst_ni) begin
      rd_q    <= '0;
      wr_q    <= '0;
      count_q <= '0;
      some_q  <= 1'b0;
      room_q  <= 1'b1;
    end else if (flush_i) begin
      rd_q    <= '0;
      wr_q    <= '0;
      count_q <= '0;
      some_q  <= 1'b0;
      room_q  <= 1'b1;
    end else begin
      if (push) wr_q <= (wr_q == Last) ? '0 : wr_q + 1'b1;
      if (pop) rd_q <= (rd_q == Last) ? '0 : rd_q + 1'b1;
      if (push && !pop) begin
        count_q <= count_q + 1'b1;
        some_q  <= 1'b1;
        room_q  <= count_q != ($clog2(Depth + 1))'(Depth - 1);
      end
      if (pop && !push) begin
        count_q <= count_q - 1'b1;
        some_q  <= count_q != ($clog2(Depth + 1))'(1);
        room_q  <= 1'b1;
      end
    end
  end

`ifndef SYNTHESIS
  NoOverflow_A :
  assert property (@(posedge clk_i) disable iff (!rst_ni) count_q <= ($clog2(Depth + 1))'(Depth))
  else $error("npu_flush_fifo: more entries than the queue has places");
  Count_A :
  assert property (@(posedge clk_i) disable iff (!rst_ni)
                   some_q == (count_q != '0) && room_q == (count_q != ($clog2(
      Depth + 1
  ))'(Depth)))
  else $error("npu_flush_fifo: valid or ready say something else than the count");
`endif

endmodule
