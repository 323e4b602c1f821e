# SPDX-License-Identifier: Apache-2.0
"""Fills the examples of docs/command-port.md: `python -m tb.command_page [--check]`.

Each example is a function below. The page gets its body and what it does on the bus of the
reference model, so that neither can differ from what the driver really does.
"""

from __future__ import annotations

import argparse
import asyncio
import inspect
import re
import struct
import sys
import textwrap
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field

import numpy as np

from golden.command import ModelBus
from npu.asm import assemble
from npu.driver.bus import Bus
from npu.driver.command import (
    Command,
    CommandBuffer,
    CommandPort,
    CompletionRing,
    Gemm,
    Program,
    Stream,
    Vrelu,
    scalars,
)
from npu.driver.command.matmul import matmul
from npu.regs import CHIP_BASE, CMD_BASE, CMD_FIELDS, SEQ_BASE, ChipReg, CmdOp, CmdReg, SeqReg
from tb.paths import ROOT

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


async def connect(bus: Bus) -> object:
    """The first accesses of a session."""
    port = await CommandPort.connect(bus)
    return port.scratch_bytes


async def registers(bus: Bus) -> object:
    """A scalar operation without the driver."""
    await bus.write32(CMD_BASE + CmdReg.OPCODE, CmdOp.DOT4_S8)
    await bus.write32(CMD_BASE + CmdReg.OP_A, 0xFC03_FE01)  # -4, 3, -2, 1 from the top
    await bus.write32(CMD_BASE + CmdReg.OP_B, 0x0807_0605)  # 8, 7, 6, 5
    await bus.write32(CMD_BASE + CmdReg.ACC, 100)
    await bus.write32(CMD_BASE + CmdReg.CMD_PARAM, 0)
    await bus.write32(CMD_BASE + CmdReg.CTRL_STATUS, CMD_FIELDS["CTRL_STATUS_START"].mask)
    await bus.wait_interrupt()
    status = await bus.read32(CMD_BASE + CmdReg.CTRL_STATUS)
    assert not CMD_FIELDS["CTRL_STATUS_ERROR"].get(status)
    return await bus.read32(CMD_BASE + CmdReg.RESULT)


async def scalar(port: CommandPort) -> object:
    """The same by the driver."""
    return await port.dot4_s8([1, -2, 3, -4], [5, 6, 7, 8], acc=100)


async def tile(port: CommandPort) -> object:
    """A GEMM in the scratchpad."""
    a = np.array([[1, 2, 3], [-4, -5, -6]], np.int8)
    b = np.array([[1, 10], [2, 20], [3, 30]], np.int8)
    await port.write_scratch(0, a.tobytes() + b.tobytes())
    tile = await port.gemm_s8((2, 2, 3))
    data = await port.read_scratch(tile.c, tile.output_bytes)
    return np.frombuffer(data, "<i4").reshape(2, 2).tolist()


async def ring(port: CommandPort) -> object:
    """Three descriptors."""
    port.bus.write_memory(0x2000, bytes([1, 2, 3, 256 - 4, 256 - 5, 256 - 6]) + bytes(2))
    buffer = await CommandBuffer.open(port, 0x1000)
    buffer.add(Command(scalars.mul_lo(100_000, 100_000), writeback=0x3000))
    vrelu = Vrelu(length=8, source=0, destination=16)
    buffer.add(Command(vrelu, Stream(0x2000, offset=0, size=8), writeback=0x3010))
    # A is bytes 16 and 17, B 18 and 19: what VRELU has left there.
    gemm = Gemm(CmdOp.GEMM_S8, 1, 1, 2, a=16, b=18, c=32, stride_a=2, stride_b=1, stride_c=4)
    buffer.add(Command(gemm, writeback=0x3020))
    await buffer.submit()
    product, positive, dot = await buffer.wait()
    return product.value, positive.data.hex(), dot.words


async def records(port: CommandPort) -> object:
    """A completion ring."""
    completions = await CompletionRing.enable(port, 0x4000, log2_size=2)
    buffer = await CommandBuffer.open(port, 0x1000)
    buffer.add(Command(scalars.sub(7, 9), tag=41))
    buffer.add(Command(scalars.exp2_neg(-3), tag=42))
    await buffer.submit()
    await buffer.wait()
    return [(it.tag, it.completed, f"{it.result:#x}") for it in await completions.take()]


async def queue(port: CommandPort) -> object:
    """Two programs."""
    copy = assemble(
        """
        DMA_LOAD dst=0 off=0 M=1 N=16 b=0
        BARRIER ld
        DMA_STORE dst=0 off=0 M=1 N=16 b=1
        END
        """
    )
    port.bus.write_memory(0x8000, copy.image())
    port.bus.write_memory(0x9000, bytes(range(32)))
    buffer = await CommandBuffer.open(port, 0x1000)
    buffer.add(Program(0x8000, length=4, base0=0x9000, base1=0xA010, tag=1))
    buffer.add(Program(0x8000, length=4, base0=0x9010, base1=0xA000, tag=2))
    await buffer.submit(per_entry=True)
    ended: list[int | None] = []
    while len(ended) < 2:
        ended += [result.descriptor.tag for result in await buffer.wait_entry()]
    await buffer.wait()
    return ended, port.bus.read_memory(0xA000, 32).hex()


async def product(port: CommandPort) -> object:
    """A matrix product."""
    rng = np.random.default_rng(1)
    a, b = rng.integers(-128, 128, (5, 40)), rng.integers(-128, 128, (40, 6))
    by_register = await matmul(port, a, b, "INT8")
    by_descriptor = await matmul(port, a, b, "INT8", "descriptor", arena=(0x1000, 0x800))
    assert (by_register.values == a @ b).all()
    assert (by_descriptor.values == a @ b).all()
    counters = await port.counters()
    return counters.ops, counters.macs, by_descriptor.operations, by_descriptor.macs


EXAMPLES: dict[str, Callable[[CommandPort], Awaitable[object]]] = {
    "scalar": scalar,
    "tile": tile,
    "ring": ring,
    "records": records,
    "queue": queue,
    "product": product,
}
BARE: dict[str, Callable[[Bus], Awaitable[object]]] = {"connect": connect, "registers": registers}
"""Examples without a port."""
UNLISTED = ("product",)
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
    pattern = r"^(<!-- begin (\w+) -->\n).*?^(<!-- end \2 -->\n)"
    names = [*BARE, *EXAMPLES]
    found = [match[2] for match in re.finditer(pattern, page, flags=re.M | re.S)]
    if sorted(found) != sorted(names):
        raise ValueError(f"{PAGE.name}: given examples {found}, allowed each of {names} once")

    def replaced(match: re.Match[str]) -> str:
        return f"{match[1]}{asyncio.run(_example(match[2]))}{match[3]}"

    return re.sub(pattern, replaced, page, flags=re.M | re.S)


def main(argv: list[str] | None = None) -> int:
    """Fill the page; with --check only compare it."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--check", action="store_true", help="fail if the page is stale")
    args = parser.parse_args(argv)
    old = PAGE.read_text(encoding="utf-8")
    new = filled(old)
    if args.check:
        if new != old:
            print(
                f"{PAGE.relative_to(ROOT)} is stale: run python -m tb.command_page", file=sys.stderr
            )
        return int(new != old)
    PAGE.write_text(new, encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
