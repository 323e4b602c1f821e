// SPDX-License-Identifier: Apache-2.0
//
// The dimensions of an instruction at its dispatch: numbers as they are, dynamic ones from the
// number of visible keys. Combinational.

module npu_extents
  import npu_pkg::*;
  import npu_isa_pkg::*;
  import npu_seq_pkg::*;
(
  input  entry_t          entry_i,   // a checked instruction
  input  logic     [32:0] len_i,     // visible keys, POS + 1 - WSTART
  output extents_t        extents_o  // dynamic dimensions: keys from len_i, up to the field's cap
);

  instr_t word;
  assign word = entry_i.word;

  // LEN - v - base, which may be negative
  function automatic logic signed [35:0] keys(logic v, logic [32:0] len, logic [15:0] base);
    return $signed({3'b0, len}) - $signed({35'b0, v}) - $signed({20'b0, base});
  endfunction

  function automatic dim_t value(dim_t field, logic [32:0] len, logic [15:0] base);
    logic signed [35:0] wanted;
    wanted = keys(field[11], len, base);
    if (field < Dynamic) return field;
    if (wanted < 36'sd0) return '0;
    return (wanted > $signed({20'b0, extent(field)})) ? extent(field) : wanted[15:0];
  endfunction

  dim_t m, n, k;
  logic nothing, context_full, same_place;

  assign m = value(word.m, len_i, entry_i.prefix.base);
  assign n = value(word.n, len_i, entry_i.prefix.base);
  assign k = value(word.k, len_i, entry_i.prefix.base);

  // Partial sums that would go back to where they come from
  sram_addr_t d;
  assign d = gemm_d(word, gemm_mode(word), entry_i.has_prefix, entry_i.prefix);
  assign same_place = word.flags[FlagAccumulate] && !word.flags[FlagRequant] && d == word.dst &&
                      entry_i.prefix.cp == entry_i.prefix.dp;

  always_comb begin
    nothing = 1'b0;
    unique case (word.opcode)
      OpGemm: nothing = m == '0 || n == '0 || (k == '0 && same_place);
      OpVec, OpSoftmax, OpLayernorm, OpRmsnorm, OpRope, OpGelu, OpSilu:
      nothing = m == '0 || n == '0;
      OpKvRead: nothing = k == '0;
      default: ;
    endcase
  end

  logic signed [35:0] columns;
  assign columns = keys(word.n[11], len_i, '0);
  assign context_full = word.opcode == OpSoftmax && word.n >= Dynamic && !nothing &&
                          columns > $signed(
      {20'b0, extent(word.n)}
  );

  assign extents_o = '{m: m, n: n, k: k, nothing: nothing, context_full: context_full};

endmodule
