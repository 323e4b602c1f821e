# SPDX-License-Identifier: Apache-2.0
"""What a network costs, operation by operation, and where each of them runs and why.

Sums of lines are the figures of segments, and sums of segments those of the network.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

from npu import optional
from npu.driver.counters import ChipCounters
from npu.graph.form import Target
from npu.runtime.account import Bound, Cost, total
from spec.isa.operands import Limits


@dataclass(frozen=True)
class OperationLine:
    """An operation.

    Attributes:
        name, kind, source: as the graph has them.
        target, reason: where it runs and why.
        segment: its number, -1 on the host and on the command port.
        macs: multiplications that the network asks for; `cost.macs` are those of the chip.
        cost: of its instructions; on the command port the multiplications of its tiles alone.
        host_bytes: of the tensors that the host reads and writes for it.
        bound: what limits it: mac, bus, vector, port or host; "" where nothing is left to do.
        ideal: least cycles, 0 on the host.
        cycles: measured, from the end of the operation before to its own end; None without RTL.
        port_operations: of the command port, as it has counted them; None before a run.
    """

    name: str
    kind: str
    source: str
    target: str
    reason: str
    segment: int
    macs: int
    cost: Cost
    host_bytes: int
    bound: Bound | str
    ideal: int
    cycles: int | None = None
    port_operations: int | None = None

    @property
    def on_port(self) -> bool:
        """Whether the command port executes it."""
        return self.target == Target.PORT

    @property
    def padding(self) -> float:
        """The share of the chip's multiplications that no one asked for."""
        return 1 - min(self.macs, self.cost.macs) / self.cost.macs if self.cost.macs else 0.0


@dataclass(frozen=True)
class SegmentLine:
    """A program.

    Attributes:
        number: of the segment.
        cost: of all its instructions, the sum of those of its operations and of its end.
        end: of the words behind the last operation.
        ideal: the sum over its operations.
        counters: of the chip at its end, None before a run.
    """

    number: int
    cost: Cost
    end: Cost
    ideal: int
    counters: ChipCounters | None = None

    @property
    def cycles(self) -> int | None:
        """Measured, None without RTL."""
        return self.counters.cycles or None if self.counters is not None else None


@dataclass(frozen=True)
class NetworkReport:
    """A network.

    Attributes:
        network: its name.
        limits: of the chip.
        operations: in the order of the steps.
        segments: in order.
        states: what a run leaves to the next, as plan.json has them.
        weights: formats of weights in the stream, each with its bits a weight.
    """

    network: str
    limits: Limits
    operations: tuple[OperationLine, ...]
    segments: tuple[SegmentLine, ...]
    states: tuple[Mapping[str, Any], ...] = ()
    weights: tuple[tuple[str, float], ...] = ()

    @property
    def cost(self) -> Cost:
        """Of all segments, and of the command port."""
        port = (op.cost for op in self.operations if op.on_port)
        return total([*(one.cost for one in self.segments), *port])

    @property
    def macs(self) -> int:
        """That the network asks for and the chip executes."""
        return sum(op.macs for op in self.operations if op.segment >= 0 or op.on_port)

    @property
    def ideal(self) -> int:
        """Least cycles of all segments."""
        return sum(one.ideal for one in self.segments)

    @property
    def cycles(self) -> int | None:
        """Measured, None without RTL."""
        counted = [one.cycles for one in self.segments if one.cycles is not None]
        return sum(counted) if counted and len(counted) == len(self.segments) else None

    def __str__(self) -> str:
        """Return the table as text, its last line where what draws tables is not installed."""
        try:
            from npu.runtime import report_table
        except ModuleNotFoundError:
            figures = f"{self.macs:,} MACs, at least {self.ideal:,} cycles"
            return f"{self.network}: {figures}; the table: {optional.missing('cli')}"
        return report_table.text(self)

    def to_json(self) -> dict[str, Any]:
        """Return everything as JSON has it."""
        found = {
            "network": self.network,
            "chip": asdict(self.limits),
            "total": {
                "macs": self.macs,
                "cost": asdict(self.cost),
                "host_bytes": sum(op.host_bytes for op in self.operations),
                "port_operations": sum(op.port_operations or 0 for op in self.operations),
                "ideal": self.ideal,
                "cycles": self.cycles,
            },
            "weights": dict(self.weights),
            "segments": [asdict(one) for one in self.segments],
            "operations": [{**asdict(op), "padding": op.padding} for op in self.operations],
        }
        return found | ({"states": list(self.states)} if self.states else {})
