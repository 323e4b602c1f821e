# SPDX-License-Identifier: Apache-2.0
"""Generated from the SystemRDL of spec/regs by `python -m spec.regs.generate`; do not edit."""

from dataclasses import KW_ONLY, dataclass
from enum import IntEnum
from typing import ClassVar, TypedDict

from spec.regs.fields import RegField
from spec.regs.layout import WordLayout
from spec.regs.start import StartMembers, StartRegister

CMD_BASE = 0x000


class CmdReg(IntEnum):
    """Byte offsets from CMD_BASE."""

    OP_A = 0x00
    OP_B = 0x04
    RESULT = 0x08
    CTRL_STATUS = 0x0C
    OPCODE = 0x10
    ACC = 0x14
    RESULT_HI = 0x18
    DEBUG = 0x1C
    GEMM_CFG = 0x20
    GEMM_BASE = 0x24
    GEMM_STRIDE = 0x28
    PERF_UNSUPPORTED_OPS = 0x2C
    CMD_PARAM = 0x30
    DESC_BASE = 0x40
    DESC_HEAD = 0x44
    DESC_TAIL = 0x48
    DESC_STATUS = 0x4C
    PERF_CYCLES = 0x50
    PERF_MACS = 0x54
    PERF_OPS = 0x58
    PERF_ERRORS = 0x5C
    DESC_TIMEOUT_COUNT = 0x60
    DESC_BYTES_READ = 0x64
    DESC_BYTES_WRITTEN = 0x68
    DESC_READ_BEATS = 0x6C
    DESC_WRITE_BEATS = 0x70
    PERF_STALL_CYCLES = 0x74
    PERF_SCRATCH_BYTES = 0x78
    PERF_THERMAL_THROTTLE = 0x7C
    SCRATCH0 = 0x80
    SCRATCH1 = 0x84
    SCRATCH2 = 0x88
    SCRATCH3 = 0x8C
    SCRATCH4 = 0x90
    SCRATCH5 = 0x94
    SCRATCH6 = 0x98
    SCRATCH7 = 0x9C
    SCRATCH8 = 0xA0
    SCRATCH9 = 0xA4
    SCRATCH10 = 0xA8
    SCRATCH11 = 0xAC
    SCRATCH12 = 0xB0
    SCRATCH13 = 0xB4
    SCRATCH14 = 0xB8
    SCRATCH15 = 0xBC
    DESC_TIMEOUT = 0xC0
    CQ_BASE = 0xC4
    CQ_CTRL = 0xC8
    CQ_HEAD = 0xCC
    CQ_TAIL = 0xD0
    CMD_IRQ = 0xD4
    SCRATCH_PAGE = 0xD8
    CMD_CONFIG = 0xDC


