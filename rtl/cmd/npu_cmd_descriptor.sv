// SPDX-License-Identifier: Apache-2.0
//
// Decodes a descriptor and checks what can be checked before it does anything: reserved bits of an
// extension, the fields of a program, the places of a stream and of a writeback.

module npu_cmd_descriptor
  import npu_cmd_pkg::*;
#(
  parameter int unsigned ScratchBytes = 64
) (
  input logic  [7:0][31:0] words_i,   // words 4 to 7 only of an extended entry
  input tile_t             tile_i,    // of an operation without extension
  input logic              ternary_i,

  output descriptor_t descriptor_o,
  output operation_t  operation_o,
  output stream_t     stream_o,
  output writeback_t  writeback_o,
  output launch_t     launch_o,

  output logic bad_extension_o,
  output logic bad_stream_o,
  output logic bad_writeback_o
);

  // Fields that exist with the small scratchpad only in part
  localparam bit Wide = ScratchBytes > 64;
  localparam logic [23:0] CfgMask = Wide ? '1 : TileSmall.cfg;
  localparam logic [23:0] BaseMask = Wide ? '1 : TileSmall.base;
  localparam logic [23:0] StrideMask = Wide ? '1 : TileSmall.stride;
  localparam logic [7:0] OffsetMask = Wide ? 8'hff : 8'h3f;
  localparam logic [31:0] Reserved0 = Wide ? 32'h0000fec0 : 32'h00c0fec0;
  localparam logic [31:0] ProgramReserved0 = 32'h7fff_ffcf;

  logic extended, launch;
  op_e opcode;
  tile_t own, tile;

  assign extended               = words_i[0][4];
  assign launch                 = extended && words_i[0][5];
  assign opcode                 = op_e'(words_i[0][3:0]);

  assign own.cfg                = words_i[5][23:0];
  assign own.base               = words_i[6][23:0];
  assign own.stride             = words_i[7][23:0];
  assign tile                   = extended ? own : tile_i;

  assign descriptor_o.owner     = words_i[0][31];
  assign descriptor_o.extended  = extended;
  assign descriptor_o.launch    = launch;
  assign descriptor_o.stream    = words_i[0][8];
  assign descriptor_o.writeback = words_i[0][30];
  assign descriptor_o.tag       = words_i[7][31:24];

  assign operation_o.opcode     = opcode;
  assign operation_o.ternary    = ternary_i;
  assign operation_o.a          = words_i[1];
  assign operation_o.b          = words_i[2];
  assign operation_o.acc        = words_i[3];
  assign operation_o.tile       = tile;

  assign launch_o.ucode_base    = words_i[4];
  assign launch_o.ucode_length  = words_i[5];
  assign launch_o.pos           = words_i[6];
  assign launch_o.token         = words_i[1];
  assign launch_o.base0         = words_i[2];
  assign launch_o.base1         = words_i[3];

  // ---------------------------------------------------------------------------------------------
  // Extension
  // ---------------------------------------------------------------------------------------------
  logic bad_program, bad_tile;
  assign bad_program = (words_i[0] & ProgramReserved0) != '0 || words_i[4][3:0] != '0 ||
                       words_i[7][23:0] != '0;
  assign bad_tile = (words_i[5] & ~{8'b0, CfgMask}) != '0 ||
                    (words_i[6] & ~{8'b0, BaseMask}) != '0 ||
                    (words_i[7][23:0] & ~StrideMask) != '0;
  assign bad_extension_o = extended && ((words_i[0] & Reserved0) != '0 ||
                                        (launch ? bad_program : bad_tile));

  // ---------------------------------------------------------------------------------------------
  // Stream
  // ---------------------------------------------------------------------------------------------
  assign stream_o.source = words_i[1];
  assign stream_o.offset = words_i[0][23:16] & OffsetMask;
  assign stream_o.bytes = words_i[0][29:24];
  assign bad_stream_o = descriptor_o.stream &&
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

  assign writeback_o.dest = extended ? words_i[4] : words_i[2];
  assign writeback_o.scalar = !gemm && !vrelu;
  assign writeback_o.rows = gemm ? shape.m : 8'd1;
  assign writeback_o.columns = gemm ? shape.n : vrelu ? {1'b0, shape.len[8:2]} : 8'd2;
  assign writeback_o.first = gemm ? shape.c[7:2] : shape.b[7:2];
  assign writeback_o.stride = shape.stride_c[7:2];
  assign bad_writeback_o = descriptor_o.writeback &&
                           (writeback_o.dest[1:0] != '0 ||
                            !(gemm ? gemm_fits : vrelu ? vrelu_fits : extended));

endmodule
