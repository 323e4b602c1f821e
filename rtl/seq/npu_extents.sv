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

  // LEN - v - base, which may be negative, and v behind it: one subtraction for both
  typedef logic signed [34:0] keys_t;

  function automatic keys_t keys(logic v, logic [32:0] len, logic [15:0] base);
    return $signed({1'b0, len, 1'b0}) - $signed({18'b0, base, v});
  endfunction

  // Is a dimension nothing at all? That is known before its number is.
  function automatic logic none(dim_t field, keys_t wanted);
    return (field < Dynamic) ? field == '0 : wanted <= 35'sd1;
  endfunction

  function automatic logic above_cap(dim_t field, keys_t wanted);
    return wanted > $signed({18'b0, extent(field), 1'b1});
  endfunction

  function automatic dim_t value(dim_t field, keys_t wanted);
    if (field < Dynamic) return field;
    if (wanted < 35'sd0) return '0;
    return above_cap(field, wanted) ? extent(field) : wanted[16:1];
  endfunction

  keys_t keys_m, keys_n, keys_k, columns;
  logic no_m, no_n, no_k, nothing, context_full, same_place;
  assign keys_m = keys(word.m[11], len_i, entry_i.prefix.base);
  assign keys_n = keys(word.n[11], len_i, entry_i.prefix.base);
  assign keys_k = keys(word.k[11], len_i, entry_i.prefix.base);
  assign no_m   = none(word.m, keys_m);
  assign no_n   = none(word.n, keys_n);
  assign no_k   = none(word.k, keys_k);

  // Partial sums that would go back to where they come from
  sram_addr_t d;
  assign d = gemm_d(word, gemm_mode(word), entry_i.has_prefix, entry_i.prefix);
  assign same_place = word.flags[FlagAccumulate] && !word.flags[FlagRequant] && d == word.dst &&
                      entry_i.prefix.cp == entry_i.prefix.dp;

  always_comb begin
    nothing = 1'b0;
    unique case (word.opcode)
      OpGemm: nothing = no_m || no_n || (no_k && same_place);
      OpVec, OpSoftmax, OpLayernorm, OpRmsnorm, OpRope, OpGelu, OpSilu: nothing = no_m || no_n;
      OpKvRead: nothing = no_k;
      default: ;
    endcase
  end

  assign columns = keys(word.n[11], len_i, '0);
  assign context_full = word.opcode == OpSoftmax && word.n >= Dynamic && !nothing && above_cap(
      word.n, columns
  );

  assign extents_o = '{
          m: value(word.m, keys_m),
          n: value(word.n, keys_n),
          k: value(word.k, keys_k),
          nothing: nothing,
          context_full: context_full
      };

endmodule