CMD_FIELDS: dict[str, RegField] = {
    "OP_A": RegField(CmdReg.OP_A, 0, 32),
    "OP_B": RegField(CmdReg.OP_B, 0, 32),
    "RESULT": RegField(CmdReg.RESULT, 0, 32),
    "CTRL_STATUS_START": RegField(CmdReg.CTRL_STATUS, 0, 1),
    "CTRL_STATUS_BUSY": RegField(CmdReg.CTRL_STATUS, 0, 1),
    "CTRL_STATUS_CLEAR": RegField(CmdReg.CTRL_STATUS, 1, 1),
    "CTRL_STATUS_DONE": RegField(CmdReg.CTRL_STATUS, 1, 1),
    "CTRL_STATUS_ERROR": RegField(CmdReg.CTRL_STATUS, 2, 1),
    "OPCODE": RegField(CmdReg.OPCODE, 0, 4),
    "ACC": RegField(CmdReg.ACC, 0, 32),
    "RESULT_HI": RegField(CmdReg.RESULT_HI, 0, 32),
    "DEBUG_BUSY_COUNT": RegField(CmdReg.DEBUG, 0, 3),
    "DEBUG_OPCODE": RegField(CmdReg.DEBUG, 3, 4),
    "DEBUG_GEMM_BUSY": RegField(CmdReg.DEBUG, 7, 1),
    "DEBUG_VECTOR_BUSY": RegField(CmdReg.DEBUG, 8, 1),
    "GEMM_CFG_LEN": RegField(CmdReg.GEMM_CFG, 0, 7),
    "GEMM_CFG_M_WIDE": RegField(CmdReg.GEMM_CFG, 7, 1),
    "GEMM_CFG_N": RegField(CmdReg.GEMM_CFG, 8, 2),
    "GEMM_CFG_N_WIDE": RegField(CmdReg.GEMM_CFG, 10, 6),
    "GEMM_CFG_K": RegField(CmdReg.GEMM_CFG, 16, 3),
    "GEMM_CFG_K_WIDE": RegField(CmdReg.GEMM_CFG, 19, 5),
    "GEMM_BASE_A": RegField(CmdReg.GEMM_BASE, 0, 6),
    "GEMM_BASE_A_WIDE": RegField(CmdReg.GEMM_BASE, 6, 2),
    "GEMM_BASE_B": RegField(CmdReg.GEMM_BASE, 8, 6),
    "GEMM_BASE_B_WIDE": RegField(CmdReg.GEMM_BASE, 14, 2),
    "GEMM_BASE_C": RegField(CmdReg.GEMM_BASE, 16, 6),
    "GEMM_BASE_C_WIDE": RegField(CmdReg.GEMM_BASE, 22, 2),
    "GEMM_STRIDE_A": RegField(CmdReg.GEMM_STRIDE, 0, 4),
    "GEMM_STRIDE_A_WIDE": RegField(CmdReg.GEMM_STRIDE, 4, 4),
    "GEMM_STRIDE_B": RegField(CmdReg.GEMM_STRIDE, 8, 4),
    "GEMM_STRIDE_B_WIDE": RegField(CmdReg.GEMM_STRIDE, 12, 4),
    "GEMM_STRIDE_C": RegField(CmdReg.GEMM_STRIDE, 16, 4),
    "GEMM_STRIDE_C_WIDE": RegField(CmdReg.GEMM_STRIDE, 20, 4),
    "PERF_UNSUPPORTED_OPS": RegField(CmdReg.PERF_UNSUPPORTED_OPS, 0, 32),
    "CMD_PARAM_DESCRIPTOR": RegField(CmdReg.CMD_PARAM, 0, 1),
    "CMD_PARAM_TERNARY": RegField(CmdReg.CMD_PARAM, 1, 1),
    "DESC_BASE": RegField(CmdReg.DESC_BASE, 0, 32),
    "DESC_HEAD": RegField(CmdReg.DESC_HEAD, 0, 3),
    "DESC_TAIL": RegField(CmdReg.DESC_TAIL, 0, 3),
    "DESC_STATUS_EMPTY": RegField(CmdReg.DESC_STATUS, 0, 1),
    "DESC_STATUS_DONE": RegField(CmdReg.DESC_STATUS, 1, 1),
    "DESC_STATUS_ERROR": RegField(CmdReg.DESC_STATUS, 2, 1),
    "DESC_STATUS_TIMEOUT": RegField(CmdReg.DESC_STATUS, 3, 1),
    "DESC_STATUS_RESPONSE": RegField(CmdReg.DESC_STATUS, 4, 1),
    "DESC_STATUS_STREAM": RegField(CmdReg.DESC_STATUS, 5, 1),
    "DESC_STATUS_OWNER": RegField(CmdReg.DESC_STATUS, 6, 1),
    "DESC_STATUS_WRITEBACK": RegField(CmdReg.DESC_STATUS, 7, 1),
    "DESC_STATUS_BUSY": RegField(CmdReg.DESC_STATUS, 8, 1),
    "DESC_STATUS_INDEX": RegField(CmdReg.DESC_STATUS, 9, 3),
    "DESC_STATUS_PENDING": RegField(CmdReg.DESC_STATUS, 19, 3),
    "PERF_CYCLES": RegField(CmdReg.PERF_CYCLES, 0, 32),
    "PERF_MACS": RegField(CmdReg.PERF_MACS, 0, 32),
    "PERF_OPS": RegField(CmdReg.PERF_OPS, 0, 32),
    "PERF_ERRORS_CLEAR": RegField(CmdReg.PERF_ERRORS, 0, 1),
    "PERF_ERRORS_COUNT": RegField(CmdReg.PERF_ERRORS, 0, 32),
    "DESC_TIMEOUT_COUNT": RegField(CmdReg.DESC_TIMEOUT_COUNT, 0, 32),
    "DESC_BYTES_READ": RegField(CmdReg.DESC_BYTES_READ, 0, 32),
    "DESC_BYTES_WRITTEN": RegField(CmdReg.DESC_BYTES_WRITTEN, 0, 32),
    "DESC_READ_BEATS": RegField(CmdReg.DESC_READ_BEATS, 0, 32),
    "DESC_WRITE_BEATS": RegField(CmdReg.DESC_WRITE_BEATS, 0, 32),
    "PERF_STALL_CYCLES": RegField(CmdReg.PERF_STALL_CYCLES, 0, 32),
    "PERF_SCRATCH_BYTES": RegField(CmdReg.PERF_SCRATCH_BYTES, 0, 32),
    "PERF_THERMAL_THROTTLE_ADD": RegField(CmdReg.PERF_THERMAL_THROTTLE, 0, 32),
    "PERF_THERMAL_THROTTLE_COUNT": RegField(CmdReg.PERF_THERMAL_THROTTLE, 0, 32),
    "SCRATCH0": RegField(CmdReg.SCRATCH0, 0, 32),
    "SCRATCH1": RegField(CmdReg.SCRATCH1, 0, 32),
    "SCRATCH2": RegField(CmdReg.SCRATCH2, 0, 32),
    "SCRATCH3": RegField(CmdReg.SCRATCH3, 0, 32),
    "SCRATCH4": RegField(CmdReg.SCRATCH4, 0, 32),
    "SCRATCH5": RegField(CmdReg.SCRATCH5, 0, 32),
    "SCRATCH6": RegField(CmdReg.SCRATCH6, 0, 32),
    "SCRATCH7": RegField(CmdReg.SCRATCH7, 0, 32),
    "SCRATCH8": RegField(CmdReg.SCRATCH8, 0, 32),
    "SCRATCH9": RegField(CmdReg.SCRATCH9, 0, 32),
    "SCRATCH10": RegField(CmdReg.SCRATCH10, 0, 32),
    "SCRATCH11": RegField(CmdReg.SCRATCH11, 0, 32),
    "SCRATCH12": RegField(CmdReg.SCRATCH12, 0, 32),
    "SCRATCH13": RegField(CmdReg.SCRATCH13, 0, 32),
    "SCRATCH14": RegField(CmdReg.SCRATCH14, 0, 32),
    "SCRATCH15": RegField(CmdReg.SCRATCH15, 0, 32),
    "DESC_TIMEOUT_CYCLES": RegField(CmdReg.DESC_TIMEOUT, 0, 24),
    "CQ_BASE": RegField(CmdReg.CQ_BASE, 4, 28),
    "CQ_CTRL_ENABLE": RegField(CmdReg.CQ_CTRL, 0, 1),
    "CQ_CTRL_LOG2_SIZE": RegField(CmdReg.CQ_CTRL, 8, 4),
    "CQ_HEAD": RegField(CmdReg.CQ_HEAD, 0, 16),
    "CQ_TAIL": RegField(CmdReg.CQ_TAIL, 0, 16),
    "CMD_IRQ_PER_ENTRY": RegField(CmdReg.CMD_IRQ, 0, 1),
    "CMD_IRQ_ENTRY": RegField(CmdReg.CMD_IRQ, 1, 1),
    "SCRATCH_PAGE_PAGE_WIDE": RegField(CmdReg.SCRATCH_PAGE, 0, 2),
    "CMD_CONFIG_SCRATCH_BYTES": RegField(CmdReg.CMD_CONFIG, 0, 16),
}


