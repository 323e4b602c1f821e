# SPDX-License-Identifier: Apache-2.0
"""Operations of networks that ran on the bench: kind, rank, element type, who executes them."""

from __future__ import annotations

from collections.abc import Iterator

from npu.graph.form import Element, Graph, Target
from npu.graph.operations import TABLE
from tb.bench.coverage_group import Group, Pattern, outside

_RANKS = ("1", "2", "3", "4")
_NOT_ON_THE_CHIP = ("argmax", "quantise", "dequantise", "gather", "cast")
"""Kinds that the host executes, or that are slices or nothing by then."""
_ELEMENTS = {
    Target.NPU: (Element.I8, Element.U8, Element.I16, Element.I32),
    Target.PORT: (Element.I32,),
    Target.HOST: tuple(Element),
}
"""What each of them makes."""


def _targets() -> dict[str, list[str]]:
    """Return who may execute each kind."""
    return {
        kind.name: [
            *([] if kind.host_only or kind.name in _NOT_ON_THE_CHIP else [Target.NPU.value]),
            *([Target.PORT.value] if kind.group == "port" else []),
            Target.HOST.value,
        ]
        for kind in TABLE.values()
    }


def _illegal() -> list[Pattern]:
    """Return patterns of what there is not: the port makes matrices of sums."""
    return [
        *outside(list(TABLE), _targets(), 3, 4),
        *((None, rank, None, Target.PORT.value) for rank in _RANKS if rank != "2"),
        *(
            (None, None, element.value, target.value)
            for target, made in _ELEMENTS.items()
            for element in Element
            if element not in made
        ),
    ]


GRAPH = Group(
    "graph",
    {
        "operation": list(TABLE),
        "rank": _RANKS,
        "type": [element.value for element in Element],
        "target": [target.value for target in Target],
    },
    (("operation", "target"), ("rank", "target"), ("type", "target")),
    _illegal(),
)
"""Of the first output."""


def samples(graph: Graph) -> Iterator[str]:
    """Yield the sample of each operation of a network that was compiled."""
    for operation in graph.operations:
        if operation.place is not None and operation.outputs:
            type_ = graph.type(operation.outputs[0])
            rank, target = str(len(type_.shape)), operation.place.target.value
            yield GRAPH.row(operation.kind, rank, type_.element.value, target)
