// SPDX-License-Identifier: Apache-2.0
//
// Decodes a descriptor and checks what can be checked before it does anything: reserved bits of an
// extension, the fields of a program, the places of a stream and of a writeback.

module npu_cmd_descriptor
  import npu_cmd_pkg::*;
  import npu_desc_pkg::*;
#(
  parameter int unsigned ScratchBytes = 64  // bytes of the scratchpad: 64, 128 or 256
) (
  input logic  [7:0][31:0] words_i,   // 32-bit words; 4 to 7 count only in an extended entry
  input tile_t             tile_i,    // tile of an operation without extension
  input logic              ternary_i, // DOT16_S2 takes its lanes as ternary

  output descriptor_t   descriptor_o,  // what there is to do, in the same cycle as all outputs
  output operation_t    operation_o,   // of a descriptor that launches no program
  output stream_t       stream_o,      // with descriptor_o.stream
  output writeback_t    writeback_o,   // with descriptor_o.writeback; its scalar without it, too
  output desc_program_t program_o      // with descriptor_o.launch
);

  // Fields that exist with the small scratchpad only in part
  localparam bit Wide = ScratchBytes > 64;
  localparam logic [23:0] CfgMask = Wide ? '1 : 24'(GemmCfgNarrow);
  localparam logic [23:0] BaseMask = Wide ? '1 : 24'(GemmBaseNarrow);
  localparam logic [23:0] StrideMask = Wide ? '1 : 24'(GemmStrideNarrow);
  localparam logic [7:0] OffsetMask = Wide ? 8'hff : 8'h3f;

  logic extended, launch;
  op_e opcode;
  tile_t own, tile;
  desc_entry_t entry;
  desc_extension_t extension;

  assign entry                  = desc_entry_t'(words_i[3:0]);
  assign extension              = desc_extension_t'(words_i[7:4]);
  assign program_o              = desc_program_t'(words_i[6:1]);

  assign extended               = entry.extended;
  assign launch                 = extended && entry.launch;
  assign opcode                 = op_e'(entry.opcode);

  assign own.cfg                = extension.cfg;
  assign own.base               = extension.base;
  assign own.stride             = extension.stride;
  assign tile                   = extended ? own : tile_i;

  assign descriptor_o.owner     = entry.owner;
  assign descriptor_o.extended  = extended;
  assign descriptor_o.launch    = launch;
  assign descriptor_o.stream    = entry.stream;
  assign descriptor_o.writeback = entry.writeback;
  assign descriptor_o.tag       = extension.tag;

  assign operation_o.opcode     = opcode;
  assign operation_o.ternary    = ternary_i;
  assign operation_o.a          = entry.a;
  assign operation_o.b          = entry.b;
  assign operation_o.acc        = entry.acc;
  assign operation_o.tile       = tile;

  // ---------------------------------------------------------------------------------------------
  // Extension
  // ---------------------------------------------------------------------------------------------
  logic bad_entry, bad_program, bad_tile;
  assign bad_entry = entry.reserved0_6 != '0 || entry.reserved0_9 != '0 ||
                     (entry.offset & ~OffsetMask) != '0;
  assign bad_program = {entry.opcode, entry.stream, entry.offset, entry.bytes,
                        entry.writeback} != '0 ||
                       program_o.ucode_base[3:0] != '0 || extension.stride != '0;
  assign bad_tile = {extension.reserved5_24, extension.reserved6_24} != '0 ||
                    (own.cfg & ~CfgMask) != '0 || (own.base & ~BaseMask) != '0 ||
                    (own.stride & ~StrideMask) != '0;
  assign descriptor_o.bad_extension = extended && (bad_entry || (launch ? bad_program : bad_tile));

  // ---------------------------------------------------------------------------------------------
  // Stream
  // ---------------------------------------------------------------------------------------------
  assign stream_o.source = entry.a;
  assign stream_o.offset = entry.offset & OffsetMask;
  assign stream_o.bytes = entry.bytes;
  assign descriptor_o.bad_stream = entry.stream &&
                        ((stream_o.source[1:0] | stream_o.offset[1:0] |
                          stream_o.bytes[1:0]) != '0 || stream_o.bytes == '0 ||
                         10'(stream_o.offset) + 10'(stream_o.bytes) > 10'(ScratchBytes));

  // ---------------------------------------------------------------------------------------------
  // Writeback
  // ---------------------------------------------------------------------------------------------
  logic gemm, vrelu, gemm_fits, vrelu_fits;
  shape_t shape;

  assign gemm = is_gemm(opcode);
  assign vrelu = is_vrelu(opcode);
  assign shape = tile_shape(tile, Wide);
  assign gemm_fits = shape.m != '0 && shape.n != '0;
  assign vrelu_fits = shape.len != '0 && shape.len <= 9'(ScratchBytes) &&
                      (shape.len[1:0] | shape.b[1:0]) == '0;

  assign writeback_o.dest = extended ? extension.target : entry.b;
  assign writeback_o.scalar = !gemm && !vrelu;
  assign writeback_o.rows = gemm ? shape.m : 8'd1;
  assign writeback_o.columns = gemm ? shape.n : vrelu ? {1'b0, shape.len[8:2]} : 8'd2;
  assign writeback_o.first = gemm ? shape.c[7:2] : shape.b[7:2];
  assign writeback_o.stride = shape.stride_c[7:2];
  assign descriptor_o.bad_writeback = entry.writeback &&
                           (writeback_o.dest[1:0] != '0 ||
                            !(gemm ? gemm_fits : vrelu ? vrelu_fits : extended));

endmodule
