# SPDX-License-Identifier: Apache-2.0
"""Compiled networks on the bench: every segment runs on chip and model, which must agree."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from npu.compiler.network import CompiledNetwork
from npu.driver.chip import Finish
from npu.graph.form import Array
from npu.planner.network_plan import plan_of
from npu.runtime.prepare import prepare
from npu.runtime.replay import NetworkRun, Replay
from spec.isa.instruction import decode_image
from spec.isa.operands import WORD
from spec.regs import StartState
from tb.bench import graph_coverage
from tb.bench.environment import DEFAULT_LIMIT, Bench, Execution


@dataclass
class BenchChip:
    """The bench as a network sees its chip.

    Attributes:
        bench: the bench.
        limit: cycles that a segment may take.
        executions: of the segments so far.
    """

    bench: Bench
    limit: int = DEFAULT_LIMIT
    executions: list[Execution] = field(default_factory=list)

    def stage(self, pieces: Iterable[tuple[int, bytes]]) -> None:
        """Put pieces of (address, bytes) into memory."""
        for address, data in pieces:
            self.bench.memory.stage(address, data)

    async def execute(self, state: StartState) -> Finish:
        """Run a program that must end without an error, on chip and model."""
        image = self.bench.memory.read(state.ucode_base, state.ucode_len * WORD)
        execution = await self.bench.run(decode_image(image), state, limit=self.limit)
        assert execution.finish.error is None, str(execution.finish.error)
        self.executions.append(execution)
        return execution.finish

    def read(self, address: int, size: int) -> bytes:
        """Return bytes of memory."""
        return self.bench.memory.read(address, size)


async def run_network(
    bench: Bench,
    network: CompiledNetwork,
    inputs: Mapping[str, Array],
    *,
    limit: int = DEFAULT_LIMIT,
) -> NetworkRun:
    """Run a network once on the bench; chip and model must agree in every byte of each segment."""
    prepared = prepare(plan_of(network))
    chip = BenchChip(bench, limit)
    chip.stage(prepared.memory)
    found = await Replay(prepared, chip).run(inputs)
    bench.add_hits(graph_coverage.samples(network.graph))
    return found
