# SPDX-License-Identifier: Apache-2.0
"""Decides what lies in SRAM and what in memory, and at which addresses.

At first all that a segment makes and reads itself is to lie in SRAM. Where an operation has no room
beside what lives then, the largest of it moves to memory.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass

from npu.compiler.errors import CompileError
from npu.compiler.network.emission import buffers_of
from npu.compiler.network.kernel import Context, Kernel, MisfitError
from npu.compiler.network.kernels import kernels_of
from npu.compiler.network.layout import Layout, StorageView
from npu.compiler.sram_allocation import SramBuffer, place, top
from npu.graph.form import Graph, Operation
from spec.isa.operands import Limits, up


@dataclass(frozen=True)
class Lifetime:
    """First and last operation, by number, between which a storage holds something."""

    first: int
    last: int


@dataclass(frozen=True)
class Residence:
    """What a segment does and where.

    Attributes:
        kernels: of each operation, in order.
        sram: address of each resident storage and of each buffer of a kernel.
        sram_bytes: first byte behind all of them.
        resident: storages in SRAM.
        lifetimes: of the storages that the segment touches.
        views: of all tensors.
    """

    kernels: tuple[tuple[Kernel, ...], ...]
    sram: Mapping[str, int]
    sram_bytes: int
    resident: frozenset[str]
    lifetimes: Mapping[str, Lifetime]
    views: Mapping[str, StorageView]


def lifetimes_of(
    layout: Layout, operations: list[Operation], reads: list[list[str]]
) -> dict[str, Lifetime]:
    """Return the lifetimes of storages over some operations."""
    found: dict[str, Lifetime] = {}
    for number, one in enumerate(operations):
        for name in (*reads[number], *one.outputs):
            storage = layout.views[name].storage
            first = found[storage].first if storage in found else number
            found[storage] = Lifetime(first, number)
    return found


def settle(
    graph: Graph,
    layout: Layout,
    operations: list[Operation],
    reads: list[list[str]],
    outside: frozenset[str],
    limits: Limits,
) -> Residence:
    """Return where everything of a segment lies.

    Args:
        graph: the network.
        layout: of its tensors.
        operations: of the segment.
        reads: the tensors that each reads as rows.
        outside: storages that lie in memory in any case; those that are read more often than
            they would have to be may lie in SRAM besides.
        limits: of the chip.

    Raises CompileError if an operation fits in no way.
    """
    lifetimes = lifetimes_of(layout, operations, reads)
    uses = Counter(
        storage
        for number in range(len(operations))
        for storage in {layout.views[name].storage for name in reads[number]}
    )
    made = {layout.views[name].storage for one in operations for name in one.outputs}
    resident = {
        name
        for name in lifetimes
        if up(layout.bytes[name]) <= limits.sram_bytes
        and (name not in outside or uses[name] > (0 if name in made else 1))
    }
    return _Settling(graph, layout, operations, lifetimes, resident, limits).settle()


class _Settling:
    def __init__(
        self,
        graph: Graph,
        layout: Layout,
        operations: list[Operation],
        lifetimes: dict[str, Lifetime],
        resident: set[str],
        limits: Limits,
    ) -> None:
        self.graph = graph
        self.layout = layout
        self.operations = operations
        self.lifetimes = lifetimes
        self.resident = resident
        self.limits = limits
        self.spare = [0] * len(operations)
        self.made: dict[int, tuple[frozenset[str], int, list[Kernel]]] = {}

    def settle(self) -> Residence:
        while True:
            kernels = self._kernels()
            if kernels is None:
                continue
            buffers = self._buffers(kernels)
            addresses = place(buffers)
            end = top(buffers, addresses)
            if end <= self.limits.sram_bytes:
                return Residence(
                    tuple(tuple(each) for each in kernels),
                    addresses,
                    end,
                    frozenset(self.resident),
                    self.lifetimes,
                    self.layout.views,
                )
            self._relieve(buffers, addresses)

    def _kernels(self) -> list[list[Kernel]] | None:
        """Return the kernels of all operations; None if something had to move to memory."""
        found = []
        for number, one in enumerate(self.operations):
            alive = self._alive(number)
            budget = self.limits.sram_bytes - self.spare[number]
            budget -= sum(up(self.layout.bytes[name]) for name in alive)
            try:
                found.append(self._made(number, one, alive, budget))
            except CompileError as error:
                if not alive:
                    text = str(error).removeprefix(f"{one.name}: ")
                    raise MisfitError(one.name, text) from None
                self._evict(alive)
                return None
        return found

    def _made(self, number: int, op: Operation, alive: frozenset[str], budget: int) -> list[Kernel]:
        known = self.made.get(number)
        if known is not None and known[:2] == (alive, budget):
            return known[2]
        if budget < 0:
            raise CompileError(f"{op.name}: no room")
        context = Context(
            self.graph, self.layout.views, frozenset(self.resident), self.limits, budget
        )
        kernels = kernels_of(context, self.layout, op)
        self.made[number] = alive, budget, kernels
        return kernels

    def _alive(self, number: int) -> frozenset[str]:
        return frozenset(
            name
            for name in self.resident
            if self.lifetimes[name].first <= number <= self.lifetimes[name].last
        )

    def _evict(self, alive: frozenset[str]) -> None:
        self.resident.remove(max(sorted(alive), key=lambda name: self.layout.bytes[name]))

    def _buffers(self, kernels: list[list[Kernel]]) -> list[SramBuffer]:
        found = [
            SramBuffer(name, self.layout.bytes[name], span.first, span.last)
            for name, span in self.lifetimes.items()
            if name in self.resident
        ]
        for number, each in enumerate(kernels):
            for kernel in each:
                for name, size in buffers_of(kernel).items():
                    found.append(SramBuffer(name, size, number, number))
        return found

    def _relieve(self, buffers: list[SramBuffer], addresses: dict[str, int]) -> None:
        """Make room at the operation whose buffers reach too far."""
        worst = max(buffers, key=lambda b: addresses[b.name] + up(b.size))
        over = addresses[worst.name] + up(worst.size) - self.limits.sram_bytes
        number = worst.first
        if worst.name in self.resident:
            self.resident.remove(worst.name)
        elif self.spare[number] + over < self.limits.sram_bytes // 2:
            self.spare[number] += up(over, 1024)
        else:
            self._evict(self._alive(number))
