# SPDX-License-Identifier: Apache-2.0
"""Sessions on the command port by its driver: docs/command-port.md shows them, tests run them.

Each runs on any `Bus`, the chip's or the model's, and returns what it has found.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable

import numpy as np

from npu.asm import assemble
from npu.driver.bus import Bus
from npu.driver.command import (
    Command,
    CommandBuffer,
    CommandPort,
    CompletionRing,
    Gemm,
    ProgramDescriptor,
    StagedStream,
    Vrelu,
    scalars,
)
from npu.driver.command.group_matmul import group_matmul
from npu.driver.command.matmul import matmul
from npu.driver.command.mx_matmul import Blocks, mx_matmul
from spec.regs import CMD_BASE, CMD_FIELDS, CmdOp, CmdReg


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
    buffer.add(Command(vrelu, StagedStream(0x2000, offset=0, size=8), writeback=0x3010))
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
    buffer.add(ProgramDescriptor(0x8000, length=4, base0=0x9000, base1=0xA010, tag=1))
    buffer.add(ProgramDescriptor(0x8000, length=4, base0=0x9010, base1=0xA000, tag=2))
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


async def scaled(port: CommandPort) -> object:
    """Products of numbers with a binary point."""
    halves = np.array([[1.5, -0.25]], np.float16).view(np.uint16)
    squares = await matmul(port, halves, halves.T, "FP16")
    weights = np.array([[7], [-8], [3]], np.int8)
    by_group = np.array([[0x3F80], [0x3E80]], np.uint16)  # BF16: 1.0 for two rows, 0.25 for one
    activations = np.array([[10, 20, 30]], np.int8)
    groups = await group_matmul(port, activations, weights, by_group, 2, "bf16")
    row = Blocks(np.array([[0x07, 0x01]]), np.array([[130]]))  # MXFP4: 6 and 0.5, times 2^3
    exact = await mx_matmul(port, row, Blocks(row.codes.T, row.scales), "mxfp4")
    return squares.values[0, 0] / 256, groups.values[0, 0] / 256, exact.values[0][0]


EXAMPLES: dict[str, Callable[[CommandPort], Awaitable[object]]] = {
    "scalar": scalar,
    "tile": tile,
    "ring": ring,
    "records": records,
    "queue": queue,
    "product": product,
    "scaled": scaled,
}
BARE: dict[str, Callable[[Bus], Awaitable[object]]] = {"connect": connect, "registers": registers}
"""Examples without a port."""
