# SPDX-License-Identifier: Apache-2.0
"""The numbers of the interfaces as docs/reference has them, typed by hand.

Nothing here is computed from the sources, so that a number that changes there is noticed here: who
wrote a program, a driver or a file for this chip holds exactly these. An entry begins with its name
and ends at a comma or at the end of the line. A number is only ever added; one that changes is
another version of the interface.
"""

ISA = {
    "version": "ISA 2",
    "constants": """
        WORD 16, LINE 64, TABLE_BYTES 256, DYNAMIC 0xF000 in 16 bits, MULT_MAX 0x7FFF in 16 bits
        SHIFT_MAX 63 in 8 bits, BARRIER_MOST 4 in 16 bits
        DEPTHWISE_TAPS 4 in 16 bits, GEMM_LINES 4 in 16 bits
    """,
    "instruction word": """
        opcode 7:0, flags 15:8, dst 31:16, src0 47:32, src1 63:48, m 79:64, n 95:80, k 111:96
        imm 127:112
    """,
    "engines": "LD 0, ST 1, GEMM 2, SMX 3, NRM 4, VEC 5, SEQ 6, STREAM 7",
    "errors": """
        NONE 0, ILLEGAL_OPCODE 1, ILLEGAL_FIELD 2, BAD_DIMENSION 3, SRAM_RANGE 4, BAD_ADDRESS 5
        NO_END 6, STREAM_END 7, STREAM_LEFT 8, READ_ERROR 9, WRITE_ERROR 10, TIMEOUT 11, REGION 12
        CONTEXT_FULL 13, ABORTED 14
    """,
    "flags": """
        TRANSPOSE_B 0, BIAS_EN 1, REQUANT 2, RELU 3, CAUSAL_MASK 4, GROUP_HIGH 4, GROUP_LOW 0
        ACCUMULATE 5, MODE 6, ADD 0, V 0, STAGE 6
    """,
    "registers of SET: number, granularity, whether ADD": """
        POS 0 1 ADD, TOKEN 1 1 ADD, WINDOW 2 1 ADD, STREAM 3 64, OUTCNT 4 1 ADD, LOOPLEFT 5 1 ADD
        EOS 6 1 ADD, KVBASE 8 256 ADD, KVLAYER 9 256 ADD, KVHEAD 10 256 ADD, KVVOFF 11 256 ADD
        KVCAP 12 1 ADD, BASE0 16 16 ADD, BASE1 17 16 ADD, BASE2 18 16 ADD, BASE3 19 16 ADD
        BASE4 20 16 ADD, BASE5 21 16 ADD, BASE6 22 16 ADD, BASE7 23 16 ADD
    """,
    "prefix: field of PFX": """
        cp dst, ap src0, bp src1, d m, lines m, dp n, base k, mul imm, sums imm, sh flags
    """,
    "WEIGHT_FORMAT in 4 bits": """
        INT8 0 int8, INT4 1 int4, INT4G 2 int4g, INT4S 3 int4s, INT2 4 int2, INT8S 5 int8s
        NF4G 6 nf4g, FP4G 7 fp4g, MXINT8 8 mxint8, MXFP8E4 9 mxfp8e4, MXFP8E5 10 mxfp8e5
        MXFP6E3 11 mxfp6e3, MXFP6E2 12 mxfp6e2, MXFP4 13 mxfp4
    """,
    "weight formats: bits, side byte, unit, table, minifloat": """
        INT8 8 NONE 1, INT4 4 NONE 1, INT4G 4 FACTOR 16, INT4S 4 POSITIONS 1, INT2 2 NONE 1
        INT8S 8 POSITIONS 1
        NF4G 4 FACTOR 1 -127 -88 -67 -50 -36 -23 -12 0 10 20 31 43 56 71 92 127
        FP4G 4 FACTOR 1 E2M1, MXINT8 8 EXPONENT 1, MXFP8E4 8 EXPONENT 1 E4M3
        MXFP8E5 8 EXPONENT 1 E5M2, MXFP6E3 6 EXPONENT 1 E3M2, MXFP6E2 6 EXPONENT 1 E2M3
        MXFP4 4 EXPONENT 1 E2M1
    """,
    "minifloats: exponent, mantissa, top": """
        E2M1 2 1 3, E3M2 3 2 7, E2M3 2 3 3, E4M3 4 3 15 reserved, E5M2 5 2 30
    """,
    "WEIGHT_GROUP in 2 bits": "G32 0 32, G64 1 64, G128 2 128, G16 3 16",
    "GEMM_A": "INT8 0 i8, UINT8 1 u8, INT16 2 i16, UINT16 3 u16",
    "GEMM_B": "ROW_MAJOR 0 row, TILE 1 tile, STREAM 2 stream, STREAM_MX 3",
    "GEMM_Q": "PREFIX 0 imm, TENSOR 1 tensor, CHANNEL 2 ch, ROW 3 row",
    "GEMM_OUT": "INT8 0 i8, INT16 1 i16, INT32 2 i32, NONE 3 none",
    "GEMM_OP": "NONE 0 none, ADD 1 add, MUL 2 mul",
    "SMX_OUT": "PROB8 0 prob, NUMER8 1 u8, NUMER16 2 u16",
    "SMX_SCORE": "INT16 0 i16, INT8 1 i8",
    "ELEMENT_WIDTH": "INT8 0 i8, INT16 1 i16",
    "EMBED_INDEX": "TOKEN 0 token, LIST 1 list, POS 2 pos",
    "VEC_OP": """
        ADD 0 add, SUB 1 sub, MUL 2 mul, SCALE_SHIFT 3 scale_shift, CLAMP 4 clamp, RELU 5 relu
        COPY2D 6 copy2d, TABLE 7 table, MAX 8 max, MIN 9 min
    """,
    "VEC: src1, K, sh, A and C": """
        ADD operand - - INT8 INT16, SUB operand - - INT8 INT16, MUL operand - sh INT8 INT16
        SCALE_SHIFT - scale sh INT8 INT16 differ, CLAMP bound bound - INT8 INT16
        RELU - - - INT8 INT16, COPY2D - - - INT8 INT16, TABLE table - - INT8
        MAX operand - - INT8 INT16, MIN operand - - INT8 INT16
    """,
    "opcodes": """
        NOP 0 SEQ, DMA_LOAD 1 LD, DMA_STORE 2 ST, GEMM 3 GEMM, VEC 4 VEC, SOFTMAX 5 SMX
        LAYERNORM 6 NRM, GELU 7 VEC, KV_APPEND 8 ST, KV_READ 9 LD, BARRIER 10 SEQ, RMSNORM 11 NRM
        ROPE 12 NRM, SILU 13 VEC, PFX 14 SEQ, SET 15 SEQ, EMBED 16 LD, ARGMAX 17 ST, LOOP 18 SEQ
        END 255 SEQ
    """,
    "fields": """
        NOP, BARRIER m raw n raw, ARGMAX, LOOP src0 raw src1 raw, END
        DMA_LOAD dst sram src0 raw src1 raw m dim n dim k raw
        DMA_STORE dst sram src0 raw src1 raw m dim n dim k raw
        GEMM dst sram src0 sram src1 sram m dyn n dyn k dyn
        VEC dst sram src0 sram src1 raw m dyn n dim k raw
        SOFTMAX dst sram src0 sram src1 sram m dyn n dyn k raw
        LAYERNORM dst sram src0 sram src1 sram m dyn n dim
        RMSNORM dst sram src0 sram src1 sram m dyn n dim
        GELU dst sram src0 sram src1 sram m dyn n dim
        SILU dst sram src0 sram src1 sram m dyn n dim
        KV_APPEND dst sram src0 sram src1 raw m raw n dim k dim
        KV_READ dst sram m raw n dim k dyn
        ROPE dst sram src0 sram src1 sram m dyn n dim k dim
        PFX dst raw src0 raw src1 raw m raw n raw k raw flags raw
        SET dst raw src0 raw src1 raw
        EMBED dst sram src0 sram m dim n dim k raw
    """,
    "flags of opcodes": """
        NOP, DMA_LOAD, DMA_STORE, VEC, LAYERNORM, GELU, BARRIER, RMSNORM, ROPE, SILU, PFX, EMBED
        ARGMAX, LOOP, END
        GEMM TRANSPOSE_B GROUP_LOW BIAS_EN REQUANT RELU GROUP_HIGH ACCUMULATE MODE
        SOFTMAX CAUSAL_MASK, KV_APPEND V STAGE, KV_READ V, SET ADD
    """,
    "imm of opcodes": """
        NOP, BARRIER, SET, LOOP, END, DMA_LOAD base 2:0, DMA_STORE base 2:0, ARGMAX base 2:0
        GEMM a_type 1:0 GEMM_A b_form 3:2 GEMM_B fmt 6:4 q 8:7 GEMM_Q activation 9 \
            out 11:10 GEMM_OUT op 13:12 GEMM_OP argmax 14 depthwise 15 \
            or scale 7:0 shift 15:8
        VEC op 3:0 VEC_OP a16 4 ELEMENT_WIDTH c16 5 ELEMENT_WIDTH stream 6 sh 13:8
        SOFTMAX out 1:0 SMX_OUT score8 2 SMX_SCORE, LAYERNORM stream 0 out16 1 ELEMENT_WIDTH
        RMSNORM stream 0 out16 1 ELEMENT_WIDTH, GELU stream 0, SILU stream 0, ROPE pairs 0
        PFX mul 15:0
        KV_APPEND first_head 7:0 heads_minus_1 15:8, KV_READ first_head 7:0 heads_minus_1 15:8
        EMBED base 2:0 index 5:4 EMBED_INDEX
    """,
    "prefixes of opcodes": """
        NOP, BARRIER, PFX, SET, ARGMAX, LOOP, END, DMA_LOAD cp, DMA_STORE cp, EMBED cp
        GEMM cp ap bp d lines dp base mul sums sh, VEC cp ap bp, ROPE cp ap bp, SOFTMAX cp ap
        LAYERNORM cp ap, RMSNORM cp ap, GELU cp ap, SILU cp ap, KV_APPEND ap base, KV_READ cp base
    """,
}
"""isa.md."""

