# SPDX-License-Identifier: Apache-2.0
"""From an operator of the library to a plan, with inputs for it and what real numbers make."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from npu.graph.evaluate import evaluate
from npu.graph.form import Array, Graph
from npu.graph.library import Operator, Size, operator, operator_graph, operator_inputs
from npu.graph.passes.quantising.calibrate import PERCENTILE
from npu.planner.build_plan import Built, CompileOptions, build_plan
from spec.isa.operands import Limits

SAMPLES = 8
"""For calibration; the first of them is there to run."""


@dataclass(frozen=True)
class BuiltOperator:
    """An operator that is ready to run.

    Attributes:
        operator: of the library.
        graph: of real numbers.
        built: its plan and the passes to it.
        samples: per input an array whose first axis counts them.
    """

    operator: Operator
    graph: Graph
    built: Built
    samples: Mapping[str, Array]

    @property
    def fused(self) -> Graph:
        """The graph of integers, which golden evaluates."""
        return self.built.passes["fuse"]

    @property
    def inputs(self) -> dict[str, Array]:
        """The first sample."""
        return self._sample(0)

    @cached_property
    def real(self) -> dict[str, Array]:
        """What real numbers make of the first sample, by output."""
        return evaluate(self.graph, self.inputs)

    @cached_property
    def reach(self) -> dict[str, float]:
        """The largest element of each output in all samples."""
        found = dict.fromkeys(self.graph.outputs, 0.0)
        for number in range(SAMPLES):
            for name, value in evaluate(self.graph, self._sample(number)).items():
                found[name] = max(found[name], float(np.abs(value.astype(np.float64)).max()))
        return found

    def error(self, name: str, found: Array) -> float:
        """Return how far an output is from real numbers, as a share of its reach.

        Of 10,000 elements of all samples one does not count: calibration gives it up.
        """
        apart = np.abs(found.astype(np.float64) - self.real[name].astype(np.float64)).reshape(-1)
        given_up = math.floor(apart.size * SAMPLES * (1 - PERCENTILE / 100))
        worst = np.partition(apart, apart.size - 1 - given_up)[apart.size - 1 - given_up]
        return float(worst) / (self.reach[name] or 1.0)

    def _sample(self, number: int) -> dict[str, Array]:
        return {name: data[number] for name, data in self.samples.items()}


def build_operator(
    name: str,
    sizes: Mapping[str, Size] | None = None,
    *,
    stages: bool = False,
    seed: int = 1,
    limits: Limits | None = None,
) -> BuiltOperator:
    """Compile an operator, calibrated on random inputs.

    Args:
        name: of `npu.graph.library.OPERATORS`.
        sizes: those that are not the defaults.
        stages: makes every stage an output, so that none is fused into the next.
        seed: of parameters and inputs.
        limits: of the chip, the standard one if None.

    Raises:
        GraphError: a name or a size is wrong.
        CompileError: it fits the chip in no way.
    """
    one = operator(name)
    graph = operator_graph(name, sizes, stages=stages, seed=seed)
    samples = operator_inputs(graph, SAMPLES, seed)
    kinds = {each.kind for each in graph.operations}
    wanted = [kind for kind in one.npu if kind in kinds]
    built = build_plan(graph, CompileOptions(calibrate=samples, npu=wanted, limits=limits))
    return BuiltOperator(one, graph, built, samples)
