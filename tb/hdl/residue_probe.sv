// SPDX-License-Identifier: Apache-2.0
//
// Bound to every memory of the chip: writes down on request what has been left in it, a line for each
// row that is not zero, with the memory's name (tb/bench/residue.py reads it).

module residue_probe #(
  parameter type DataT = logic,
  parameter int unsigned Rows = 16
) (
  input DataT mem_i[Rows]
);
  localparam int unsigned Bits = $bits(DataT);

  always @(posedge tb_pkg::residue) begin
    automatic int file = $fopen(tb_pkg::residue_file, "a");
    for (int unsigned r = 0; r < Rows; r++) begin
      if (mem_i[r] != '0) $fdisplay(file, "%m %0d %h", r, Bits'(mem_i[r]));
    end
    $fclose(file);
  end
endmodule
