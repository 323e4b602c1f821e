// SPDX-License-Identifier: Apache-2.0
//
// A queue that several readers read, each at its own pace: an entry is gone when the last of them
// has taken it. The stages of an engine that work on different instructions at the same time use it
// to share one copy of the operations. A reader that is told so sees an entry while it is pushed.

module npu_multicast_fifo #(
  parameter type DataT = logic,  // what an entry is, any type
  parameter int unsigned Depth = 4,  // entries, a power of two of at least 2
  parameter int unsigned NumReaders = 2,  // at least 1
  parameter bit [NumReaders-1:0] Through = '0  // readers that see a push at once
) (
  input logic clk_i,  // clock
  input logic rst_ni, // reset, active low

  input  logic valid_i,  // push; may be withdrawn before ready_o
  output logic ready_o,  // room behind the slowest reader, a cycle after it took; from a register
  input  DataT data_i,   // counts where valid_i and ready_o meet

  output logic valid_o[NumReaders],  // an entry for this reader; stays until its ready_i
  input  logic ready_i[NumReaders],  // this reader is through with it; may depend on valid_o
  output DataT data_o [NumReaders]   // the oldest one, stable while its valid_o
);

  localparam int unsigned PtrW = $clog2(Depth);

  if (Depth < 2 || (Depth & (Depth - 1)) != 0) begin : gen_bad_depth
    $fatal(1, "npu_multicast_fifo: Depth = %0d, must be a power of two of at least 2", Depth);
  end

  // One more bit than the address tells a full queue from an empty one.
  DataT mem_q[Depth];
  logic [PtrW:0] wr_q, wr;
  logic [PtrW:0] rd_q[NumReaders];
  logic room_q, room, push;
  assign ready_o = room_q;
  assign push    = valid_i && room_q;
  assign wr      = wr_q + (PtrW + 1)'(push);

  always_ff @(posedge clk_i) begin
    if (push) mem_q[wr_q[PtrW-1:0]] <= data_i;
  end

  // What the readers take in this cycle makes room a cycle after the next one.
  always_comb begin
    room = 1'b1;
    for (int unsigned r = 0; r < NumReaders; r++) begin
      if ((PtrW + 1)'(wr - rd_q[r]) == (PtrW + 1)'(Depth)) room = 1'b0;
    end
  end

  for (genvar r = 0; r < int'(NumReaders); r++) begin : gen_reader
    logic stored, pop;
    assign pop        = valid_o[r] && ready_i[r];
    assign valid_o[r] = stored || (Through[r] && push);
    assign data_o[r]  = (Through[r] && !stored) ? data_i : mem_q[rd_q[r][PtrW-1:0]];

    always_ff @(posedge clk_i) begin
      if (!rst_ni) rd_q[r] <= '0;
      else if (pop) rd_q[r] <= rd_q[r] + 1'b1;
    end

    // From a register where much follows it, else with little before the registers
    if (Through[r]) begin : gen_through
      logic stored_q;
      assign stored = stored_q;
      always_ff @(posedge clk_i) begin
        if (!rst_ni) stored_q <= 1'b0;
        else if (push != pop) stored_q <= push || rd_q[r] + 1'b1 != wr_q;
      end
    end else begin : gen_stored
      assign stored = rd_q[r] != wr_q;
    end
  end

  always_ff @(posedge clk_i) begin
    if (!rst_ni) begin
      wr_q   <= '0;
      room_q <= 1'b1;
    end else begin
      wr_q   <= wr;
      room_q <= room;
    end
  end

endmodule
