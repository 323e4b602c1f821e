# SPDX-License-Identifier: Apache-2.0
"""Generated from the SystemRDL files of npu/regs by `python -m npu.regs.generate`; do not edit."""

from enum import IntEnum
from typing import NamedTuple


class RegField(NamedTuple):
    """Some bits of a register."""

    register: int
    lsb: int
    width: int

    @property
    def mask(self) -> int:
        """Return the bits of the field, in place."""
        return ((1 << self.width) - 1) << self.lsb

    def get(self, value: int) -> int:
        """Return the content of the field in a register value."""
        return (value & self.mask) >> self.lsb

    def put(self, content: int) -> int:
        """Return `content` moved into place; bits that do not fit are dropped."""
        return (content << self.lsb) & self.mask


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
    "CONFIG1_FIFO_BEATS": RegField(ChipReg.CONFIG1, 16, 16),
    "CONFIG2_AXI_BYTES": RegField(ChipReg.CONFIG2, 0, 8),
    "CONFIG2_NORM_MAX": RegField(ChipReg.CONFIG2, 16, 16),
    "IRQ_STATUS_SEQ_DONE": RegField(ChipReg.IRQ_STATUS, 0, 1),
    "IRQ_ENABLE_SEQ_DONE": RegField(ChipReg.IRQ_ENABLE, 0, 1),
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
CHIP_ID_VALUE = 0x41525354
CHIP_VERSION_REG_MAP_VALUE = 0x1
