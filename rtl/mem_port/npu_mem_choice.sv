// SPDX-License-Identifier: Apache-2.0
//
// Whose burst is next on a side of the memory port, and whether it may go to memory. Lower numbers go
// first; one that is denied stays in front, and the program ends with what is said of it.

module npu_mem_choice
  import npu_pkg::*;
  import npu_mem_pkg::*;
  import npu_stream_pkg::*;
  import npu_isa_pkg::*;
#(
  parameter bit Write = 1'b0,  // direction of the bursts: 1 writes, 0 reads
  parameter int unsigned NumClients = 1,  // 1 to 8
  parameter logic [NumClients-1:0][2:0] Engines = '0,  // engine of each client, all different
  localparam int unsigned ClientW = npu_axi_pkg::client_bits(NumClients)  // of a client's number
) (
  input mem_req_t req_i[NumClients],  // a burst inside a 4 KiB page; may be withdrawn

  input regions_t      regions_i,  // what the pages permit
  input stream_range_t stream_i,   // no writes to these bytes; not used for reads

  // All in the same cycle
  output mem_req_t               choice_o,   // the next one; valid while there is one
  output logic     [ClientW-1:0] client_o,   // whose it is, with choice_o.valid
  output logic                   allowed_o,  // it may go, with choice_o.valid
  output error_t                 denied_o    // valid while there is one that may not
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

  assign denied_o = '{
          valid: choice_o.valid && !allowed_o,
          code: ErrRegion,
          engine: engine_e'(Engines[client_o]),
          instr: choice_o.instr,
          addr: choice_o.addr
      };

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