COPROCESSOR = {
    "opcodes": "INT 0x0B, FLOAT 0x2B",
    "opcode, funct3, funct7, format; rs1, rs2, rd; bytes of an element": """
        MACC INT 0 0 R; value value - 0, VMAC INT 0 1 R; source source count 1
        VEXP INT 0 2 R; source destination count 4, VRSQRT INT 0 3 R; source - result 4
        VMUL INT 0 4 R; source destination count 1, VREDUCE INT 0 5 R; source count result 4
        VMAX INT 0 6 R; source count result 4, RELU INT 1 - R; value - result 0
        QMUL INT 2 - R; value value result 0, CLAMP INT 3 - R; value - result 0
        GELU INT 4 - R; value - result 0, RSTACC INT 5 - R; - - result 0
        LDVEC INT 6 - I; source - vreg 4, STVEC INT 7 - S; destination vreg - 4
        FMACC FLOAT 0 0 R; float float - 0, FVMAC FLOAT 0 1 R; source source count 4
        FVEXP FLOAT 0 2 R; source destination count 4, FVRSQRT FLOAT 0 3 R; source - float 4
        FVMUL FLOAT 0 4 R; source destination count 4, FVREDUCE FLOAT 0 5 R; source count float 4
        FVMAX FLOAT 0 6 R; source count float 4, FVADD FLOAT 0 7 R; source both count 4
        FVSUB FLOAT 0 8 R; source both count 4, FVRELU FLOAT 0 9 R; source destination count 4
        FVGELU FLOAT 0 10 R; source destination count 4
        FVDIV FLOAT 0 11 R; source destination count 4
        FVSUB_SCALAR FLOAT 0 12 R; source destination count 4
        FRSQRT FLOAT 0 19 R; float - float 0, FRELU FLOAT 1 - R; float - float 0
        FGELU FLOAT 4 - R; float - float 0, FRSTACC FLOAT 5 - R; - - float 0
    """,
    "cycles": """
        MACC 2, VMAC n/8 + L, VEXP 6 n + 2 L + 17, VRSQRT 28 + L, VMUL n/8 + 2 L - 8
        VREDUCE n/4 + L, VMAX n/4 + L, RELU 2, QMUL 2, CLAMP 2, GELU 2, RSTACC 2, LDVEC L
        STVEC L + 1, FMACC 8, FVMAC 3 n + L + 8, FVEXP 6 n + 2 L + 17, FVRSQRT 28 + L
        FVMUL n/2 + 2 L - 3, FVREDUCE 3 n + L + 1, FVMAX n/4 + L, FVADD n/2 + 2 L + 5
        FVSUB n/2 + 2 L + 5, FVRELU n/2 + 2 L - 3, FVGELU 15 n + 2 L + 23, FVDIV n + 2 L - 3
        FVSUB_SCALAR n/2 + 2 L - 3, FRSQRT 30, FRELU 2, FGELU 48, FRSTACC 2
    """,
}
"""coprocessor.md."""

