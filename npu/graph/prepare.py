# SPDX-License-Identifier: Apache-2.0
"""The passes in the order in which the compiler applies them."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Literal, get_args

from npu.graph.form import Graph, GraphError, UnfusedError
from npu.graph.inputs import Samples
from npu.graph.passes.canonical.canonicalise import canonicalise
from npu.graph.passes.fusing.fuse import fuse
from npu.graph.passes.fusing.integer_borders import integer_borders, integer_states
from npu.graph.passes.placing.place import place
from npu.graph.passes.quantising.calibrate import calibrate
from npu.graph.passes.quantising.input_moments import GraphMoments
from npu.graph.passes.quantising.quantise import quantise
from npu.graph.passes.quantising.weight_formats import encodings
from npu.graph.passes.quantising.wide import wide_tensors
from npu.graph.verify import verify
from weights.formats.recipe import INT8_NETWORK, NetworkRecipe

Io = Literal["float", "int8"]
"""What a network takes and gives: real numbers, or integers as the chip has them."""
PASSES = ("import", "canonical", "place", "quantise", "fuse")
"""Their names, as those of the files that `--keep` writes."""


def prepare(
    graph: Graph,
    *,
    samples: Samples | str | None = None,
    calibration: str = "percentile",
    host: Sequence[str] = (),
    npu: Sequence[str] = (),
    port: Sequence[str] = (),
    refused: Mapping[str, str] | None = None,
    io: Io = "float",
    keep: Callable[[str, Graph], None] | None = None,
    file: str = "",
    wide: Sequence[str] = (),
    weights: NetworkRecipe = INT8_NETWORK,
) -> Graph:
    """Bring an imported graph to the integers that the chip computes with.

    Args:
        graph: of an importer.
        samples: for calibration, one array per input whose first axis counts samples, or
            "random:N"; None for a graph that is quantised already.
        calibration: how scales are found in them, one of `calibrate.METHODS`.
        host: names of operations or kinds that the host is to execute.
        npu: names of operations or kinds that programs of the chip are to execute.
        port: names of operations or kinds that its command port is to execute.
        refused: operations for which the chip has no room, each with the reason.
        io: "int8" for inputs and outputs in integers, with their scales; int16 where a result has
            more bits.
        keep: called with the name of each pass and its result.
        file: named in errors.
        wide: names of inputs, operations or kinds whose values are to have 16 bits on the chip.
        weights: formats of the real constant weights of products.

    Returns:
        The fused graph, verified.

    Raises:
        GraphError: naming file, operation and tensor.
    """
    try:
        if io not in get_args(Io):
            raise GraphError(f"io: given {io!r}, allowed {', '.join(get_args(Io))}")
        wishes = {"host": host, "npu": npu, "port": port}
        known = (samples, calibration, wide, weights)
        return _prepare(graph, known, wishes, refused or {}, io, keep)
    except GraphError as error:
        if file and not str(error).startswith(file):
            raise GraphError(f"{file}: {error}") from None
        raise


def _prepare(
    graph: Graph,
    known: tuple[Samples | str | None, str, Sequence[str], NetworkRecipe],
    wishes: Mapping[str, Sequence[str]],
    refused: Mapping[str, str],
    io: Io,
    keep: Callable[[str, Graph], None] | None,
) -> Graph:
    def passed(name: str, result: Graph) -> Graph:
        verify(result, placed=name in PASSES[2:])
        if keep is not None:
            keep(name, result)
        return result

    passed(PASSES[0], graph)
    canonical = passed(PASSES[1], canonicalise(graph))
    unfit = dict(refused)
    while True:
        placed = passed(PASSES[2], place(canonical, **wishes, refused=unfit))
        quantised = passed(PASSES[3], _quantised(placed, known))
        try:
            fused = integer_states(fuse(quantised))
        except UnfusedError as error:
            name = origin_of(error.operation, canonical)
            if not name or name in unfit:
                raise
            unfit[name] = error.why
        else:
            return passed(PASSES[4], fused if io == "float" else integer_borders(fused))


def _quantised(
    placed: Graph, known: tuple[Samples | str | None, str, Sequence[str], NetworkRecipe]
) -> Graph:
    samples, method, wide, weights = known
    moments = GraphMoments(placed, encodings(placed, weights))
    ranges = None if samples is None else calibrate(placed, samples, method, moments.add)
    wide_ones, rounded = wide_tensors(placed, wide), moments.roundings()
    return quantise(placed, ranges, wide_ones, rounded)


def origin_of(name: str, graph: Graph) -> str:
    """Return the operation of a graph of which one that passes have made is a part, or ""."""
    names = {one.name for one in graph.operations}
    while name and name not in names:
        name = name.rpartition(".")[0]
    return name