class CmdOp(IntEnum):
    """Values of a field of CMD."""

    ADD = 0
    """RESULT = A + B."""
    SUB = 1
    """RESULT = A - B."""
    MUL_LO = 2
    """RESULT, RESULT_HI = unsigned A * B."""
    MAC_S16 = 3
    """RESULT = s16(A) * s16(B) + ACC."""
    DOT4_S8 = 4
    """RESULT = sum of four products of signed bytes + ACC."""
    MAX_U32 = 5
    """RESULT = larger of A and B, unsigned."""
    MIN_U32 = 6
    """RESULT = smaller of A and B, unsigned."""
    DOT8_S4 = 7
    """RESULT = sum of eight products of signed nibbles + ACC."""
    GEMM_S8 = 8
    """Tile of signed bytes in the scratchpad: C = A * B, signed 32 bits."""
    GEMM_S4 = 9
    """Tile of signed nibbles, low nibble first: C = A * B, signed 32 bits."""
    RELU4_S8 = 10
    """RESULT = A with its negative bytes set to 0."""
    VRELU_S8 = 11
    """LEN bytes of the scratchpad, negative ones set to 0."""
    SDOT4_S4_2_4 = 12
    """RESULT = four products of 2:4 sparse nibbles; ACC holds the positions."""
    DOT16_S2 = 13
    """RESULT = sum of sixteen products of 2-bit or ternary lanes + ACC."""
    DOT4_FP8_E4M3 = 14
    """RESULT = sum of four FP8 products in Q8.8 + ACC."""
    EXP2_NEG_Q0_8 = 15
    """RESULT = 2 to the power of min(s8(A), 0) in Q0.8, at least 1/256."""


SEQ_BASE = 0x100


class SeqReg(IntEnum):
    """Byte offsets from SEQ_BASE."""

    CTRL = 0x00
    STATUS = 0x04
    UCODE_BASE = 0x08
    UCODE_LEN = 0x0C
    DDR_BASE_ACT = 0x10
    DDR_BASE_WGT = 0x14
    DDR_BASE_KV = 0x18
    DDR_BASE_OUT = 0x1C
    MODEL_HIDDEN = 0x20
    MODEL_HEADS = 0x24
    MODEL_HEAD_DIM = 0x28
    SEQ_LEN = 0x2C
    TOKEN_IDX = 0x30
    STREAM_LEN = 0x48
    POS = 0x4C
    ERROR_INSTR = 0x50
    ERROR_ADDR = 0x54
    BASE2 = 0x58
    BASE3 = 0x5C
    BASE4 = 0x60
    BASE5 = 0x64
    BASE6 = 0x68
    BASE7 = 0x6C
    STREAM_LIMIT = 0x70
    TOKEN = 0x74
    WINDOW = 0x78
    LOOPLEFT = 0x7C
    EOS = 0x80
    KVLAYER = 0x84
    KVHEAD = 0x88
    KVVOFF = 0x8C
    KVCAP = 0x90
    KV_CTRL = 0x94
    OUTCNT = 0x98
    LAST_TOKEN = 0x9C
    LAST_POS = 0xA0


