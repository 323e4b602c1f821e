# SPDX-License-Identifier: Apache-2.0
"""Fills the examples of docs/command-port.md: `python -m dev.command_page [--check]`.

Each example is a function of tb.command.driver_examples. The page gets its body and what it does on
the bus of the reference model, so that neither can differ from what the driver really does.
"""

from __future__ import annotations

import asyncio
import inspect
import re
import struct
import sys
import textwrap
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial

import numpy as np

from dev import marked_page
from golden.command import ModelBus
from npu.driver.bus import Bus
from npu.driver.command import CommandPort
from spec.paths import ROOT
from spec.regs import CHIP_BASE, CMD_BASE, SEQ_BASE, ChipReg, CmdReg, SeqReg
from tb.command.driver_examples import BARE, EXAMPLES

PAGE = ROOT / "docs" / "command-port.md"
MEMORY = 1 << 16


@dataclass
class ListingBus:
    """Writes down what reaches a chip, a line for each access.

    Attributes:
        chip: what answers.
        lines: the accesses so far.
    """

    chip: Bus
    lines: list[str] = field(default_factory=list)

    async def read32(self, address: int) -> int:
        """Return a register."""
        value = await self.chip.read32(address)
        self.lines.append(f"read   {address:#05x} {_name(address):<14} {value:#010x}")
        return value

    async def write32(self, address: int, value: int) -> None:
        """Write a register."""
        self.lines.append(f"write  {address:#05x} {_name(address):<14} {value:#010x}")
        await self.chip.write32(address, value)

    async def wait_interrupt(self) -> None:
        """Wait for the interrupt line."""
        await self.chip.wait_interrupt()
        self.lines.append("wait for the interrupt")

    def read_memory(self, address: int, size: int) -> bytes:
        """Return bytes of memory."""
        data = self.chip.read_memory(address, size)
        self._memory("from", address, data)
        return data

    def write_memory(self, address: int, data: bytes) -> None:
        """Put bytes into memory."""
        self._memory("to  ", address, data)
        self.chip.write_memory(address, data)

    def _memory(self, what: str, address: int, data: bytes) -> None:
        for i in range(0, len(data), 16):
            part = data[i : i + 16]
            words = struct.unpack(f"<{-(-len(part) // 4)}I", part + bytes(-len(part) % 4))
            text = " ".join(f"{word:08x}" for word in words)
            self.lines.append(f"memory {what} {address + i:#06x}: {text}")


def _name(address: int) -> str:
    """Return the name of a register."""
    if address >= CHIP_BASE:
        return ChipReg(address - CHIP_BASE).name
    if address >= SEQ_BASE:
        return SeqReg(address - SEQ_BASE).name
    return CmdReg(address - CMD_BASE).name


UNLISTED = ("product", "scaled")
"""Examples whose accesses would fill pages."""


def _body(function: Callable[..., object]) -> str:
    """Return the body of an example without its docstring; what it returns is printed."""
    text = inspect.getsource(function)
    text = textwrap.dedent(text[text.index('"""\n') + 4 :])
    return re.sub(r"^return (.*)$", r"print(\1)", text, flags=re.M)


async def _example(name: str) -> str:
    """Run an example on a fresh chip; return its part of the page."""
    bus = ListingBus(ModelBus(np.zeros(MEMORY, np.uint8)))
    if name in BARE:
        body = _body(BARE[name])
        result = await BARE[name](bus)
    else:
        body = _body(EXAMPLES[name])
        port = await CommandPort.connect(bus)
        bus.lines.clear()
        result = await EXAMPLES[name](port)
    lines = [] if name in UNLISTED else [*bus.lines, ""]
    lines.append(" ".join(map(str, result if isinstance(result, tuple) else (result,))))
    return "\n".join(["```python", f"{body}```", "", "```text", *lines, "```", ""])


def filled(page: str) -> str:
    """Return the page with all examples as they are now.

    Raises:
        ValueError: the page lacks the markers of an example, or has unknown ones.
    """
    made = {name: partial(_text, name) for name in (*BARE, *EXAMPLES)}
    return marked_page.fill(page, PAGE, made)


def _text(name: str) -> str:
    return asyncio.run(_example(name))


def main(argv: list[str] | None = None) -> int:
    """Fill the page; with --check only compare it."""
    return marked_page.run(argv, "dev.command_page", __doc__, PAGE, filled)


if __name__ == "__main__":
    sys.exit(main())
