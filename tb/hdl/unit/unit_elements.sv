// SPDX-License-Identifier: Apache-2.0
//
// Plays a list of elements on a valid/ready port and writes down the results, which come in order. A
// word of 16 bytes of the list is an element; what becomes of it is written at its index: result, and
// the cycles in which it was taken and in which its result was. Random cycles pass without an element
// offered (`stream_gap`) and without a result taken (`memory_stall`).

module unit_elements (
  input logic clk_i,
  input logic rst_ni,

  input  unit_pkg::world_t        world_i,
  input  logic                    start_i,
  input  logic             [31:0] count_i,  // elements, at least one
  output logic                    end_o,    // all were taken and have their results

  output logic               clear_o,   // drops what is inside; instead of an element
  output logic               valid_o,
  input  logic               ready_i,
  output unit_pkg::element_t element_o,

  input  logic        valid_i,
  output logic        ready_o,
  input  logic [63:0] result_i
);

  import tb_pkg::*;

  logic [31:0] cycle, index, random;
  logic [31:0] indices[$], taken[$];  // index and cycle of elements without result
  logic active, held;

  // A behavioural model: state is updated in program order within one clock edge.
  /* verilator lint_off BLKSEQ */
  always @(posedge clk_i) begin
    if (!rst_ni) begin
      {cycle, index} = '0;
      {active, held} = '0;
      random         = world_i.seed;
      indices.delete();
      taken.delete();
      {valid_o, clear_o, ready_o, end_o} <= '0;
      element_o <= '0;
    end else begin
      automatic logic quiet = indices.size() == 0;

      random = next_random(random);
      if (start_i) active = 1'b1;
      if (valid_i && ready_o) begin
        if (quiet) $error("%m: a result of nothing");
        else
          tb_memory_now(unit_pkg::ObservedAt + 16 * indices.pop_front(), {
                        taken.pop_front(), cycle, result_i});
      end
      if (clear_o) begin
        indices.delete();
        taken.delete();
      end
      if (valid_o && ready_i) begin
        if (element_o.answers) begin
          indices.push_back(index);
          taken.push_back(cycle);
        end
      end
      if (clear_o || (valid_o && ready_i)) begin
        index = index + 32'd1;
        held  = 1'b0;
        valid_o <= 1'b0;
        clear_o <= 1'b0;
      end
      if (active && index != count_i && !held && !happens(world_i.stream_gap, random[11:0])) begin
        automatic bit [127:0] data;
        automatic unit_pkg::element_t element;
        tb_memory_read(unit_pkg::ProgramAt + 16 * index, data);
        element = data;
        if (!element.waits || indices.size() == 0) begin
          held = 1'b1;
          element_o <= element;
          valid_o   <= !element.clears;
          clear_o   <= element.clears;
        end
      end
      ready_o <= !happens(world_i.memory_stall, random[23:12]);
      end_o   <= active && index == count_i && indices.size() == 0;
      cycle = cycle + 32'd1;
    end
  end
  /* verilator lint_on BLKSEQ */

endmodule
