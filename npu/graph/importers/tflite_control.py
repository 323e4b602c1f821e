# SPDX-License-Identifier: Apache-2.0
"""TFLite operators that run other subgraphs, which stand in their place."""

from __future__ import annotations

import numpy as np

from npu.graph.importers.tflite_reader import Handle, Handler, TfliteNode, Value

OPERATORS = 4096
"""More in all turns of a loop are refused."""


def call(node: TfliteNode) -> tuple[Value, ...]:
    """Map CALL."""
    return node.inside(node.option(0), _given(node))


def branch(node: TfliteNode) -> tuple[Value, ...]:
    """Map IF: the branch that a constant chooses, else both, and of each result one."""
    condition, given = node.name(0), _given(node, 1)
    value = node.build.value(condition)
    if value is not None:
        chosen = [node.option(field) for field in (0, 1)][not value.any()]
        return node.inside(chosen, given)
    before = node.reader.held()
    sides = []
    for field in (0, 1):
        sides.append(node.inside(node.option(field), given))
        if node.reader.held() != before:
            raise node.error("its branches assign variables, allowed where its condition is known")
    if len(sides[0]) != len(sides[1]):
        raise node.error(f"{len(sides[0])} results, else {len(sides[1])}")
    scalar = node.build.reshape(condition, (), node.source)
    return tuple(
        node.chosen(index, scalar, *one) for index, one in enumerate(zip(*sides, strict=True))
    )


def loop(node: TfliteNode) -> tuple[Value, ...]:
    """Map WHILE whose turns do not depend on values: turn by turn."""
    given = _given(node)
    size = max(1, len(node.reader.model.subgraph(node.option(1)).operators))
    for _ in range(OPERATORS // size + 1):
        (go,) = node.reader.inside(node.option(0), given, node)
        value = None if isinstance(go, Handle) else node.build.value(go)
        if value is None:
            raise node.error("its condition depends on values, allowed what constants decide")
        if not np.any(value):
            return given
        given = node.inside(node.option(1), given)
    raise node.error(f"more than {OPERATORS:,} operators in all turns")


def _given(node: TfliteNode, first: int = 0) -> tuple[Value, ...]:
    """Return what inputs are: tensors of the graph, or places of variables."""
    return tuple(node.passed(index) for index in range(first, len(node.operator.inputs)))


HANDLERS: dict[str, Handler] = {"CALL": call, "IF": branch, "WHILE": loop}