DESCRIPTORS = {
    "status": """
        EMPTY 0x01, DONE 0x02, BASE 0x04, OPERATION 0x06, TIMEOUT 0x0C, FETCH 0x14
        STREAM_CONFIG 0x24, STREAM_READ 0x34, OWNER 0x44, WRITEBACK_CONFIG 0x84
        WRITEBACK_WRITE 0x94
    """,
    "entry: words 0 to 3": """
        opcode 0 3:0, extended 0 4, launch 0 5, stream 0 8, offset 0 23:16, bytes 0 29:24
        writeback 0 30, owner 0 31, a 1 31:0, b 2 31:0, acc 3 31:0
    """,
    "extension: words 4 to 7": """
        target 4 31:0, cfg 5 23:0, base 6 23:0, stride 7 23:0, tag 7 31:24
    """,
    "program: words 1 to 6": """
        token 1 31:0, base0 2 31:0, base1 3 31:0, ucode_base 4 31:0, ucode_len 5 31:0, pos 6 31:0
    """,
    "record: words 0 to 3": """
        code 0 7:0, index 0 10:8, phase 0 15, tag 0 23:16, opcode 0 27:24, launch 0 28
        result 1 31:0, result_hi 2 31:0, cycles 3 31:0
    """,
}
"""command-port.md."""

