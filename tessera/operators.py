# SPDX-License-Identifier: Apache-2.0
"""Runs operators of the library: every stage on the chip, in golden, and in real numbers."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from golden.graph import run as run_golden
from npu.graph.form import Array
from npu.graph.library import OPERATORS, Operator, Size
from npu.planner.operator_plan import build_operator
from npu.runtime.report import NetworkReport
from spec.isa.operands import Limits
from tessera.session import On, Session

__all__ = ["OPERATORS", "OperatorRun", "OperatorStage", "run_operator"]


@dataclass(frozen=True)
class OperatorStage:
    """What an operator makes on its way.

    Attributes:
        name: of the stage.
        found: what the chip has made.
        golden: what it has to be.
        real: what real numbers would be.
        error: the largest distance from them, as a share of the largest that calibration has seen.
    """

    name: str
    found: Array
    golden: Array
    real: Array
    error: float

    @property
    def exact(self) -> bool:
        """Whether the chip has made what golden makes, bit for bit."""
        return bool(np.array_equal(self.found, self.golden))


@dataclass(frozen=True)
class OperatorRun:
    """An operator that has run.

    Attributes:
        operator: of the library.
        sizes: all of them.
        stages: in order of execution, results last.
        report: costs, places, counters.
    """

    operator: Operator
    sizes: Mapping[str, Size]
    stages: tuple[OperatorStage, ...]
    report: NetworkReport

    @property
    def exact(self) -> bool:
        """Whether every stage is golden's."""
        return all(one.exact for one in self.stages)

    @property
    def error(self) -> float:
        """The largest of all stages."""
        return max(one.error for one in self.stages)

    def to_json(self) -> dict[str, Any]:
        """Return everything as JSON has it: per stage what was found, golden and real numbers."""
        return {
            "operator": self.operator.name,
            "sizes": dict(self.sizes),
            "bound": self.operator.bound,
            "stages": [
                {
                    "name": one.name,
                    "exact": one.exact,
                    "error": one.error,
                    "found": one.found.tolist(),
                    "golden": one.golden.tolist(),
                    "real": one.real.tolist(),
                }
                for one in self.stages
            ],
            "report": self.report.to_json(),
        }


def run_operator(
    name: str,
    sizes: Mapping[str, Size] | None = None,
    *,
    stages: bool = True,
    seed: int = 1,
    on: On = "golden",
    limits: Limits | None = None,
) -> OperatorRun:
    """Compile and run an operator; arguments and errors of `build_operator`, and the chip."""
    one = build_operator(name, sizes, stages=stages, seed=seed, limits=limits)
    session = Session(one.built.plan, on)
    found = session.run(one.inputs)
    expected = run_golden(one.fused, one.inputs)
    return OperatorRun(
        one.operator,
        {**one.operator.sizes, **(sizes or {})},
        tuple(
            OperatorStage(
                stage, found[stage], expected[stage], one.real[stage], one.error(stage, value)
            )
            for stage, value in found.items()
        ),
        session.report(),
    )
