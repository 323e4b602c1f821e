# SPDX-License-Identifier: Apache-2.0
"""Operations of networks that ran on the bench: kind, rank, element type, who executes them."""

from __future__ import annotations

from collections.abc import Iterator

from npu.graph.form import Element, Graph, Target
from npu.graph.operations import TABLE
from tb.bench.coverage_group import Group, outside

_RANKS = ("1", "2", "3", "4")


def _targets() -> dict[str, list[str]]:
    """Return who may execute each kind."""
    return {
        kind.name: [
            *([] if kind.host_only else [Target.NPU.value]),
            *([Target.PORT.value] if kind.group == "port" else []),
            Target.HOST.value,
        ]
        for kind in TABLE.values()
    }


GRAPH = Group(
    "graph",
    {
        "operation": list(TABLE),
        "rank": _RANKS,
        "type": [element.value for element in Element],
        "target": [target.value for target in Target],
    },
    (("operation", "target"), ("rank", "target"), ("type", "target")),
    outside(list(TABLE), _targets(), 3, 4),
)
"""Of the first output."""


def samples(graph: Graph) -> Iterator[str]:
    """Yield the sample of each operation of a network that was compiled."""
    for operation in graph.operations:
        if operation.place is not None and operation.outputs:
            type_ = graph.type(operation.outputs[0])
            rank, target = str(len(type_.shape)), operation.place.target.value
            yield GRAPH.row(operation.kind, rank, type_.element.value, target)