REGISTERS = {
    "cmd: window 0x000": """
        OP_A 0x00; 31:0 rw 0
        OP_B 0x04; 31:0 rw 0
        RESULT 0x08; 31:0 r
        CTRL_STATUS 0x0C; 0 START w1 0; 0 BUSY r; 1 CLEAR w1 0; 1 DONE r; 2 ERROR r
        OPCODE 0x10; 3:0 rw 0
        ACC 0x14; 31:0 rw 0
        RESULT_HI 0x18; 31:0 r
        DEBUG 0x1C; 2:0 BUSY_COUNT r; 6:3 OPCODE r; 7 GEMM_BUSY r; 8 VECTOR_BUSY r
        GEMM_CFG 0x20; 6:0 LEN rw 0; 7 M_WIDE rw 0; 9:8 N rw 0; 15:10 N_WIDE rw 0; 18:16 K rw 0; \
            23:19 K_WIDE rw 0
        GEMM_BASE 0x24; 5:0 A rw 0; 7:6 A_WIDE rw 0; 13:8 B rw 0; 15:14 B_WIDE rw 0; \
            21:16 C rw 0; 23:22 C_WIDE rw 0
        GEMM_STRIDE 0x28; 3:0 A rw 0; 7:4 A_WIDE rw 0; 11:8 B rw 0; 15:12 B_WIDE rw 0; \
            19:16 C rw 0; 23:20 C_WIDE rw 0
        PERF_UNSUPPORTED_OPS 0x2C; 31:0 r
        CMD_PARAM 0x30; 0 DESCRIPTOR rw 0; 1 TERNARY rw 0
        DESC_BASE 0x40; 31:0 rw 0
        DESC_HEAD 0x44; 2:0 rw 0
        DESC_TAIL 0x48; 2:0 rw 0 unless busy
        DESC_STATUS 0x4C; 0 EMPTY r; 1 DONE r; 2 ERROR r; 3 TIMEOUT r; 4 RESPONSE r; 5 STREAM r; \
            6 OWNER r; 7 WRITEBACK r; 8 BUSY r; 11:9 INDEX r; 21:19 PENDING r
        PERF_CYCLES 0x50; 31:0 r
        PERF_MACS 0x54; 31:0 r
        PERF_OPS 0x58; 31:0 r
        PERF_ERRORS 0x5C; 0 CLEAR w1 0; 31:0 COUNT r
        DESC_TIMEOUT_COUNT 0x60; 31:0 r
        DESC_BYTES_READ 0x64; 31:0 r
        DESC_BYTES_WRITTEN 0x68; 31:0 r
        DESC_READ_BEATS 0x6C; 31:0 r
        DESC_WRITE_BEATS 0x70; 31:0 r
        PERF_STALL_CYCLES 0x74; 31:0 r
        PERF_SCRATCH_BYTES 0x78; 31:0 r
        PERF_THERMAL_THROTTLE 0x7C; 31:0 ADD w 0; 31:0 COUNT r
        SCRATCH0 0x80; 31:0 rw
        SCRATCH1 0x84; 31:0 rw
        SCRATCH2 0x88; 31:0 rw
        SCRATCH3 0x8C; 31:0 rw
        SCRATCH4 0x90; 31:0 rw
        SCRATCH5 0x94; 31:0 rw
        SCRATCH6 0x98; 31:0 rw
        SCRATCH7 0x9C; 31:0 rw
        SCRATCH8 0xA0; 31:0 rw
        SCRATCH9 0xA4; 31:0 rw
        SCRATCH10 0xA8; 31:0 rw
        SCRATCH11 0xAC; 31:0 rw
        SCRATCH12 0xB0; 31:0 rw
        SCRATCH13 0xB4; 31:0 rw
        SCRATCH14 0xB8; 31:0 rw
        SCRATCH15 0xBC; 31:0 rw
        DESC_TIMEOUT 0xC0; 23:0 CYCLES rw 0x1000
        CQ_BASE 0xC4; 31:4 rw 0 unless busy
        CQ_CTRL 0xC8; 0 ENABLE rw 0 unless busy; 11:8 LOG2_SIZE rw 0 unless busy
        CQ_HEAD 0xCC; 15:0 r
        CQ_TAIL 0xD0; 15:0 rw 0
        CMD_IRQ 0xD4; 0 PER_ENTRY rw 0; 1 ENTRY rc 0
        SCRATCH_PAGE 0xD8; 1:0 PAGE_WIDE rw 0
        CMD_CONFIG 0xDC; 15:0 SCRATCH_BYTES r
    """,
    "cmd_op": """
        ADD 0, SUB 1, MUL_LO 2, MAC_S16 3, DOT4_S8 4, MAX_U32 5, MIN_U32 6, DOT8_S4 7, GEMM_S8 8
        GEMM_S4 9, RELU4_S8 10, VRELU_S8 11, SDOT4_S4_2_4 12, DOT16_S2 13, DOT4_FP8_E4M3 14
        EXP2_NEG_Q0_8 15
    """,
    "seq: window 0x100": """
        CTRL 0x00; 0 START w1 0; 1 SOFT_RESET w1 0; 2 ABORT w1 0
        STATUS 0x04; 0 DONE r; 1 BUSY r; 2 ERROR rc 0; 11:8 ERROR_CODE r; 14:12 ERROR_ENGINE r
        UCODE_BASE 0x08; 31:4 rw 0; starts 0 image.ucode_base
        UCODE_LEN 0x0C; 31:0 rw 0; starts 1 image.ucode_len
        DDR_BASE_ACT 0x10; 31:0 rw 0; starts 15 machine.bases
        DDR_BASE_WGT 0x14; 31:6 rw 0; starts 2 image.stream_base
        DDR_BASE_KV 0x18; 31:8 rw 0; starts 9 machine.kv_base
        DDR_BASE_OUT 0x1C; 31:0 rw 0; starts 16 machine.bases
        MODEL_HIDDEN 0x20; 31:0 rw 0
        MODEL_HEADS 0x24; 31:0 rw 0
        MODEL_HEAD_DIM 0x28; 31:0 rw 0
        SEQ_LEN 0x2C; 31:0 rw 0
        TOKEN_IDX 0x30; 31:0 rw 0
        STREAM_LEN 0x48; 31:6 rw 0; starts 3 image.stream_len
        POS 0x4C; 31:0 rw 0; starts 4 machine.pos
        ERROR_INSTR 0x50; 31:0 r
        ERROR_ADDR 0x54; 31:0 r
        BASE2 0x58; 31:0 rw 0; starts 17 machine.bases
        BASE3 0x5C; 31:0 rw 0; starts 18 machine.bases
        BASE4 0x60; 31:0 rw 0; starts 19 machine.bases
        BASE5 0x64; 31:0 rw 0; starts 20 machine.bases
        BASE6 0x68; 31:0 rw 0; starts 21 machine.bases
        BASE7 0x6C; 31:0 rw 0; starts 22 machine.bases
        STREAM_LIMIT 0x70; 4:0 BURSTS rw 0
        TOKEN 0x74; 31:0 rw 0; starts 5 machine.token
        WINDOW 0x78; 31:0 rw 0; starts 6 machine.window
        LOOPLEFT 0x7C; 31:0 rw 0; starts 7 machine.loop_left
        EOS 0x80; 31:0 rw 0xFFFFFFFF; starts 8 machine.eos
        KVLAYER 0x84; 31:8 rw 0; starts 10 machine.kv_layer
        KVHEAD 0x88; 31:8 rw 0; starts 11 machine.kv_head
        KVVOFF 0x8C; 31:8 rw 0; starts 12 machine.kv_voff
        KVCAP 0x90; 31:0 rw 0; starts 13 machine.kv_cap
        KV_CTRL 0x94; 0 IN_MEMORY rw 0x1; starts 14 machine.kv_in_memory
        OUTCNT 0x98; 31:0 r; starts 23 machine.outcnt
        LAST_TOKEN 0x9C; 31:0 r
        LAST_POS 0xA0; 31:0 r
    """,
    "cop: window 0x200": """
        ACC_LO 0x00; 31:0 CLEAR w 0; 31:0 VALUE r
        ACC_HI 0x04; 31:0 r
        VREG0 0x08; 31:0 r
        VREG1 0x0C; 31:0 r
        VREG2 0x10; 31:0 r
        VREG3 0x14; 31:0 r
        FACC_LO 0x18; 31:0 CLEAR w 0; 31:0 VALUE r
        FACC_HI 0x1C; 31:0 r
        STATUS 0x40; 0 BUSY r; 1 FAULT r; 7:4 CODE r
        CTRL 0x44; 0 CLEAR w1 0; 1 TRAP rw 0x1
        FAULT_INSTR 0x48; 31:0 r
        FAULT_ADDR 0x4C; 31:0 r
        FAULT_INDEX 0x50; 31:0 r
        LIMIT 0x54; 19:0 BYTES rw 0x100
        INSTRS 0x58; 31:0 CLEAR w 0; 31:0 VALUE r
        CYCLES 0x5C; 31:0 CLEAR w 0; 31:0 VALUE r
        BEATS 0x60; 31:0 CLEAR w 0; 31:0 VALUE r
        CONFIG 0x7C; 0 PRESENT r 0x1; 7:4 VERSION r 0x1; 9:8 NUM_RS r
    """,
    "chip: window 0x300": """
        ID 0x00; 31:0 r 0x41525354
        VERSION 0x04; 7:0 REG_MAP r 0x2; 15:8 ISA r; 23:16 CHIP_MINOR r; 31:24 CHIP_MAJOR r
        CONFIG0 0x08; 7:0 ARRAY_DIM r; 31:16 SRAM_KIB r
        CONFIG1 0x0C; 15:0 ACC_ROWS r; 31:16 FIFO_LINES r
        CONFIG2 0x10; 7:0 AXI_BYTES r; 8 NARROW_FORMATS r; 31:16 NORM_MAX r
        IRQ_STATUS 0x14; 0 SEQ_DONE rc 0; 1 CMD r; 2 COP r
        IRQ_ENABLE 0x18; 0 SEQ_DONE rw 0; 1 CMD rw 0x1; 2 COP rw 0
        PERF_CTRL 0x1C; 0 CLEAR w1 0
        CYCLES_LO 0x20; 31:0 r
        CYCLES_HI 0x24; 31:0 r
        MACS_LO 0x28; 31:0 r
        MACS_HI 0x2C; 31:0 r
        INSTRS 0x30; 31:0 r
        READ_BEATS 0x34; 31:0 r
        WRITE_BEATS 0x38; 31:0 r
        STREAM_BEATS 0x3C; 31:0 r
        BUSY0 0x40; 31:0 r
        BUSY1 0x44; 31:0 r
        BUSY2 0x48; 31:0 r
        BUSY3 0x4C; 31:0 r
        BUSY4 0x50; 31:0 r
        BUSY5 0x54; 31:0 r
        STALL0 0x58; 31:0 r
        STALL1 0x5C; 31:0 r
        STALL2 0x60; 31:0 r
        STALL3 0x64; 31:0 r
        STALL4 0x68; 31:0 r
        STALL5 0x6C; 31:0 r
        MEM_TIMEOUT 0x70; 23:0 CYCLES rw 0x1000
        REGION0_BASE 0x80; 31:12 PAGE rw 0 unless CTRL.LOCK
        REGION0_LIMIT 0x84; 31:12 PAGE rw 0xFFFFF unless CTRL.LOCK
        REGION0_CTRL 0x88; 0 READ rw 0x1 unless CTRL.LOCK; 1 WRITE rw 0x1 unless CTRL.LOCK; \
            2 LOCK rs 0
    """
    + "".join(
        f"""
        REGION{number}_BASE 0x{at}0; 31:12 PAGE rw 0 unless CTRL.LOCK
        REGION{number}_LIMIT 0x{at}4; 31:12 PAGE rw 0xFFFFF unless CTRL.LOCK
        REGION{number}_CTRL 0x{at}8; 0 READ rw 0 unless CTRL.LOCK; 1 WRITE rw 0 unless CTRL.LOCK; \
            2 LOCK rs 0
        """
        for number, at in zip(range(1, 8), "9ABCDEF", strict=True)
    ),
}
"""registers.md."""
