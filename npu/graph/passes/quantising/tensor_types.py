# SPDX-License-Identifier: Apache-2.0
"""The type on the chip of each real tensor: width, scale and zero point."""

from __future__ import annotations

from collections.abc import Mapping

from npu.graph.form import Element, Graph, GraphError, Quantisation, TensorType
from npu.graph.passes.facts import LINEAR, SUMS
from npu.graph.passes.quantising.calibrate import Range
from npu.graph.passes.quantising.samples import wanted
from npu.graph.passes.quantising.scale_groups import FINER, Group, Ties, scale_of, whole
from npu.graph.passes.quantising.ties import tie_all

MARGIN16 = 1.25
"""How much more than what calibration saw an int16 tensor holds."""
NOT_NEGATIVE = frozenset(
    ("sigmoid", "exp", "softplus", "hard_sigmoid", "sqrt", "square", "abs", "rsqrt")
)


class MissingScaleError(GraphError):
    """A tensor of the chip has no scale.

    Attributes:
        tensor: its name.
    """

    def __init__(self, message: str, tensor: str) -> None:
        """Keep the tensor's name beside the message."""
        super().__init__(message)
        self.tensor = tensor


def chosen(
    graph: Graph,
    ranges: Mapping[str, Range] | None,
    given: Mapping[str, TensorType],
    wide: frozenset[str] = frozenset(),
) -> Mapping[str, TensorType]:
    """Return the type on the chip of each real tensor of the chip.

    Args:
        graph: after the pass `place`.
        ranges: of calibration, None without samples.
        given: types that the network gives.
        wide: tensors that are to have 16 bits where the chip can make them so.

    Raises:
        MissingScaleError: a scale is neither given nor can it be found without samples.
    """
    ties = Ties(graph, ranges, wide)
    for name, kind in given.items():
        assert kind.quantisation is not None
        ties.fix(name, kind.element, kind.quantisation)
    tie_all(ties)
    return {name: _type(ties, name) for name in _touched(ties)}


def _touched(ties: Ties) -> list[str]:
    found: dict[str, None] = {}
    for op in ties.graph.operations:
        if op.on_chip:
            for name in (*ties.facts.activations(op), *op.outputs):
                if ties.graph.type(name).element == Element.F32:
                    found[name] = None
    return list(found)


def _type(ties: Ties, name: str) -> TensorType:
    group, shape = ties.group(name), ties.graph.type(name).shape
    if group.fixed is not None:
        return TensorType(shape, *group.fixed)
    wide = group.wide and not group.narrow
    # 16 bits have room for what is rare, 8 bits have not.
    magnitude = whole(ties, name, outliers=wide)
    if magnitude is None:
        return _derived(ties, name)
    if wide:
        scale = magnitude * MARGIN16 / 32767
        return TensorType(shape, Element.I16, Quantisation((scale_of(scale),)))
    if _one_sided(ties, group):
        return TensorType(shape, Element.I8, Quantisation((scale_of(magnitude / 255),), -128))
    return TensorType(shape, Element.I8, Quantisation((scale_of(magnitude / 127),)))


def _one_sided(ties: Ties, group: Group) -> bool:
    """Say whether a group is the result of a function that is never negative, and moves of it."""
    facts = ties.facts
    origins = [facts.maker(name) for name in group.members]
    tables = [one for one in origins if one is not None and one.kind == "table" and one.on_chip]
    others = [one for one in origins if one is None or one.kind not in ("table", "reshape")]
    if len(tables) != 1 or others or tables[0]["functions"][-1] not in NOT_NEGATIVE:
        return False
    readers = [reader for name in group.members for reader in facts.readers[name]]
    return all(
        not reader.on_chip
        or (
            reader.kind in (*LINEAR, "table", "reshape")
            and (reader.kind not in LINEAR or facts.weights(reader))
        )
        for reader in readers
    )


def _derived(ties: Ties, name: str) -> TensorType:
    """Return the type of an operand of a sum whose result is given: 16 bits, twice as far."""
    reader = ties.facts.only_reader(name)
    if reader is not None and reader.on_chip and reader.kind in SUMS:
        fixed = ties.group(reader.outputs[0]).fixed
        if fixed is not None and ties.can_be_wide(name):
            scale = fixed[1].scale / (FINER if fixed[0] == Element.I8 else 0.5)
            return TensorType(
                ties.graph.type(name).shape, Element.I16, Quantisation((scale_of(scale),))
            )
    maker = ties.facts.maker(name)
    of = f", result of {maker.name!r}," if maker is not None else ""
    raise MissingScaleError(
        f"tensor {name!r}{of} has no scale: the network is in float and needs samples "
        f"(--calibrate FILE.npz, or random:N), allowed are {wanted(ties.graph)}",
        name,
    )
