# SPDX-License-Identifier: Apache-2.0
"""Networks on the simulated RTL, every tensor compared with the instruction model."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass

import numpy as np

from npu.graph.form import Array
from npu.graph.states import States
from npu.runtime.account import beats
from npu.runtime.network_account import disagreements, report_of
from npu.runtime.plan import Plan
from npu.runtime.replay import By, NetworkRun
from spec.configurations import for_limits
from tb.bench.knobs import Knobs
from tb.models.simulate_network import simulate
from tb.run import build
from tessera.golden_chip import run_on_golden


class ChipMismatchError(RuntimeError):
    """The RTL has left something else than the instruction model."""


@dataclass(frozen=True)
class RtlRun:
    """A run on the RTL.

    Attributes:
        run: outputs and tensors of the RTL, and its counters.
        cycles: of each operation of the chip with instructions, by name.
        seconds: processor time of the simulation.
    """

    run: NetworkRun
    cycles: Mapping[str, int]
    seconds: float


def run_on_rtl(
    plan: Plan,
    inputs: Mapping[str, Array],
    *,
    by: By = "registers",
    latency: int = 40,
    states: States | None = None,
    on_segment: Callable[[int], None] | None = None,
) -> RtlRun:
    """Run a network once in the simulator, which is built if need be.

    The host makes what it makes beside the instruction model. All that the RTL leaves must be the
    model's: what crosses between host and chip, and what segments that are started by registers
    leave for others.

    Args:
        plan: of the network.
        inputs: of its graph by name, in shape and type of the graph.
        by: how segments start; by the descriptor ring they have no counters.
        latency: of the memory, in cycles.
        states: what the run finds and changes; those of a first run without.
        on_segment: told how many segments have ended.

    Raises:
        GraphError: an operation of the host cannot be evaluated.
        ChipMismatchError: naming tensor, place and both values, or the counter that differs.
        SimulationError: the simulation failed.
    """
    states = States(plan.graph) if states is None else states
    found_there = dict(states.values)
    golden = run_on_golden(plan, inputs, inner=True, states=states)
    if not plan.segments and not plan.products:
        return RtlRun(golden, {}, 0.0)
    configuration = build.Configuration(chip=for_limits(plan.limits))
    build.generate()
    build.build(configuration)
    knobs = Knobs(read_latency=latency, write_latency=latency)
    ideal = max((one.ideal for one in report_of(plan).segments), default=0)
    if plan.decoder is not None:
        # Each token takes all of the stream.
        ideal = plan.decoder.context * beats(len(plan.stream))
    found = simulate(
        configuration,
        plan,
        {**inputs, **found_there, **golden.tensors},
        ideal=ideal,
        name=f"network-{time.strftime('%Y%m%d-%H%M%S')}-{os.getpid()}",
        by=by,
        knobs=knobs,
        on_segment=on_segment,
    )
    for name, tensor in found.tensors.items():
        _compare(name, tensor, golden.tensors[name])
    report = report_of(plan, found.counters, found.cycles, found.products)
    wrong = disagreements(report, found.products)
    if wrong:
        raise ChipMismatchError("; ".join(wrong))
    outputs = {name: found.tensors.get(name, value) for name, value in golden.outputs.items()}
    run = NetworkRun(outputs, found.tensors, found.counters, found.products)
    return RtlRun(run, found.cycles, found.seconds)


def _compare(name: str, found: Array, expected: Array) -> None:
    both_nan = (found != found) & (expected != expected)
    differ = (found != expected) & ~both_nan
    if not differ.any():
        return
    at = tuple(int(axis[0]) for axis in np.nonzero(differ))
    count = int(np.count_nonzero(differ))
    raise ChipMismatchError(
        f"tensor {name!r}: {count} of {found.size} elements differ, first {list(at)}: "
        f"RTL {found[at]}, golden {expected[at]}"
    )
