# SPDX-License-Identifier: Apache-2.0
"""The smoke program: what benches that know nothing of the project run on a chip.

It loads a few words, takes their RELU, stores them, and interrupts.
"""

from __future__ import annotations

from npu.asm import assemble
from spec.configurations import ChipParameters
from spec.regs import CHIP_BASE, CHIP_FIELDS, SEQ_BASE, ChipReg, SeqReg
from spec.regs.generated import CHIP_ID_VALUE

WORD = 16
"""Bytes of a word of memory."""
ROWS = 4
"""Words that go through the chip."""
PROGRAM = f"""
    DMA_LOAD dst=0 off=0 M=1 N={WORD * ROWS} b=0
    BARRIER ld
    VEC dst=0x400 src0=0 M=1 N={WORD * ROWS} op=relu
    BARRIER vec
    DMA_STORE dst=0x400 off=0 M=1 N={WORD * ROWS} b=1
    END
"""


def words(chip: ChipParameters) -> dict[str, object]:
    """Return what a template says of the program: its words, sizes, registers and their values."""
    image = assemble(PROGRAM, limits=chip.limits).image()
    program = [int.from_bytes(image[i : i + WORD], "little") for i in range(0, len(image), WORD)]
    config0 = {"ARRAY_DIM": chip.array_dim, "SRAM_KIB": chip.limits.sram_bytes >> 10}
    place = {
        "id": CHIP_BASE + ChipReg.ID,
        "config0": CHIP_BASE + ChipReg.CONFIG0,
        "irq_enable": CHIP_BASE + ChipReg.IRQ_ENABLE,
        "irq_status": CHIP_BASE + ChipReg.IRQ_STATUS,
        "ctrl": SEQ_BASE + SeqReg.CTRL,
        "status": SEQ_BASE + SeqReg.STATUS,
        "ucode_base": SEQ_BASE + SeqReg.UCODE_BASE,
        "ucode_len": SEQ_BASE + SeqReg.UCODE_LEN,
        "base0": SEQ_BASE + SeqReg.DDR_BASE_ACT,
        "base1": SEQ_BASE + SeqReg.DDR_BASE_OUT,
    }
    value = {
        "id": CHIP_ID_VALUE,
        "config0": sum(CHIP_FIELDS[f"CONFIG0_{name}"].put(each) for name, each in config0.items()),
    }
    return {"program": program, "rows": ROWS, "place": place, "value": value}
