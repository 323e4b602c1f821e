# SPDX-License-Identifier: Apache-2.0
"""Sums and products of given integers on the host: the real value, rounded once.

An operator of the file that takes and gives integers means the numbers that these stand for. A
product of two int16 in float32 is off by more than what may part it from the half between two
steps; in float64 it is not. What a file dequantises itself it computes in float32, and so does the
host.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from npu.graph.form import Element, Graph, Operation, TensorType
from npu.graph.operations import TABLE
from npu.graph.passes.facts import POINTWISE, Facts
from npu.graph.passes.rewriter import Rewriter

_OF_A_FILE = {name for names in TABLE["dequantise"].sources.values() for name in names}


def exact_sums(graph: Graph) -> Graph:
    """Return the graph in which the host computes in float64 between given integers."""
    facts, writer = Facts(graph), Rewriter(graph)
    reals = _between_integers(facts)
    if not reals:
        return graph
    wide: dict[str, str] = {}
    for name in sorted(reals):
        data, kind = graph.constant(name), TensorType(graph.type(name).shape, Element.F64)
        wider = None if data is None else data.astype(np.float64)
        wide[name] = writer.tensor(f"{name}.float64", kind, wider)
    for op in graph.operations:
        if wide.keys().isdisjoint(op.outputs):
            known = wide if op.kind == "quantise" else {}
        elif op.kind == "dequantise":  # others may read it as it was
            writer.keep(op)
            writer.emit(op, op.kind, op.inputs, part="float64", output=wide[op.outputs[0]])
            continue
        else:
            known = wide
        inputs = tuple(known.get(name, name) for name in op.inputs)
        writer.keep(replace(op, inputs=inputs, outputs=tuple(known.get(n, n) for n in op.outputs)))
    return writer.rewritten()


def _between_integers(facts: Facts) -> set[str]:
    """Return the real tensors that the host makes of given integers, and only for integers."""
    graph = facts.graph
    found = {name for name, one in graph.tensors.items() if one.type.element == Element.F32}
    found -= {*graph.inputs, *graph.outputs}
    while wrong := {name for name in found if not _closed(facts, found, name)}:
        found -= wrong
    return found


def _closed(facts: Facts, found: set[str], name: str) -> bool:
    maker, readers = facts.maker(name), facts.readers[name]
    into = [one for one in readers if _computes(found, one)]
    if maker is None:
        return bool(into)
    into += [one for one in readers if one.kind == "quantise"]
    if maker.kind == "dequantise":
        return bool(into) and maker.source.split(" + ")[0] not in _OF_A_FILE
    return _computes(found, maker) and len(into) == len(readers)


def _computes(found: set[str], op: Operation) -> bool:
    """Say whether an operation of the host has nothing but such tensors."""
    return (
        op.kind in POINTWISE
        and not (op.on_chip or op.on_port)
        and found.issuperset((*op.used, *op.outputs))
    )