SEQ_FIELDS: dict[str, RegField] = {
    "CTRL_START": RegField(SeqReg.CTRL, 0, 1),
    "CTRL_SOFT_RESET": RegField(SeqReg.CTRL, 1, 1),
    "CTRL_ABORT": RegField(SeqReg.CTRL, 2, 1),
    "STATUS_DONE": RegField(SeqReg.STATUS, 0, 1),
    "STATUS_BUSY": RegField(SeqReg.STATUS, 1, 1),
    "STATUS_ERROR": RegField(SeqReg.STATUS, 2, 1),
    "STATUS_ERROR_CODE": RegField(SeqReg.STATUS, 8, 4),
    "STATUS_ERROR_ENGINE": RegField(SeqReg.STATUS, 12, 3),
    "UCODE_BASE": RegField(SeqReg.UCODE_BASE, 4, 28),
    "UCODE_LEN": RegField(SeqReg.UCODE_LEN, 0, 32),
    "DDR_BASE_ACT": RegField(SeqReg.DDR_BASE_ACT, 0, 32),
    "DDR_BASE_WGT": RegField(SeqReg.DDR_BASE_WGT, 6, 26),
    "DDR_BASE_KV": RegField(SeqReg.DDR_BASE_KV, 8, 24),
    "DDR_BASE_OUT": RegField(SeqReg.DDR_BASE_OUT, 0, 32),
    "MODEL_HIDDEN": RegField(SeqReg.MODEL_HIDDEN, 0, 32),
    "MODEL_HEADS": RegField(SeqReg.MODEL_HEADS, 0, 32),
    "MODEL_HEAD_DIM": RegField(SeqReg.MODEL_HEAD_DIM, 0, 32),
    "SEQ_LEN": RegField(SeqReg.SEQ_LEN, 0, 32),
    "TOKEN_IDX": RegField(SeqReg.TOKEN_IDX, 0, 32),
    "STREAM_LEN": RegField(SeqReg.STREAM_LEN, 6, 26),
    "POS": RegField(SeqReg.POS, 0, 32),
    "ERROR_INSTR": RegField(SeqReg.ERROR_INSTR, 0, 32),
    "ERROR_ADDR": RegField(SeqReg.ERROR_ADDR, 0, 32),
    "BASE2": RegField(SeqReg.BASE2, 0, 32),
    "BASE3": RegField(SeqReg.BASE3, 0, 32),
    "BASE4": RegField(SeqReg.BASE4, 0, 32),
    "BASE5": RegField(SeqReg.BASE5, 0, 32),
    "BASE6": RegField(SeqReg.BASE6, 0, 32),
    "BASE7": RegField(SeqReg.BASE7, 0, 32),
    "STREAM_LIMIT_BURSTS": RegField(SeqReg.STREAM_LIMIT, 0, 5),
    "TOKEN": RegField(SeqReg.TOKEN, 0, 32),
    "WINDOW": RegField(SeqReg.WINDOW, 0, 32),
    "LOOPLEFT": RegField(SeqReg.LOOPLEFT, 0, 32),
    "EOS": RegField(SeqReg.EOS, 0, 32),
    "KVLAYER": RegField(SeqReg.KVLAYER, 8, 24),
    "KVHEAD": RegField(SeqReg.KVHEAD, 8, 24),
    "KVVOFF": RegField(SeqReg.KVVOFF, 8, 24),
    "KVCAP": RegField(SeqReg.KVCAP, 0, 32),
    "KV_CTRL_IN_MEMORY": RegField(SeqReg.KV_CTRL, 0, 1),
    "OUTCNT": RegField(SeqReg.OUTCNT, 0, 32),
    "LAST_TOKEN": RegField(SeqReg.LAST_TOKEN, 0, 32),
    "LAST_POS": RegField(SeqReg.LAST_POS, 0, 32),
}

COP_BASE = 0x200


class CopReg(IntEnum):
    """Byte offsets from COP_BASE."""

    ACC_LO = 0x00
    ACC_HI = 0x04
    VREG0 = 0x08
    VREG1 = 0x0C
    VREG2 = 0x10
    VREG3 = 0x14
    FACC_LO = 0x18
    FACC_HI = 0x1C
    STATUS = 0x40
    CTRL = 0x44
    FAULT_INSTR = 0x48
    FAULT_ADDR = 0x4C
    FAULT_INDEX = 0x50
    LIMIT = 0x54
    INSTRS = 0x58
    CYCLES = 0x5C
    BEATS = 0x60
    CONFIG = 0x7C


