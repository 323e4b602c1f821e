// SPDX-License-Identifier: Apache-2.0
//
// What the proofs of the coprocessor's readers and writer assume of who drives them
// (tb/hdl/formal/formal_cop_reader.sv, formal_cop_writer.sv).

module cop_range_checker
  import npu_cop_pkg::*;
(
  input logic clk_i,  // clock
  input logic rst_ni, // reset, active low

  input cop_range_t       range_i,
  input logic             asks_i,    // a burst is offered
  input logic             taken_i,   // and taken
  input logic             group_i,   // a group of results is offered
  input logic             eights_i,  // it may have 8 bytes
  input logic       [3:0] size_i     // its bytes
);

  Range_A :
  assert property (@(posedge clk_i) disable iff (!rst_ni)
                   range_i.start |-> range_i.bytes inside {[1 : 1 << 20]})
  else $error("%m: a range of %0d bytes", range_i.bytes);

  Offered_A :
  assert property (@(posedge clk_i) disable iff (!rst_ni) taken_i |-> asks_i)
  else $error("%m: a burst is taken that is not offered");

  Size_A :
  assert property (@(posedge clk_i) disable iff (!rst_ni)
                   group_i |-> size_i != '0 && size_i <= (eights_i ? 4'd8 : 4'd4))
  else $error("%m: a group of %0d bytes", size_i);

endmodule
