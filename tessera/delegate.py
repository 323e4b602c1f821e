# SPDX-License-Identifier: Apache-2.0
"""Tessera as the delegate of another runtime: what ExecuTorch and LiteRT ask of one.

for part in partition("model.tflite"):
    if part.delegated:
        data = preprocess(part.graph)          # when the model is prepared, once
        outputs = Delegate(data).execute(tensors)   # when it runs
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from npu.compiler.network import compile_network
from npu.graph.form import Array, Graph, GraphError
from npu.planner.build_plan import CompileOptions, build_plan
from npu.planner.network_plan import plan_of
from npu.planner.partition import Part, partition
from npu.runtime.plan_files import bytes_of, plan_of_bytes
from npu.runtime.prepare import Bases, Prepared, prepare
from npu.runtime.report import NetworkReport
from tessera.session import On, Session

__all__ = ["Delegate", "Part", "partition", "preprocess"]

SPECS = ("calibrate", "host", "npu", "port", "split", "limits")


def preprocess(graph: Graph, specs: Mapping[str, Any] | None = None) -> bytes:
    """Compile a part of a network, or a whole graph, to what a `Delegate` takes.

    Args:
        graph: of a part of `partition`, whose operations have their places; or one of an importer.
        specs: arguments of `tessera.load` by name: calibrate, host, npu, port, split, limits; of a
            part only split and limits.

    Raises:
        GraphError: the graph or an argument is wrong.
        CompileError: an operation fits the chip in no way.
    """
    given = dict(specs or {})
    placed = bool(graph.operations) and all(op.place is not None for op in graph.operations)
    allowed = ("split", "limits") if placed else SPECS
    for name in given:
        if name not in allowed:
            raise GraphError(f"specs: given {name!r}, allowed {', '.join(allowed)}")
    if not placed:
        return bytes_of(build_plan(graph, CompileOptions(**given)).plan)
    return bytes_of(
        plan_of(compile_network(graph, given.get("limits"), split=given.get("split", ())))
    )


class Delegate:
    """A compiled part of a network.

    Attributes:
        session: the plan on its chip.
    """

    def __init__(self, data: bytes, on: On = "golden") -> None:
        """Take what `preprocess` has made; all of it is verified.

        Raises:
            PlanFileError: the data is not as it was made; the message says where.
            GraphError: for a chip that there is not.
        """
        self.session = Session(plan_of_bytes(data, "delegate"), on)

    @property
    def inputs(self) -> tuple[str, ...]:
        """Names of the tensors that it takes."""
        return self.session.inputs

    @property
    def outputs(self) -> tuple[str, ...]:
        """Names of the tensors that it makes."""
        return self.session.outputs

    def execute(self, tensors: Mapping[str, Array] | Sequence[Array]) -> dict[str, Array]:
        """Run it once.

        Args:
            tensors: by name, or in the order of `inputs`; integers are as the graph has them.

        Returns:
            The outputs by name.

        Raises:
            GraphError: a tensor is missing, or has another shape or type.
        """
        if isinstance(tensors, Mapping):
            return self.session.run(tensors)
        if len(tensors) != len(self.inputs):
            names = ", ".join(self.inputs)
            raise GraphError(f"tensors: given {len(tensors)}, allowed {len(self.inputs)}: {names}")
        return self.session.run(dict(zip(self.inputs, tensors, strict=True)))

    def prepared(self, bases: Bases | None = None) -> Prepared:
        """Return register writes, descriptor images and memory for a set of addresses.

        Raises:
            EntryError: an address does not fit.
        """
        return prepare(self.session.plan, bases)

    def report(self) -> NetworkReport:
        """Return costs, places and reasons."""
        return self.session.report()