COP_FIELDS: dict[str, RegField] = {
    "ACC_LO_CLEAR": RegField(CopReg.ACC_LO, 0, 32),
    "ACC_LO": RegField(CopReg.ACC_LO, 0, 32),
    "ACC_HI": RegField(CopReg.ACC_HI, 0, 32),
    "VREG0": RegField(CopReg.VREG0, 0, 32),
    "VREG1": RegField(CopReg.VREG1, 0, 32),
    "VREG2": RegField(CopReg.VREG2, 0, 32),
    "VREG3": RegField(CopReg.VREG3, 0, 32),
    "FACC_LO_CLEAR": RegField(CopReg.FACC_LO, 0, 32),
    "FACC_LO": RegField(CopReg.FACC_LO, 0, 32),
    "FACC_HI": RegField(CopReg.FACC_HI, 0, 32),
    "STATUS_BUSY": RegField(CopReg.STATUS, 0, 1),
    "STATUS_FAULT": RegField(CopReg.STATUS, 1, 1),
    "STATUS_CODE": RegField(CopReg.STATUS, 4, 4),
    "CTRL_CLEAR": RegField(CopReg.CTRL, 0, 1),
    "CTRL_TRAP": RegField(CopReg.CTRL, 1, 1),
    "FAULT_INSTR": RegField(CopReg.FAULT_INSTR, 0, 32),
    "FAULT_ADDR": RegField(CopReg.FAULT_ADDR, 0, 32),
    "FAULT_INDEX": RegField(CopReg.FAULT_INDEX, 0, 32),
    "LIMIT_BYTES": RegField(CopReg.LIMIT, 0, 20),
    "INSTRS_CLEAR": RegField(CopReg.INSTRS, 0, 32),
    "INSTRS": RegField(CopReg.INSTRS, 0, 32),
    "CYCLES_CLEAR": RegField(CopReg.CYCLES, 0, 32),
    "CYCLES": RegField(CopReg.CYCLES, 0, 32),
    "BEATS_CLEAR": RegField(CopReg.BEATS, 0, 32),
    "BEATS": RegField(CopReg.BEATS, 0, 32),
    "CONFIG_PRESENT": RegField(CopReg.CONFIG, 0, 1),
    "CONFIG_VERSION": RegField(CopReg.CONFIG, 4, 4),
    "CONFIG_NUM_RS": RegField(CopReg.CONFIG, 8, 2),
}

CHIP_BASE = 0x300


class ChipReg(IntEnum):
    """Byte offsets from CHIP_BASE."""

    ID = 0x00
    VERSION = 0x04
    CONFIG0 = 0x08
    CONFIG1 = 0x0C
    CONFIG2 = 0x10
    IRQ_STATUS = 0x14
    IRQ_ENABLE = 0x18
    PERF_CTRL = 0x1C
    CYCLES_LO = 0x20
    CYCLES_HI = 0x24
    MACS_LO = 0x28
    MACS_HI = 0x2C
    INSTRS = 0x30
    READ_BEATS = 0x34
    WRITE_BEATS = 0x38
    STREAM_BEATS = 0x3C
    BUSY0 = 0x40
    BUSY1 = 0x44
    BUSY2 = 0x48
    BUSY3 = 0x4C
    BUSY4 = 0x50
    BUSY5 = 0x54
    STALL0 = 0x58
    STALL1 = 0x5C
    STALL2 = 0x60
    STALL3 = 0x64
    STALL4 = 0x68
    STALL5 = 0x6C
    MEM_TIMEOUT = 0x70
    REGION0_BASE = 0x80
    REGION0_LIMIT = 0x84
    REGION0_CTRL = 0x88
    REGION1_BASE = 0x90
    REGION1_LIMIT = 0x94
    REGION1_CTRL = 0x98
    REGION2_BASE = 0xA0
    REGION2_LIMIT = 0xA4
    REGION2_CTRL = 0xA8
    REGION3_BASE = 0xB0
    REGION3_LIMIT = 0xB4
    REGION3_CTRL = 0xB8
    REGION4_BASE = 0xC0
    REGION4_LIMIT = 0xC4
    REGION4_CTRL = 0xC8
    REGION5_BASE = 0xD0
    REGION5_LIMIT = 0xD4
    REGION5_CTRL = 0xD8
    REGION6_BASE = 0xE0
    REGION6_LIMIT = 0xE4
    REGION6_CTRL = 0xE8
    REGION7_BASE = 0xF0
    REGION7_LIMIT = 0xF4
    REGION7_CTRL = 0xF8


