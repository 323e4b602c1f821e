# SPDX-License-Identifier: Apache-2.0
"""What a host runs on a board: a block of GPT-2 against golden, and the tokens of a microGPT."""

from __future__ import annotations

import zlib
from dataclasses import dataclass, replace

import numpy as np

from golden import decoder
from golden.session import generate
from npu.compiler import compile_block, compile_model
from npu.driver.bus import Bus
from npu.driver.chip import PAGE, Chip
from npu.driver.errors import DeviceError
from npu.driver.generate import greedy
from npu.planner.placement import Placement
from spec.isa.operands import Limits, up
from spec.regs import StartState
from weights.synthetic import random_gpt2, shape_of

ROWS = 4
"""Tokens of the block."""
CONTEXT, VOCAB = 16, 27
"""Of a microGPT."""
WIDTHS = (16, 24)


@dataclass(frozen=True)
class BlockRun:
    """A block that ran on a board.

    Attributes:
        checksum, expected: CRC-32 of the output, and of golden's.
        staged: bytes that were put into memory.
        cycles: of its program.
    """

    checksum: int
    expected: int
    staged: int
    cycles: int

    @property
    def passed(self) -> bool:
        """Whether the output is golden's."""
        return self.checksum == self.expected

    def __str__(self) -> str:
        """Return a line about it."""
        word = "passed" if self.passed else f"FAILED, expected {self.expected:08x}"
        return (
            f"self test {word}: a block of GPT-2 on {ROWS} tokens, checksum {self.checksum:08x}, "
            f"{self.staged:,} bytes staged, {self.cycles:,} cycles"
        )


@dataclass(frozen=True)
class MicroGpt:
    """Cycles of a microGPT that wrote tokens on a board.

    Attributes:
        width: of its residual stream.
        first: of the token at the first position, from the start of the program to its end.
        mean: of a token, of a text that fills the context.
        last: of the token at the last position.
    """

    width: int
    first: int
    mean: int
    last: int


async def run_block(bus: Bus, limits: Limits) -> BlockRun:
    """Run a block of GPT-2 on a chip, all of it staged over the bus.

    Args:
        bus: of a chip of these limits that nothing else uses.
        limits: what the block is compiled for.

    Raises:
        DeviceError: the chip is another one, or did not do what it was asked for.
    """
    chip = await Chip.connect(bus)
    if chip.info.limits != limits:
        raise DeviceError(f"the board has a chip of {chip.info.limits}, expected {limits}")
    shape = shape_of("gpt2", hidden=32, layers=1, heads=4, ffn=128, vocab=VOCAB, context=CONTEXT)
    model = random_gpt2(shape, 1)
    block = compile_block(model, 0, ROWS, limits=limits)
    rows = np.random.default_rng(2).integers(-8000, 8001, (ROWS, shape.hidden)).astype("<i2")
    stream = up(len(block.program.image()), PAGE)
    arena = stream + up(len(block.stream), PAGE)
    pieces = (
        (0, block.program.image()),
        (stream, block.stream),
        (arena + block.input_offset, rows.tobytes()),
    )
    chip.stage(pieces)
    start = StartState(
        0,
        len(block.program.instructions),
        stream_base=stream,
        stream_len=len(block.stream),
        bases=(arena, *[0] * 7),
    )
    finish = await chip.execute(start)
    found = bus.read_memory(arena + block.output_offset, block.output_bytes)
    wanted = decoder.block(model, 0, rows).resid2.astype("<i2").tobytes()
    sizes = sum(len(data) for _, data in pieces)
    return BlockRun(zlib.crc32(found), zlib.crc32(wanted), sizes, finish.counters.cycles)


async def run_microgpt(bus: Bus, limits: Limits, width: int) -> MicroGpt:
    """Have a microGPT with drawn weights fill its context; compare the tokens with golden.

    It is one block of 4 heads, RMS norms, ReLU, 4 * width hidden values, learned positions.

    Raises:
        DeviceError: tokens are not golden's.
        ProgramFailed: the chip reports an error.
    """
    shape = shape_of(
        "gpt2", hidden=width, layers=1, heads=4, ffn=4 * width, vocab=VOCAB, context=CONTEXT
    )
    model = random_gpt2(replace(shape, activation="relu", norm="rmsnorm"), 1)
    placement = Placement(compile_model(model, limits=limits))
    plan = placement.plan([0], count=CONTEXT)
    chip = await Chip.connect(bus)
    chip.stage(placement.pieces)
    wanted = generate(model, [0], CONTEXT)
    cycles = []
    for count in (1, CONTEXT - 1, CONTEXT):
        found = await greedy(chip, plan, count)
        if found.ids != wanted[:count]:
            raise DeviceError(f"a microGPT of {width}: tokens {found.ids}, expected {wanted}")
        cycles += found.cycles
    first, but_one, whole = cycles
    return MicroGpt(width, first, round(whole / CONTEXT), whole - but_one)
