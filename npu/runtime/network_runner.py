# SPDX-License-Identifier: Apache-2.0
"""One network in the memory of a chip, and its runs."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Protocol

import numpy as np

from npu.driver.chip import PAGE, Chip, Finish
from npu.driver.counters import ChipCounters
from npu.graph.evaluate import run as run_on_host
from npu.graph.form import Array
from npu.isa.operands import WORD, up
from npu.regs import StartState
from npu.runtime.plan import Plan
from npu.runtime.tensor_rows import from_rows, tensor_bytes, to_rows

ARENA_BASE, CONSTANTS_BASE = 0, 2
"""Base registers."""


@dataclass(frozen=True)
class NetworkRun:
    """What a run has left.

    Attributes:
        outputs: of the graph, by name.
        tensors: all that crossed the border of a segment, by name, outputs included.
        counters: of each segment, in order; as of the end of each.
    """

    outputs: Mapping[str, Array]
    tensors: Mapping[str, Array]
    counters: tuple[ChipCounters, ...]


class SegmentChip(Protocol):
    """What a run needs of a chip."""

    def stage(self, pieces: Iterable[tuple[int, bytes]]) -> None:
        """Put pieces of (address, bytes) into memory."""

    async def execute(self, state: StartState) -> Finish:
        """Run a program that must end without an error."""

    def read(self, address: int, size: int) -> bytes:
        """Return bytes of memory."""


@dataclass(frozen=True)
class DrivenChip:
    """A chip behind the driver."""

    chip: Chip

    def stage(self, pieces: Iterable[tuple[int, bytes]]) -> None:
        """Put pieces of (address, bytes) into memory."""
        self.chip.stage(pieces)

    async def execute(self, state: StartState) -> Finish:
        """Run a program that must end without an error."""
        return await self.chip.execute(state)

    def read(self, address: int, size: int) -> bytes:
        """Return bytes of memory."""
        return self.chip.bus.read_memory(address, size)


class NetworkRunner:
    """A network placed in the memory of a chip.

    Attributes:
        plan: of the network.
        pieces: what must be in memory, (address, bytes).
        starts: how each segment is started.
        end: first address behind all that it uses.
    """

    def __init__(self, plan: Plan, base: int = PAGE) -> None:
        """Place programs, stream, constants and arena from `base` on, each on a page."""
        self.plan = plan
        self.end = up(base, PAGE)
        self.pieces: list[tuple[int, bytes]] = []
        stream = self._place(plan.stream)
        constants = self._place(plan.constants)
        self._arena = self.end
        self.end = up(self.end + plan.arena, PAGE)
        bases = [0] * 8
        bases[ARENA_BASE], bases[CONSTANTS_BASE] = self._arena, constants
        self.starts = [
            StartState(
                ucode_base=self._place(segment.image),
                ucode_len=len(segment.image) // WORD,
                stream_base=stream,
                # No further than the program reads: the chip reads the stream ahead.
                stream_len=segment.stream_bytes,
                bases=tuple(bases),
            )
            for segment in plan.segments
        ]

    def _place(self, data: bytes) -> int:
        address = self.end
        self.pieces.append((address, data))
        self.end = up(address + max(1, len(data)), PAGE)
        return address

    def address(self, name: str) -> int:
        """Return where in memory a tensor lies."""
        return self._arena + self.plan.offsets[name]

    async def run(self, chip: SegmentChip, inputs: Mapping[str, Array]) -> NetworkRun:
        """Run the network once; `pieces` must be in memory.

        Args:
            chip: where.
            inputs: the graph's inputs by name, in shape and type of the graph.

        Raises:
            GraphError: an operation of the host cannot be evaluated.
            ProgramFailed: a segment ended with an error.
        """
        graph = self.plan.graph
        values: dict[str, Array] = {
            name: tensor.data for name, tensor in graph.tensors.items() if tensor.data is not None
        }
        values.update({name: np.asarray(inputs[name]) for name in graph.inputs})
        crossed: dict[str, Array] = {}
        counters = []
        operations = {one.name: one for one in graph.operations}
        for step in self.plan.steps:
            if isinstance(step, int):
                found, counted = await self.segment(chip, step, values)
                counters.append(counted)
            else:
                one = operations[step]
                given = [values[name] if name else None for name in one.inputs]
                found = dict(zip(one.outputs, run_on_host(graph, one, given), strict=True))
            values |= found
            crossed |= found
        outputs = {name: values[name] for name in graph.outputs}
        return NetworkRun(outputs, crossed, tuple(counters))

    async def segment(
        self, chip: SegmentChip, number: int, values: Mapping[str, Array]
    ) -> tuple[dict[str, Array], ChipCounters]:
        """Run a segment.

        Args:
            chip: where.
            number: of the segment.
            values: the tensors that it takes, by name, and maybe others.

        Returns:
            The tensors that it has left, by name, and the counters at its end.

        Raises:
            ProgramFailed: it ended with an error.
        """
        one, graph = self.plan.segments[number], self.plan.graph
        chip.stage((self.address(n), to_rows(values[n], graph.type(n))) for n in one.reads)
        finish = await chip.execute(self.starts[number])
        found = {}
        for name in one.writes:
            kind = graph.type(name)
            found[name] = from_rows(chip.read(self.address(name), tensor_bytes(kind)), kind)
        return found, finish.counters
