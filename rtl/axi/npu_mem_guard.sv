// SPDX-License-Identifier: Apache-2.0
//
// Decides whether a burst may go to memory: its 4 KiB page must lie in a region that permits the
// direction, and a write must not touch the parameter stream that is in use. Regions consist of
// whole pages and a burst never leaves its page, so the first address decides for all of them.

module npu_mem_guard
  import npu_pkg::*;
#(
  parameter bit Write = 1'b0
) (
  input mem_addr_t       addr_i,
  input logic      [7:0] len_i,

  input region_t          regions_i      [NumRegions],
  input mem_addr_t        stream_base_i,
  input logic      [31:0] stream_length_i,              // bytes; zero while no stream is in use

  output logic allowed_o
);

  logic in_region, in_stream;
  logic [32:0] last, stream_end;

  always_comb begin
    in_region = 1'b0;
    for (int unsigned r = 0; r < NumRegions; r++) begin
      if ((Write ? regions_i[r].write : regions_i[r].read) &&
          addr_i[31:12] >= regions_i[r].base && addr_i[31:12] <= regions_i[r].limit) begin
        in_region = 1'b1;
      end
    end
  end

  assign last = {1'b0, addr_i} + {21'b0, len_i, 4'hf};
  assign stream_end = {1'b0, stream_base_i} + {1'b0, stream_length_i};
  assign in_stream  = {1'b0, addr_i} < stream_end && last >= {1'b0, stream_base_i} &&
                      stream_length_i != '0;
  assign allowed_o = in_region && !(Write && in_stream);

endmodule
