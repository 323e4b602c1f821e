# SPDX-License-Identifier: Apache-2.0
"""Shared by the tests of the coprocessor's model: a small machine, and words by hand."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt

from golden.coprocessor import ArrayMemory, CopFault, CopResult, Coprocessor

MEMORY_BYTES = 1 << 16
INT, FLOAT = 0x0B, 0x2B
CODES = {
    **{
        name: (INT, 0, funct7)
        for funct7, name in enumerate(("MACC", "VMAC", "VEXP", "VRSQRT", "VMUL", "VREDUCE", "VMAX"))
    },
    **{
        name: (INT, funct3, 0)
        for funct3, name in enumerate(
            ("RELU", "QMUL", "CLAMP", "GELU", "RSTACC", "LDVEC", "STVEC"), start=1
        )
    },
    **{
        name: (FLOAT, 0, funct7)
        for funct7, name in enumerate(
            (
                *("FMACC", "FVMAC", "FVEXP", "FVRSQRT", "FVMUL", "FVREDUCE", "FVMAX"),
                *("FVADD", "FVSUB", "FVRELU", "FVGELU", "FVDIV", "FVSUB_SCALAR"),
            )
        )
    },
    "FRSQRT": (FLOAT, 0, 19),
    "FRELU": (FLOAT, 1, 0),
    "FGELU": (FLOAT, 4, 0),
    "FRSTACC": (FLOAT, 5, 0),
}
"""(opcode, funct3, funct7) of every instruction, as the specification lists them."""
COUNT_IN_RS2 = ("VREDUCE", "VMAX", "FVREDUCE", "FVMAX")
COUNT_IN_RD = (
    *("VMAC", "VEXP", "VMUL", "FVMAC", "FVEXP", "FVMUL", "FVADD", "FVSUB"),
    *("FVRELU", "FVGELU", "FVDIV", "FVSUB_SCALAR"),
)
WRITERS = tuple(name for name in COUNT_IN_RD if name not in ("VMAC", "FVMAC"))
PAIRS = ("VMAC", "FVMAC", "FVADD", "FVSUB")
"""Instructions that read arrays at rs1 and rs2."""


def word(name: str, rd: int = 5, rs1: int = 6, rs2: int = 7, offset: int = 0) -> int:
    """Return the word of an instruction; `offset` is that of LDVEC and STVEC."""
    opcode, funct3, funct7 = CODES[name]
    base = opcode | funct3 << 12 | rs1 << 15
    if name == "LDVEC":
        return base | rd << 7 | (offset & 0xFFF) << 20
    if name == "STVEC":
        return base | (offset & 31) << 7 | rs2 << 20 | (offset >> 5 & 0x7F) << 25
    return base | rd << 7 | rs2 << 20 | funct7 << 25


def element_bytes(name: str) -> int:
    """Return the bytes of an element of a counted instruction."""
    return 1 if name in ("VMAC", "VMUL") else 4


@dataclass
class CopMachine:
    """A coprocessor with a memory of its own."""

    memory: ArrayMemory = field(
        default_factory=lambda: ArrayMemory(np.zeros(MEMORY_BYTES, np.uint8))
    )

    def __post_init__(self) -> None:
        """Attach the coprocessor."""
        self.cop = Coprocessor(self.memory)

    def put(self, address: int, values: npt.ArrayLike, dtype: npt.DTypeLike) -> None:
        """Place an array, little-endian."""
        raw = np.asarray(values).astype(np.dtype(dtype).newbyteorder("<")).tobytes()
        self.memory.data[address : address + len(raw)] = np.frombuffer(raw, np.uint8)

    def get(self, address: int, count: int, dtype: npt.DTypeLike) -> list[Any]:
        """Return an array as a list."""
        kind = np.dtype(dtype).newbyteorder("<")
        raw = self.memory.data[address : address + count * kind.itemsize].tobytes()
        found: list[Any] = np.frombuffer(raw, kind).tolist()
        return found

    def run(self, name: str, rs1: int = 0, rs2: int = 0, rs3: int = 0, **fields: int) -> CopResult:
        """Execute one instruction on the contents of its registers, which may be signed.

        Fields of the word are `rd`, `offset`, and `vreg` for the rs2 of STVEC.
        """
        if "vreg" in fields:
            fields["rs2"] = fields.pop("vreg")
        rs1, rs2, rs3 = (value & 0xFFFF_FFFF for value in (rs1, rs2, rs3))
        return self.cop.execute(word(name, **fields), rs1, rs2, rs3)

    def vector(self, name: str, rs1: int, rs2: int, count: int) -> CopResult:
        """Execute a counted instruction; rs2 is no address if the count is there."""
        if name in COUNT_IN_RS2:
            return self.run(name, rs1, count)
        return self.run(name, rs1, rs2, count)

    def snapshot(self) -> tuple[Any, ...]:
        """Return all that an instruction can change but the counter and the fault."""
        state = self.cop.state
        return state.acc, state.facc, tuple(state.vreg), self.memory.data.tobytes()

    @property
    def fault(self) -> CopFault:
        """The standing fault."""
        assert self.cop.fault is not None
        return self.cop.fault
