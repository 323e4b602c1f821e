// SPDX-License-Identifier: Apache-2.0
//
// Whose burst is next on a side of the memory port, and whether it may go to memory. Lower numbers go
// first.

module npu_mem_choice
  import npu_mem_pkg::*;
  import npu_stream_pkg::*;
#(
  parameter bit Write = 1'b0,  // direction of the bursts: 1 writes, 0 reads
  parameter int unsigned NumClients = 1,  // 1 to 8
  localparam int unsigned ClientW = npu_axi_pkg::client_bits(NumClients)  // of a client's number
) (
  input mem_req_t req_i[NumClients],  // a burst inside a 4 KiB page; may be withdrawn

  input regions_t      regions_i,  // what the pages permit
  input stream_range_t stream_i,   // no writes to these bytes; not used for reads

  // All in the same cycle
  output mem_req_t               choice_o,  // the next one; valid while there is one
  output logic     [ClientW-1:0] client_o,  // whose it is, with choice_o.valid
  output logic                   allowed_o  // it may go, with choice_o.valid
);

  logic [7:0] asking;

  always_comb begin
    asking = '0;
    for (int unsigned c = 0; c < NumClients; c++) asking[c] = req_i[c].valid;
  end

  assign client_o = ClientW'(npu_axi_pkg::first_of(asking));

  always_comb begin
    choice_o       = req_i[client_o];
    choice_o.valid = asking != '0;
  end

  npu_mem_guard #(
    .Write(Write)
  ) u_guard (
    .addr_i(choice_o.addr),
    .len_i (choice_o.len),
    .regions_i,
    .stream_i,
    .allowed_o
  );

endmodule
