// SPDX-License-Identifier: Apache-2.0
//
// Types that the parts of the command port share. Shape, places and strides of a tile keep the layout
// of the registers GEMM_CFG, GEMM_BASE and GEMM_STRIDE.

package npu_cmd_pkg;

  typedef npu_cmd_regs_pkg::npu_cmd_regs__cmd_op_e op_e;

  typedef struct packed {
    logic [23:0] cfg;
    logic [23:0] base;
    logic [23:0] stride;
  } tile_t;

  // Bits of a tile that exist with a scratchpad of 64 bytes; with a larger one all do.
  localparam tile_t TileSmall = '{cfg: 24'h07037f, base: 24'h3f3f3f, stride: 24'h0f0f0f};

  // The fields of a tile, those of a small scratchpad filled up with zeros
  typedef struct packed {
    logic [8:0] len;
    logic [7:0] m;
    logic [7:0] n;
    logic [7:0] k;
    logic [7:0] a;
    logic [7:0] b;
    logic [7:0] c;
    logic [7:0] stride_a;
    logic [7:0] stride_b;
    logic [7:0] stride_c;
  } shape_t;

  // `wide`: the scratchpad has more than 64 bytes.
  function automatic shape_t tile_shape(tile_t tile, bit wide);
    tile_shape.len      = {wide && tile.cfg[8], wide && tile.cfg[7], tile.cfg[6:0]};
    tile_shape.m        = wide ? tile.cfg[7:0] : {6'b0, tile.cfg[1:0]};
    tile_shape.n        = wide ? tile.cfg[15:8] : {6'b0, tile.cfg[9:8]};
    tile_shape.k        = wide ? tile.cfg[23:16] : {5'b0, tile.cfg[18:16]};
    tile_shape.a        = wide ? tile.base[7:0] : {2'b0, tile.base[5:0]};
    tile_shape.b        = wide ? tile.base[15:8] : {2'b0, tile.base[13:8]};
    tile_shape.c        = wide ? tile.base[23:16] : {2'b0, tile.base[21:16]};
    tile_shape.stride_a = wide ? tile.stride[7:0] : {4'b0, tile.stride[3:0]};
    tile_shape.stride_b = wide ? tile.stride[15:8] : {4'b0, tile.stride[11:8]};
    tile_shape.stride_c = wide ? tile.stride[23:16] : {4'b0, tile.stride[19:16]};
  endfunction

  // What the operation unit executes
  typedef struct packed {
    op_e         opcode;
    logic        ternary;
    logic [31:0] a;
    logic [31:0] b;
    logic [31:0] acc;
    tile_t       tile;
  } operation_t;

  // How an operation ended
  typedef enum logic [1:0] {
    EndOkay,
    EndRefused,  // shape or place: nothing has changed
    EndReserved  // a reserved lane: RESULT has not changed
  } end_e;

  function automatic logic is_gemm(op_e opcode);
    return opcode inside {npu_cmd_regs_pkg::npu_cmd_regs__cmd_op__GEMM_S8,
                          npu_cmd_regs_pkg::npu_cmd_regs__cmd_op__GEMM_S4};
  endfunction

  function automatic logic is_vrelu(op_e opcode);
    return opcode == npu_cmd_regs_pkg::npu_cmd_regs__cmd_op__VRELU_S8;
  endfunction

  // A write of up to sixteen bytes into the scratchpad, from byte `addr` on
  typedef struct packed {
    logic [15:0]  we;
    logic [7:0]   addr;
    logic [127:0] data;
  } scratch_write_t;

  // Registers that the ring of descriptors works from
  typedef struct packed {
    logic [31:0] base;
    logic [2:0]  head;
    logic [2:0]  tail;
    logic [23:0] timeout;
    logic [31:0] cq_base;
    logic        cq_enable;
    logic [3:0]  cq_log2_size;
    logic [15:0] cq_tail;
  } ring_regs_t;

  // What the registers show
  typedef struct packed {
    logic [31:0] result;
    logic [31:0] result_hi;
    logic        busy;
    logic        done;
    logic        error;
    logic [2:0]  busy_count;
    op_e         opcode;
    logic        gemm_busy;
    logic        vector_busy;
    logic [7:0]  code;
    logic        ring_busy;
    logic [2:0]  index;
    logic [15:0] cq_head;
  } status_t;

  // What happens in a cycle
  typedef struct packed {
    logic        failed;
    logic        unsupported;
    logic        op_begun;
    logic [23:0] macs;
    logic [23:0] unit_bytes;   // of the scratchpad, moved by operations
    logic        launched;
    logic        stall;
    logic [4:0]  read_words;
    logic [13:0] write_words;
    logic [15:0] ring_bytes;   // of the scratchpad, moved by the ring
  } events_t;

  // Counters; those of the traffic count words of four bytes.
  typedef struct packed {
    logic [31:0] cycles;
    logic [31:0] macs;
    logic [31:0] ops;
    logic [31:0] errors;
    logic [31:0] unsupported;
    logic [31:0] stalls;
    logic [31:0] scratch_bytes;
    logic [31:0] thermal;
    logic [31:0] ring_cycles;
    logic [31:0] read_words;
    logic [31:0] write_words;
  } counters_t;

  // A microcode program that a descriptor launches
  typedef struct packed {
    npu_pkg::mem_addr_t ucode_base;
    logic [31:0]        ucode_length;
    logic [31:0]        pos;
    logic [31:0]        token;
    npu_pkg::mem_addr_t base0;
    npu_pkg::mem_addr_t base1;
  } launch_t;

  // How a run of the descriptor ring ends, how a descriptor ends: DESC_STATUS[7:0]
  localparam logic [7:0] CodeEmpty = 8'h01;  // after reset as well
  localparam logic [7:0] CodeDone = 8'h02;
  localparam logic [7:0] CodeBase = 8'h04;
  localparam logic [7:0] CodeOperation = 8'h06;  // extension, operation or program
  localparam logic [7:0] CodeTimeout = 8'h0C;
  localparam logic [7:0] CodeFetch = 8'h14;
  localparam logic [7:0] CodeStreamConfig = 8'h24;
  localparam logic [7:0] CodeStream = 8'h34;
  localparam logic [7:0] CodeOwner = 8'h44;
  localparam logic [7:0] CodeWritebackConfig = 8'h84;
  localparam logic [7:0] CodeWriteback = 8'h94;

  // Bytes of memory that go to the scratchpad before the operation; all are multiples of 4
  typedef struct packed {
    npu_pkg::mem_addr_t source;
    logic [7:0]         offset;
    logic [5:0]         bytes;
  } stream_t;

  // A result that goes to memory: rows of words from the scratchpad, or RESULT and RESULT_HI
  typedef struct packed {
    npu_pkg::mem_addr_t dest;
    logic               scalar;
    logic [7:0]         rows;
    logic [7:0]         columns;  // words
    logic [5:0]         first;    // word of the scratchpad
    logic [5:0]         stride;   // words
  } writeback_t;

  // The end of a part of a descriptor's work, a pulse
  typedef struct packed {
    logic done;
    logic failed;
  } step_end_t;

  // Memory of the ring: words of 16 bytes. A request is accepted, or no region permits it; what comes
  // back is in order.
  typedef struct packed {
    logic               valid;
    npu_pkg::mem_addr_t addr;
  } read_req_t;

  typedef struct packed {
    logic           ready;
    logic           denied;
    logic           valid;   // of the data
    logic           error;   // in place of data
    npu_pkg::word_t data;
  } read_rsp_t;

  typedef struct packed {
    logic               valid;
    npu_pkg::mem_addr_t addr;
    npu_pkg::word_t     data;
    logic [15:0]        strb;
  } write_req_t;

  typedef struct packed {
    logic ready;
    logic denied;
    logic valid;   // of the response
    logic error;
  } write_rsp_t;

  // A descriptor, decoded; word 0 alone decides all but the tag
  typedef struct packed {
    logic       owner;
    logic       extended;
    logic       launch;     // launches one
    logic       stream;
    logic       writeback;
    logic [7:0] tag;
  } descriptor_t;

endpackage