CHIP_FIELDS: dict[str, RegField] = {
    "ID": RegField(ChipReg.ID, 0, 32),
    "VERSION_REG_MAP": RegField(ChipReg.VERSION, 0, 8),
    "VERSION_ISA": RegField(ChipReg.VERSION, 8, 8),
    "VERSION_CHIP_MINOR": RegField(ChipReg.VERSION, 16, 8),
    "VERSION_CHIP_MAJOR": RegField(ChipReg.VERSION, 24, 8),
    "CONFIG0_ARRAY_DIM": RegField(ChipReg.CONFIG0, 0, 8),
    "CONFIG0_SRAM_KIB": RegField(ChipReg.CONFIG0, 16, 16),
    "CONFIG1_ACC_ROWS": RegField(ChipReg.CONFIG1, 0, 16),
    "CONFIG1_FIFO_LINES": RegField(ChipReg.CONFIG1, 16, 16),
    "CONFIG2_AXI_BYTES": RegField(ChipReg.CONFIG2, 0, 8),
    "CONFIG2_NARROW_FORMATS": RegField(ChipReg.CONFIG2, 8, 1),
    "CONFIG2_NORM_MAX": RegField(ChipReg.CONFIG2, 16, 16),
    "IRQ_STATUS_SEQ_DONE": RegField(ChipReg.IRQ_STATUS, 0, 1),
    "IRQ_STATUS_CMD": RegField(ChipReg.IRQ_STATUS, 1, 1),
    "IRQ_STATUS_COP": RegField(ChipReg.IRQ_STATUS, 2, 1),
    "IRQ_ENABLE_SEQ_DONE": RegField(ChipReg.IRQ_ENABLE, 0, 1),
    "IRQ_ENABLE_CMD": RegField(ChipReg.IRQ_ENABLE, 1, 1),
    "IRQ_ENABLE_COP": RegField(ChipReg.IRQ_ENABLE, 2, 1),
    "PERF_CTRL_CLEAR": RegField(ChipReg.PERF_CTRL, 0, 1),
    "CYCLES_LO": RegField(ChipReg.CYCLES_LO, 0, 32),
    "CYCLES_HI": RegField(ChipReg.CYCLES_HI, 0, 32),
    "MACS_LO": RegField(ChipReg.MACS_LO, 0, 32),
    "MACS_HI": RegField(ChipReg.MACS_HI, 0, 32),
    "INSTRS": RegField(ChipReg.INSTRS, 0, 32),
    "READ_BEATS": RegField(ChipReg.READ_BEATS, 0, 32),
    "WRITE_BEATS": RegField(ChipReg.WRITE_BEATS, 0, 32),
    "STREAM_BEATS": RegField(ChipReg.STREAM_BEATS, 0, 32),
    "BUSY0": RegField(ChipReg.BUSY0, 0, 32),
    "BUSY1": RegField(ChipReg.BUSY1, 0, 32),
    "BUSY2": RegField(ChipReg.BUSY2, 0, 32),
    "BUSY3": RegField(ChipReg.BUSY3, 0, 32),
    "BUSY4": RegField(ChipReg.BUSY4, 0, 32),
    "BUSY5": RegField(ChipReg.BUSY5, 0, 32),
    "STALL0": RegField(ChipReg.STALL0, 0, 32),
    "STALL1": RegField(ChipReg.STALL1, 0, 32),
    "STALL2": RegField(ChipReg.STALL2, 0, 32),
    "STALL3": RegField(ChipReg.STALL3, 0, 32),
    "STALL4": RegField(ChipReg.STALL4, 0, 32),
    "STALL5": RegField(ChipReg.STALL5, 0, 32),
    "MEM_TIMEOUT_CYCLES": RegField(ChipReg.MEM_TIMEOUT, 0, 24),
    "REGION0_BASE_PAGE": RegField(ChipReg.REGION0_BASE, 12, 20),
    "REGION0_LIMIT_PAGE": RegField(ChipReg.REGION0_LIMIT, 12, 20),
    "REGION0_CTRL_READ": RegField(ChipReg.REGION0_CTRL, 0, 1),
    "REGION0_CTRL_WRITE": RegField(ChipReg.REGION0_CTRL, 1, 1),
    "REGION0_CTRL_LOCK": RegField(ChipReg.REGION0_CTRL, 2, 1),
    "REGION1_BASE_PAGE": RegField(ChipReg.REGION1_BASE, 12, 20),
    "REGION1_LIMIT_PAGE": RegField(ChipReg.REGION1_LIMIT, 12, 20),
    "REGION1_CTRL_READ": RegField(ChipReg.REGION1_CTRL, 0, 1),
    "REGION1_CTRL_WRITE": RegField(ChipReg.REGION1_CTRL, 1, 1),
    "REGION1_CTRL_LOCK": RegField(ChipReg.REGION1_CTRL, 2, 1),
    "REGION2_BASE_PAGE": RegField(ChipReg.REGION2_BASE, 12, 20),
    "REGION2_LIMIT_PAGE": RegField(ChipReg.REGION2_LIMIT, 12, 20),
    "REGION2_CTRL_READ": RegField(ChipReg.REGION2_CTRL, 0, 1),
    "REGION2_CTRL_WRITE": RegField(ChipReg.REGION2_CTRL, 1, 1),
    "REGION2_CTRL_LOCK": RegField(ChipReg.REGION2_CTRL, 2, 1),
    "REGION3_BASE_PAGE": RegField(ChipReg.REGION3_BASE, 12, 20),
    "REGION3_LIMIT_PAGE": RegField(ChipReg.REGION3_LIMIT, 12, 20),
    "REGION3_CTRL_READ": RegField(ChipReg.REGION3_CTRL, 0, 1),
    "REGION3_CTRL_WRITE": RegField(ChipReg.REGION3_CTRL, 1, 1),
    "REGION3_CTRL_LOCK": RegField(ChipReg.REGION3_CTRL, 2, 1),
    "REGION4_BASE_PAGE": RegField(ChipReg.REGION4_BASE, 12, 20),
    "REGION4_LIMIT_PAGE": RegField(ChipReg.REGION4_LIMIT, 12, 20),
    "REGION4_CTRL_READ": RegField(ChipReg.REGION4_CTRL, 0, 1),
    "REGION4_CTRL_WRITE": RegField(ChipReg.REGION4_CTRL, 1, 1),
    "REGION4_CTRL_LOCK": RegField(ChipReg.REGION4_CTRL, 2, 1),
    "REGION5_BASE_PAGE": RegField(ChipReg.REGION5_BASE, 12, 20),
    "REGION5_LIMIT_PAGE": RegField(ChipReg.REGION5_LIMIT, 12, 20),
    "REGION5_CTRL_READ": RegField(ChipReg.REGION5_CTRL, 0, 1),
    "REGION5_CTRL_WRITE": RegField(ChipReg.REGION5_CTRL, 1, 1),
    "REGION5_CTRL_LOCK": RegField(ChipReg.REGION5_CTRL, 2, 1),
    "REGION6_BASE_PAGE": RegField(ChipReg.REGION6_BASE, 12, 20),
    "REGION6_LIMIT_PAGE": RegField(ChipReg.REGION6_LIMIT, 12, 20),
    "REGION6_CTRL_READ": RegField(ChipReg.REGION6_CTRL, 0, 1),
    "REGION6_CTRL_WRITE": RegField(ChipReg.REGION6_CTRL, 1, 1),
    "REGION6_CTRL_LOCK": RegField(ChipReg.REGION6_CTRL, 2, 1),
    "REGION7_BASE_PAGE": RegField(ChipReg.REGION7_BASE, 12, 20),
    "REGION7_LIMIT_PAGE": RegField(ChipReg.REGION7_LIMIT, 12, 20),
    "REGION7_CTRL_READ": RegField(ChipReg.REGION7_CTRL, 0, 1),
    "REGION7_CTRL_WRITE": RegField(ChipReg.REGION7_CTRL, 1, 1),
    "REGION7_CTRL_LOCK": RegField(ChipReg.REGION7_CTRL, 2, 1),
}

