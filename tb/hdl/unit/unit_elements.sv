// SPDX-License-Identifier: Apache-2.0
//
// Plays a list of elements on a valid/ready port and writes down the results, which come in order. A
// word of 16 bytes of the list is an element; what becomes of it is written at its index: result, and
// the cycles in which it was taken and in which its result was. Random cycles pass without an element
// offered (`stream_gap`) and without a result taken (`memory_stall`).

module unit_elements (
  unit_elements_if bench  // to the unit
);
  import tb_pkg::*;

  unit_pkg::world_t   world;
  unit_pkg::program_t played;  // `words`: elements, at least one
  logic start, ended;

  unit_control u_control (
    .clk_o    (bench.clk),
    .rst_no   (bench.rst_n),
    .world_o  (world),
    .program_o(played),
    .start_o  (start),
    .end_i    (ended)
  );

  logic [31:0] cycle, index, random;
  logic [31:0] indices[$], taken[$];  // index and cycle of elements without result
  logic active, held;

  // A behavioural model: state is updated in program order within one clock edge.
  /* verilator lint_off BLKSEQ */
  always @(posedge bench.clk) begin
    if (!bench.rst_n) begin
      {cycle, index} = '0;
      {active, held} = '0;
      random         = world.seed;
      indices.delete();
      taken.delete();
      {bench.valid, bench.clear, bench.result_ready, ended} <= '0;
      bench.element <= '0;
    end else begin
      automatic logic quiet = indices.size() == 0;

      random = next_random(random);
      if (start) active = 1'b1;
      if (bench.result_valid && bench.result_ready) begin
        if (quiet) $error("%m: a result of nothing");
        else
          tb_memory_now(unit_pkg::ObservedAt + 16 * indices.pop_front(), {
                        taken.pop_front(), cycle, bench.result});
      end
      if (bench.clear) begin
        indices.delete();
        taken.delete();
      end
      if (bench.valid && bench.ready) begin
        if (bench.element.answers) begin
          indices.push_back(index);
          taken.push_back(cycle);
        end
      end
      if (bench.clear || (bench.valid && bench.ready)) begin
        index = index + 32'd1;
        held  = 1'b0;
        bench.valid <= 1'b0;
        bench.clear <= 1'b0;
      end
      if (active && index != played.words && !held && !happens(
              world.stream_gap, random[11:0]
          )) begin
        automatic bit [127:0] data;
        automatic unit_pkg::element_t element;
        tb_memory_read(unit_pkg::ProgramAt + 16 * index, data);
        element = data;
        if (!element.waits || indices.size() == 0) begin
          held = 1'b1;
          bench.element <= element;
          bench.valid   <= !element.clears;
          bench.clear   <= element.clears;
        end
      end
      bench.result_ready <= !happens(world.memory_stall, random[23:12]);
      ended <= active && index == played.words && indices.size() == 0;
      cycle = cycle + 32'd1;
    end
  end
  /* verilator lint_on BLKSEQ */

endmodule
