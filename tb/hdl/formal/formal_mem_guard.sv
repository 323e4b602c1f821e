// SPDX-License-Identifier: Apache-2.0
//
// The guard of the memory port, for every burst inside a page, every setting and every byte: what it
// allows is permitted. The checkers of the bus's masters show that nothing else is asked for.

module formal_mem_guard
  import npu_mem_pkg::*;
  import npu_stream_pkg::*;
(
  input logic          [31:0] addr_i,
  input logic          [ 7:0] len_i,
  input regions_t             regions_i,
  input stream_range_t        stream_i,
  input logic          [11:0] offset_i    // of a byte of the burst, any
);

  logic read_allowed, write_allowed;
  logic [ 1:0] permitted;  // reading and writing the byte
  logic [32:0] address;
  logic [12:0] place;  // of the byte in the page

  npu_mem_guard #(
    .Write(1'b0)
  ) u_read (
    .addr_i,
    .len_i,
    .regions_i,
    .stream_i,
    .allowed_o(read_allowed)
  );

  npu_mem_guard #(
    .Write(1'b1)
  ) u_write (
    .addr_i,
    .len_i,
    .regions_i,
    .stream_i,
    .allowed_o(write_allowed)
  );

  // Nothing is carried into the page: that is what the burst's length is assumed to be.
  assign place   = {1'b0, addr_i[11:0]} + {1'b0, offset_i};
  assign address = {1'b0, addr_i[31:12], place[11:0]};

  // By the page of the register map: whole pages, both ends included
  always_comb begin
    permitted = '0;
    for (int r = 0; r < int'(NumRegions); r++) begin
      if (address >= {1'b0, regions_i[r].base, 12'h000} &&
          address <= {1'b0, regions_i[r].limit, 12'hfff}) begin
        permitted |= {regions_i[r].write, regions_i[r].read};
      end
    end
  end

  always_comb begin
    assume (addr_i[3:0] == '0);
    assume ({1'b0, addr_i[11:4]} + {1'b0, len_i} < 9'd256);
    assume (!place[12]);
    assume (offset_i < {len_i, 4'hf} || offset_i == {len_i, 4'hf});
    ReadInRegions_A : assert (!read_allowed || permitted[0]);
    WriteInRegions_A : assert (!write_allowed || permitted[1]);
    NotInStream_A :
    assert (!write_allowed || address < {1'b0, stream_i.base} ||
            address >= {1'b0, stream_i.base} + {1'b0, stream_i.length});
    // What is permitted is allowed: the guard is not too strict where one region has all of it.
    NotTooStrict_A :
    assert (read_allowed || !(regions_i[0].read && addr_i >= {regions_i[0].base, 12'h000} &&
                              addr_i <= {regions_i[0].limit, 12'hfff}));
  end

endmodule
