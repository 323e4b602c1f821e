// SPDX-License-Identifier: Apache-2.0
//
// Decides whether a burst may go to memory: its 4 KiB page must lie in a region that permits the
// direction, and a write must not touch the parameter stream that is in use. Regions consist of
// whole pages and a burst never leaves its page, so the first address decides for all of them.

module npu_mem_guard
  import npu_pkg::*;
  import npu_mem_pkg::*;
  import npu_stream_pkg::*;
#(
  parameter bit Write = 1'b0  // direction of the bursts: 1 writes, 0 reads
) (
  input mem_addr_t       addr_i,  // first byte of the burst, a multiple of 16
  input logic      [7:0] len_i,   // words of the burst - 1; it stays inside its 4 KiB page

  input regions_t      regions_i,  // what the pages permit
  input stream_range_t stream_i,   // no writes to these bytes; not used for reads

  output logic allowed_o  // in the same cycle: the burst may go
);

  logic [NumRegions-1:0] in_region;
  logic in_stream;
  logic [32:0] last, stream_end;

  always_comb begin
    in_region = '0;
    for (int unsigned r = 0; r < NumRegions; r++) begin
      if ((Write ? regions_i[r].write : regions_i[r].read) &&
          addr_i[31:12] >= regions_i[r].base && addr_i[31:12] <= regions_i[r].limit) begin
        in_region[r] = 1'b1;
      end
    end
  end

  assign last = {1'b0, addr_i} + {21'b0, len_i, 4'hf};
  assign stream_end = {1'b0, stream_i.base} + {1'b0, stream_i.length};
  assign in_stream  = {1'b0, addr_i} < stream_end && last >= {1'b0, stream_i.base} &&
                      stream_i.length != '0;
  assign allowed_o = in_region != '0 && !(Write && in_stream);

endmodule
