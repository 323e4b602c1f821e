# SPDX-License-Identifier: Apache-2.0
"""One compiled network in the memory of a chip, and its runs."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Protocol

import numpy as np

from npu.compiler.network import CompiledNetwork, Segment
from npu.driver.chip import Chip, Finish
from npu.driver.counters import ChipCounters
from npu.driver.placement import PAGE
from npu.graph.evaluate import run as run_on_host
from npu.graph.form import Array
from npu.isa.operands import WORD, up
from npu.regs import StartState
from npu.runtime.tensor_rows import from_rows, to_rows

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
        network: the network.
        end: first address behind all that it uses.
    """

    def __init__(self, network: CompiledNetwork, base: int = PAGE) -> None:
        """Place programs, stream, constants and arena from `base` on, each on a page."""
        self.network = network
        self.end = up(base, PAGE)
        self.pieces: list[tuple[int, bytes]] = []
        stream = self._place(network.stream)
        constants = self._place(network.constants)
        self._arena = self.end
        self.end = up(self.end + network.arena, PAGE)
        bases = [0] * 8
        bases[ARENA_BASE], bases[CONSTANTS_BASE] = self._arena, constants
        self.starts = [
            StartState(
                ucode_base=self._place(segment.program.image()),
                ucode_len=len(segment.program.image()) // WORD,
                stream_base=stream,
                stream_len=len(network.stream),
                bases=tuple(bases),
            )
            for segment in network.segments
        ]

    def _place(self, data: bytes) -> int:
        address = self.end
        self.pieces.append((address, data))
        self.end = up(address + max(1, len(data)), PAGE)
        return address

    def address(self, name: str) -> int:
        """Return where in memory a tensor lies."""
        return self._arena + self.network.offsets[name]

    async def run(self, chip: SegmentChip, inputs: Mapping[str, Array]) -> NetworkRun:
        """Run the network once; `pieces` must be in memory.

        Args:
            chip: where.
            inputs: the graph's inputs by name, in shape and type of the graph.

        Raises:
            GraphError: an operation of the host cannot be evaluated.
            ProgramFailed: a segment ended with an error.
        """
        network, graph = self.network, self.network.graph
        values: dict[str, Array] = {
            name: tensor.data for name, tensor in graph.tensors.items() if tensor.data is not None
        }
        values.update({name: np.asarray(inputs[name]) for name in graph.inputs})
        crossed: dict[str, Array] = {}
        counters = []
        starts = iter(self.starts)
        for step in network.steps:
            if isinstance(step, Segment):
                found, counted = await self._segment(chip, step, next(starts), values)
                counters.append(counted)
            else:
                given = [values[name] if name else None for name in step.inputs]
                found = dict(zip(step.outputs, run_on_host(graph, step, given), strict=True))
            values |= found
            crossed |= found
        outputs = {name: values[name] for name in graph.outputs}
        return NetworkRun(outputs, crossed, tuple(counters))

    async def _segment(
        self, chip: SegmentChip, segment: Segment, start: StartState, values: Mapping[str, Array]
    ) -> tuple[dict[str, Array], ChipCounters]:
        places = self.network.places
        chip.stage((self.address(n), to_rows(values[n], places[n])) for n in segment.reads)
        finish = await chip.execute(start)
        found = {}
        for name in segment.writes:
            view = places[name]
            data = chip.read(self.address(name), view.end)
            found[name] = from_rows(data, view).reshape(self.network.graph.type(name).shape)
        return found, finish.counters