# Values that never change.
COP_CONFIG_PRESENT_VALUE = 0x1
COP_CONFIG_VERSION_VALUE = 0x1
CHIP_ID_VALUE = 0x41525354
CHIP_VERSION_REG_MAP_VALUE = 0x2


class MachineStart(TypedDict, total=False):
    """The members of StartState that are loaded into the machine's registers."""

    pos: int
    token: int
    window: int
    loop_left: int
    eos: int
    kv_base: int
    kv_layer: int
    kv_head: int
    kv_voff: int
    kv_cap: int
    kv_in_memory: int
    bases: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class StartState(StartMembers):
    """What the host has written before a start; without arguments as after a reset.

    Attributes:
        ucode_base: UCODE_BASE. Memory address of the program.
        ucode_len: UCODE_LEN. Length of the program in 16-byte words.
        stream_base: DDR_BASE_WGT. Memory address of the parameter stream.
        stream_len: STREAM_LEN. Length of the parameter stream in bytes.
        pos: POS. Initial POS: position of row 0.
        token: TOKEN. Initial TOKEN: last token id.
        window: WINDOW. Initial WINDOW: sliding window in tokens, 0 = none.
        loop_left: LOOPLEFT. Initial LOOPLEFT: turns that LOOP may take.
        eos: EOS. Initial EOS: end token.
        kv_base: DDR_BASE_KV. Initial KVBASE: memory address or SRAM byte address of the K/V
            cache, bits 31:8.
        kv_layer: KVLAYER. Initial KVLAYER: bytes from one layer of the K/V cache to the next,
            bits 31:8.
        kv_head: KVHEAD. Initial KVHEAD: bytes from one head of the K/V cache to the next, bits
            31:8.
        kv_voff: KVVOFF. Initial KVVOFF: bytes from the K part of a layer to its V part, bits
            31:8.
        kv_cap: KVCAP. Initial KVCAP: capacity of the K/V cache in positions.
        kv_in_memory: KV_CTRL. Place of the K/V cache. Read when a program starts.
        bases: DDR_BASE_ACT, DDR_BASE_OUT, BASE2, BASE3, BASE4, BASE5, BASE6, BASE7, in this
            order.
    """

    ucode_base: int = 0
    ucode_len: int = 0
    stream_base: int = 0
    stream_len: int = 0
    _: KW_ONLY
    pos: int = 0
    token: int = 0
    window: int = 0
    loop_left: int = 0
    eos: int = 0xFFFFFFFF
    kv_base: int = 0
    kv_layer: int = 0
    kv_head: int = 0
    kv_voff: int = 0
    kv_cap: int = 0
    kv_in_memory: int = 1
    bases: tuple[int, ...] = (0, 0, 0, 0, 0, 0, 0, 0)

    REGISTERS: ClassVar[tuple[StartRegister, ...]] = (
        StartRegister("ucode_base", None, SeqReg.UCODE_BASE, 0xFFFFFFF0),
        StartRegister("ucode_len", None, SeqReg.UCODE_LEN, 0xFFFFFFFF),
        StartRegister("stream_base", None, SeqReg.DDR_BASE_WGT, 0xFFFFFFC0),
        StartRegister("stream_len", None, SeqReg.STREAM_LEN, 0xFFFFFFC0),
        StartRegister("pos", None, SeqReg.POS, 0xFFFFFFFF),
        StartRegister("token", None, SeqReg.TOKEN, 0xFFFFFFFF),
        StartRegister("window", None, SeqReg.WINDOW, 0xFFFFFFFF),
        StartRegister("loop_left", None, SeqReg.LOOPLEFT, 0xFFFFFFFF),
        StartRegister("eos", None, SeqReg.EOS, 0xFFFFFFFF),
        StartRegister("kv_base", None, SeqReg.DDR_BASE_KV, 0xFFFFFF00),
        StartRegister("kv_layer", None, SeqReg.KVLAYER, 0xFFFFFF00),
        StartRegister("kv_head", None, SeqReg.KVHEAD, 0xFFFFFF00),
        StartRegister("kv_voff", None, SeqReg.KVVOFF, 0xFFFFFF00),
        StartRegister("kv_cap", None, SeqReg.KVCAP, 0xFFFFFFFF),
        StartRegister("kv_in_memory", None, SeqReg.KV_CTRL, 0x00000001),
        StartRegister("bases", 0, SeqReg.DDR_BASE_ACT, 0xFFFFFFFF),
        StartRegister("bases", 1, SeqReg.DDR_BASE_OUT, 0xFFFFFFFF),
        StartRegister("bases", 2, SeqReg.BASE2, 0xFFFFFFFF),
        StartRegister("bases", 3, SeqReg.BASE3, 0xFFFFFFFF),
        StartRegister("bases", 4, SeqReg.BASE4, 0xFFFFFFFF),
        StartRegister("bases", 5, SeqReg.BASE5, 0xFFFFFFFF),
        StartRegister("bases", 6, SeqReg.BASE6, 0xFFFFFFFF),
        StartRegister("bases", 7, SeqReg.BASE7, 0xFFFFFFFF),
    )


