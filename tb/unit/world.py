# SPDX-License-Identifier: Apache-2.0
"""The world around a single block: who refuses how often, and running what was prepared."""

from __future__ import annotations

import gc
from dataclasses import asdict, dataclass, fields
from pathlib import Path

import cocotb
import numpy as np
from cocotb.triggers import SimTimeoutError, with_timeout

from tb.bench.dut import CLOCK_NS, Dut
from tb.bench.memory import Memory

STALLS = (0, 0, 20, 50, 90)
"""Percent of cycles, from which each stall is drawn."""


class LateError(AssertionError):
    """A block did not end in time."""


@dataclass(frozen=True)
class World:
    """How the world around a block behaves; each is the signal `knob_<name>` of `unit_control`.

    Attributes:
        read_stall, write_stall: percent of cycles in which a port of the SRAM accepts nothing, one
            that reads and one that writes.
        stream_gap: percent of cycles in which no share of the stream is offered anew.
        memory_stall: percent of cycles in which the memory accepts nothing or answers nothing.
    """

    read_stall: int = 0
    write_stall: int = 0
    stream_gap: int = 0
    memory_stall: int = 0

    @classmethod
    def draw(cls, random: np.random.Generator) -> World:
        """Return a random one; in every fifth nobody stalls."""
        if random.random() < 0.2:
            return cls()
        stalls = random.choice(STALLS, len(fields(cls))).tolist()
        return cls(*stalls)


@dataclass
class UnitBench:
    """A block in its bench, as all tests see it.

    Attributes:
        control: the module `unit_control`, all that Python sees.
        memory, sram: what the block's neighbours work on, shared with the simulator.
        random: the test's random generator, seeded by the run's seed.
    """

    control: Dut
    memory: Memory
    sram: Memory
    random: np.random.Generator

    @classmethod
    def of(cls, dut: Dut) -> UnitBench:
        """Return the bench around a wrapper, memory and SRAM full of random bytes."""
        gc.freeze()  # what is imported stays: no collection need look at it
        folder = Path(str(cocotb.plusargs["run_dir"]))
        random = np.random.default_rng(int(cocotb.RANDOM_SEED))
        memory, sram = (Memory.map(folder / name) for name in ("memory.bin", "sram.bin"))
        for image in (memory, sram):
            image.data[:] = random.integers(0, 256, image.data.size, np.uint8)
        return cls(dut.u_control, memory, sram, random)

    async def run(self, world: World, limit: int, **knobs: int) -> None:
        """Reset the block, start it and sleep until it has ended.

        Args:
            world: how the world behaves.
            limit: cycles that it may take.
            knobs: other settings of the wrapper's control, without `knob_`.

        Raises:
            LateError: it has not ended within the limit.
        """
        settings = {"seed": int(self.random.integers(1, 1 << 32)), "limit": limit}
        for name, value in (settings | asdict(world) | knobs).items():
            getattr(self.control, f"knob_{name}").value = value
        self.control.knob_run.value = 1 - int(self.control.ran.value)
        try:
            await with_timeout(self.control.ran.value_change, (limit + 100) * CLOCK_NS, "ns")
        except SimTimeoutError:
            raise LateError(f"the bench itself has not ended within {limit} cycles") from None
        if int(self.control.late.value):
            raise LateError(f"no end within {limit} cycles; {world}")
