# SPDX-License-Identifier: Apache-2.0
"""Reads coprocessor.toml into plain objects for the generators, and checks it for consistency."""

import tomllib
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

SOURCE = Path(__file__).with_name("coprocessor.toml")
RS1 = ("", "value", "float", "source", "destination")
RS2 = ("", "value", "float", "source", "destination", "both", "count", "vreg")
RD = ("", "result", "float", "count", "vreg")


@dataclass(frozen=True)
class CopSource:
    """One instruction as coprocessor.toml describes it; `funct7` None where it is ignored."""

    name: str
    opcode: str
    funct3: int
    does: str
    cycles: str
    funct7: int | None = None
    format: str = "R"
    rs1: str = ""
    rs2: str = ""
    rd: str = ""
    element: int = 0

    @property
    def reads_rs1(self) -> bool:
        """Whether the host delivers rs1."""
        return self.rs1 != ""

    @property
    def reads_rs2(self) -> bool:
        """Whether the host delivers rs2."""
        return self.rs2 not in ("", "vreg")

    @property
    def reads_rd(self) -> bool:
        """Whether the host delivers x[rd], as the third source."""
        return self.rd == "count"

    @property
    def writes_rd(self) -> bool:
        """Whether the instruction has a result."""
        return self.rd in ("result", "float")

    @property
    def floats(self) -> tuple[bool, bool, bool]:
        """Which of rs1, rs2, rd is an f register on a host that has them."""
        return self.rs1 == "float", self.rs2 == "float", self.rd == "float"

    @property
    def counted(self) -> bool:
        """Whether a register says how many elements there are."""
        return "count" in (self.rs2, self.rd)

    @property
    def writes_memory(self) -> bool:
        """Whether elements are written, at rs2 (STVEC: rs1)."""
        return "destination" in (self.rs1, self.rs2) or self.rs2 == "both"

    @property
    def reads_a(self) -> bool:
        """Whether elements are read at rs1."""
        return self.rs1 == "source"

    @property
    def reads_b(self) -> bool:
        """Whether elements are read at rs2."""
        return self.rs2 in ("source", "both")


@dataclass(frozen=True)
class CopIsa:
    """The whole of coprocessor.toml."""

    opcodes: dict[str, int]
    instructions: tuple[CopSource, ...]
    numbers: dict[str, int] = field(default_factory=dict)


def parse(data: dict[str, Any]) -> CopIsa:
    """Return what coprocessor.toml says.

    Raises:
        ValueError: it contradicts itself; the message names instruction and value.
    """
    instructions = tuple(CopSource(**item) for item in data["instruction"])
    codes: dict[tuple[str, int, int | None], str] = {}
    for item in instructions:
        for name, given, allowed in (
            ("opcode", item.opcode, tuple(data["opcode"])),
            ("format", item.format, ("R", "I", "S")),
            ("rs1", item.rs1, RS1),
            ("rs2", item.rs2, RS2),
            ("rd", item.rd, RD),
        ):
            if given not in allowed:
                raise ValueError(f"{item.name}: {name} is {given!r}, allowed are {allowed}")
        if (item.funct7 is None) == (item.funct3 == 0):
            raise ValueError(f"{item.name}: funct7 tells instructions of funct3 0 apart, no others")
        code = (item.opcode, item.funct3, item.funct7)
        if code in codes:
            raise ValueError(f"{item.name} has the code of {codes[code]}")
        codes[code] = item.name
    numbers = {item.name: number for number, item in enumerate(instructions)}
    if len(numbers) != len(instructions):
        raise ValueError("an instruction is there twice")
    return CopIsa(data["opcode"], instructions, numbers)


def load(path: Path = SOURCE) -> CopIsa:
    """Return the contents of `path`; errors as `parse`."""
    return parse(tomllib.loads(path.read_text(encoding="utf-8")))
