// SPDX-License-Identifier: Apache-2.0
//
// Between a unit of the coprocessor and its bench, `unit_elements`: elements go in, results come out.

interface unit_elements_if;

  logic clk;  // clock
  logic rst_n;  // reset, active low

  logic clear;  // drops what is inside; instead of an element
  logic valid, ready;  // of an element
  unit_pkg::element_t element;

  logic result_valid, result_ready;
  logic [63:0] result;

endinterface