class RingStatus(IntEnum):
    """How a descriptor, and with it the ring, ends: DESC_STATUS[7:0]."""

    NONE = 0x00
    """running, or cleared"""
    EMPTY = 0x01
    """started with an empty ring: DESC_HEAD = DESC_TAIL"""
    DONE = 0x02
    """completed, and with it the last entry"""
    BASE = 0x04
    """DESC_BASE is not a multiple of 4"""
    OPERATION = 0x06
    """extension, operation or program failed"""
    TIMEOUT = 0x0C
    """the memory was silent for longer than DESC_TIMEOUT"""
    FETCH = 0x14
    """fetching the descriptor met an error"""
    STREAM_CONFIG = 0x24
    """stream configuration"""
    STREAM_READ = 0x34
    """reading the stream met an error"""
    OWNER = 0x44
    """no owner bit"""
    WRITEBACK_CONFIG = 0x84
    """writeback configuration"""
    WRITEBACK_WRITE = 0x94
    """writing the result or the completion record met an error"""


RING_STATUS_TEXT = {
    RingStatus.NONE: "running, or cleared",
    RingStatus.EMPTY: "started with an empty ring: DESC_HEAD = DESC_TAIL",
    RingStatus.DONE: "completed, and with it the last entry",
    RingStatus.BASE: "DESC_BASE is not a multiple of 4",
    RingStatus.OPERATION: "extension, operation or program failed",
    RingStatus.TIMEOUT: "the memory was silent for longer than DESC_TIMEOUT",
    RingStatus.FETCH: "fetching the descriptor met an error",
    RingStatus.STREAM_CONFIG: "stream configuration",
    RingStatus.STREAM_READ: "reading the stream met an error",
    RingStatus.OWNER: "no owner bit",
    RingStatus.WRITEBACK_CONFIG: "writeback configuration",
    RingStatus.WRITEBACK_WRITE: "writing the result or the completion record met an error",
}

DESC_ENTRY = WordLayout(
    "entry",
    0,
    4,
    {
        "opcode": RegField(0, 0, 4),
        "extended": RegField(0, 4, 1),
        "launch": RegField(0, 5, 1),
        "stream": RegField(0, 8, 1),
        "offset": RegField(0, 16, 8),
        "bytes": RegField(0, 24, 6),
        "writeback": RegField(0, 30, 1),
        "owner": RegField(0, 31, 1),
        "a": RegField(1, 0, 32),
        "b": RegField(2, 0, 32),
        "acc": RegField(3, 0, 32),
    },
)
"""The first ring entry of a descriptor."""

DESC_EXTENSION = WordLayout(
    "extension",
    4,
    4,
    {
        "target": RegField(4, 0, 32),
        "cfg": RegField(5, 0, 24),
        "base": RegField(6, 0, 24),
        "stride": RegField(7, 0, 24),
        "tag": RegField(7, 24, 8),
    },
)
"""The second ring entry of an operation; of a program, the tag."""

DESC_PROGRAM = WordLayout(
    "program",
    1,
    6,
    {
        "token": RegField(1, 0, 32),
        "base0": RegField(2, 0, 32),
        "base1": RegField(3, 0, 32),
        "ucode_base": RegField(4, 0, 32),
        "ucode_len": RegField(5, 0, 32),
        "pos": RegField(6, 0, 32),
    },
)
"""What a descriptor says of the program that it launches."""

DESC_RECORD = WordLayout(
    "record",
    0,
    4,
    {
        "code": RegField(0, 0, 8),
        "index": RegField(0, 8, 3),
        "phase": RegField(0, 15, 1),
        "tag": RegField(0, 16, 8),
        "opcode": RegField(0, 24, 4),
        "launch": RegField(0, 28, 1),
        "result": RegField(1, 0, 32),
        "result_hi": RegField(2, 0, 32),
        "cycles": RegField(3, 0, 32),
    },
)
"""A completion record."""
