# SPDX-License-Identifier: Apache-2.0
"""Gives integers to what the chip touches: from the network, or from samples."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import numpy as np

from npu.graph.form import Graph, Operation, OperationPlace, Target, TensorType
from npu.graph.passes.facts import LINEAR, Facts
from npu.graph.passes.placing.cut import least_cut
from npu.graph.passes.placing.place_rules import UNIT
from npu.graph.passes.quantising.calibrate import Range
from npu.graph.passes.quantising.given import given_types
from npu.graph.passes.quantising.image_writer import ImageWriter
from npu.graph.passes.quantising.tensor_types import MissingScaleError, chosen
from npu.graph.passes.quantising.weight_integers import Rounding
from npu.graph.passes.quantising.wide import moved, without_tables

LEAST_PROBABILITY = 1 / 16
"""Rows without a larger probability than this keep fewer than four bits of it."""
_SCORES = 32767 * UNIT
_MOVES = frozenset({"identity", "reshape", "slice", "transpose"})


def quantise(
    graph: Graph,
    ranges: Mapping[str, Range] | None = None,
    wide: frozenset[str] = frozenset(),
    roundings: Mapping[str, Rounding] | None = None,
) -> Graph:
    """Give every tensor that the chip touches its integers.

    Args:
        graph: after the pass `place`.
        ranges: of `calibrate`; None for a network that is quantised already.
        wide: tensors that are to have 16 bits where the chip can make them so.
        roundings: of the weights of products by name, to nearest int8 where there is none.

    Returns:
        The graph in which operations of the chip read and assign integers with scales, and
        operations `quantise` and `dequantise` are the borders to the host.

    Raises:
        GraphError: a scale is neither given nor known from samples.
    """
    graph, ranges, wide = without_tables(without_misfits(graph, ranges), ranges, wide)
    graph, types = _typed(graph, ranges, wide)
    return ImageWriter(graph, ranges, types, moved(graph, wide), roundings).write()


def _typed(
    graph: Graph, ranges: Mapping[str, Range] | None, wide: frozenset[str]
) -> tuple[Graph, Mapping[str, TensorType]]:
    """Return the types on the chip; what a quantised network leaves in float goes to the host.

    A network with products of which none would be left is one in float, and its error stays.
    """
    first: MissingScaleError | None = None
    products = _multiplies(graph)
    while True:
        given = given_types(graph)
        try:
            return graph, chosen(graph, ranges, given, wide)
        except MissingScaleError as error:
            first = first or error
            if ranges is not None or not given:
                raise
            graph = least_cut(_without(graph, error.tensor))
        if products and not _multiplies(graph):
            raise first


def _multiplies(graph: Graph) -> bool:
    """Say whether the chip has a product of its own, more than a factor for each channel."""
    facts = Facts(graph)
    return any(op.on_chip and op.kind in LINEAR and not facts.scales(op) for op in graph.operations)


def _without(graph: Graph, tensor: str) -> Graph:
    """Move to the host who makes a tensor without scale, or who reads it."""
    maker = graph.producers().get(tensor)
    readers = graph.consumers()[tensor]
    moved = [maker] if maker is not None and maker.on_chip else readers
    names = {one.name for one in moved}
    place = OperationPlace(Target.HOST, f"{tensor!r} has no scale, neither given nor from samples")
    return graph.with_operations(
        replace(op, place=place) if op.name in names else op for op in graph.operations
    )


def without_misfits(graph: Graph, ranges: Mapping[str, Range] | None) -> Graph:
    """Move to the host what integers of the chip do not hold, as calibration saw or as given."""
    makers = graph.producers()
    moved = {
        op.name: why
        for op in graph.operations
        if (why := _far_scores(graph, makers, op) if ranges is None else _misfit(op, ranges))
    }
    if not moved:
        return graph
    return least_cut(
        graph.with_operations(
            replace(op, place=OperationPlace(Target.HOST, moved[op.name]))
            if op.name in moved
            else op
            for op in graph.operations
        )
    )


def _misfit(op: Operation, ranges: Mapping[str, Range]) -> str:
    """Return the sentence why calibration forbids an operation on the chip, "" if it does not."""
    if not op.on_chip:
        return ""
    if op.kind == "softmax":
        return _poor_rows(op, ranges)
    # The integers of a mask saturate, and hide as infinity does.
    read = op.used[:3] if op.kind == "attention" else op.used
    for name in (*read, *op.outputs):
        if name in ranges and not ranges[name].finite:
            return f"calibration saw infinities or NaN in {name!r}, integers have none"
    return ""


def _far_scores(graph: Graph, makers: Mapping[str, Operation], op: Operation) -> str:
    """Return the sentence why given integers forbid a softmax on the chip, "" if they do not."""
    if not op.on_chip or op.kind != "softmax":
        return ""
    maker = makers.get(op.inputs[0])
    while maker is not None and maker.kind in _MOVES:
        maker = makers.get(maker.inputs[0])
    if maker is None or maker.kind != "dequantise":
        return ""
    kind = graph.type(maker.inputs[0])
    if kind.quantisation is None or kind.quantisation.axis is not None:
        return ""
    edge, given = np.iinfo(kind.element.dtype), kind.quantisation
    reach = max(edge.max - given.zero, given.zero - edge.min) * given.scale
    if reach <= _SCORES:
        return ""
    return f"its scores are given up to {reach:.6g}, the chip takes +-{_SCORES:.0f}"


def _poor_rows(op: Operation, ranges: Mapping[str, Range]) -> str:
    """Return the sentence why calibration forbids a softmax on the chip, "" if it does not."""
    scores, results = (ranges.get(name) for name in (op.inputs[0], op.outputs[0]))
    most = _SCORES
    if scores is not None and max(abs(scores.low), abs(scores.high)) > most:
        found = max(abs(scores.low), abs(scores.high))
        return f"calibration saw scores of {found:.6g}, the chip takes +-{most:.0f}"
    if results is not None and 0 < results.high < LEAST_PROBABILITY:
        return (
            f"calibration saw no probability above {results.high:.3g}, those of the chip are "
            "multiples of 1/256"
        )
    return ""
