# SPDX-License-Identifier: Apache-2.0
"""Groups of tensors that share one scale, and what is wanted of each group."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np

from npu.graph.form import Element, Graph, GraphError, Operation, Quantisation, TensorType
from npu.graph.passes.calibrate import Range
from npu.graph.passes.facts import LINEAR, MOVES, PAIRS, Facts, is_diagonal, turns_rows
from npu.graph.passes.place_rules import UNIT
from npu.graph.passes.samples import wanted

MARGIN16 = 1.25
"""How much more than what calibration saw an int16 tensor holds."""
FREE = 2.0
"""The loss of resolution up to which operands of sums and pieces of a whole share a scale."""
_FINER = 64
"""Steps of such an int16 operand in one of the int8 result."""
SCORES = Quantisation((UNIT,))
NORMALISED = Quantisation((2.0**-10,))
PROBABILITIES = Quantisation((1 / 256,))
NOT_NEGATIVE = frozenset(
    ("sigmoid", "exp", "softplus", "hard_sigmoid", "sqrt", "square", "abs", "rsqrt")
)
_NARROW_MAKERS = ("table", "maxpool", "avgpool", "mean", "attention", "rope", "softmax", "mul")
_NARROW_READERS = ("maxpool", "rope", "attention")


@dataclass
class Group:
    """Tensors with one scale.

    Attributes:
        members: their names.
        fixed: the scale and element type they must have.
        wide: whether one of them should be int16.
        narrow: whether one of them cannot be.
    """

    members: list[str]
    fixed: tuple[Element, Quantisation] | None = None
    wide: bool = False
    narrow: bool = False
    limits: dict[str, float] = field(default_factory=dict)


class MissingScaleError(GraphError):
    """A tensor of the chip has no scale.

    Attributes:
        tensor: its name.
    """

    def __init__(self, message: str, tensor: str) -> None:
        """Keep the tensor's name beside the message."""
        super().__init__(message)
        self.tensor = tensor


class Ties:
    """The groups of a graph while they are found."""

    def __init__(self, graph: Graph, ranges: Mapping[str, Range] | None) -> None:
        """Begin with a group for each tensor."""
        self.graph = graph
        self.facts = Facts(graph)
        self.ranges = ranges
        self.groups: dict[str, Group] = {}
        self.covered: dict[str, float] = {}

    def group(self, name: str) -> Group:
        """Return the group of a tensor."""
        if name not in self.groups:
            self.groups[name] = Group([name])
        return self.groups[name]

    def fix(self, name: str, element: Element, quantisation: Quantisation) -> None:
        """Say what a tensor is; what was said first stays."""
        group = self.group(name)
        if group.fixed is None:
            group.fixed = (element, quantisation)

    def tie(self, names: list[str]) -> bool:
        """Make one group of several; False if what they must be differs."""
        groups = list({id(one): one for one in map(self.group, names)}.values())
        fixed = {one.fixed for one in groups if one.fixed is not None}
        if len(fixed) > 1:
            return False
        whole = Group(
            [name for one in groups for name in one.members],
            next(iter(fixed), None),
            any(one.wide for one in groups),
            any(one.narrow for one in groups),
        )
        for name in whole.members:
            self.groups[name] = whole
        return True

    def magnitude(self, name: str) -> float | None:
        """Return what the scale of a tensor is to cover, None if nobody knows."""
        value = self.facts.value(name)
        if value is not None:
            finite = value[np.isfinite(value)]
            return float(np.abs(finite).max()) if finite.size else 0.0
        if name in self.covered:
            return self.covered[name]
        if self.ranges is None or name not in self.ranges:
            return None
        return self.ranges[name].magnitude

    def can_be_wide(self, name: str) -> bool:
        """Say whether what makes a tensor can make it int16."""
        maker = self.facts.maker(name)
        if maker is None or not maker.on_chip:
            return True
        if maker.kind == "transpose" and turns_rows(maker):
            return False
        if maker.kind in (*MOVES, "clip"):
            return all(self.can_be_wide(one) for one in maker.inputs)
        if self.facts.absorbed(maker):
            return True
        return maker.kind not in _NARROW_MAKERS

    def can_be_scores(self, name: str) -> bool:
        """Say whether a tensor that only a softmax reads can be made in the unit of scores."""
        maker = self.facts.maker(name)
        if maker is None or not maker.on_chip:
            return True
        if maker.kind in MOVES:
            alone = all(self.facts.only_reader(one) is maker for one in maker.inputs)
            return alone and self.can_be_wide(name) and all(map(self.can_be_scores, maker.inputs))
        made = maker.kind in (*LINEAR, *PAIRS[:2]) or self.facts.absorbed(maker)
        return made and self.can_be_wide(name)


def chosen(
    graph: Graph, ranges: Mapping[str, Range] | None, given: Mapping[str, TensorType]
) -> Mapping[str, TensorType]:
    """Return the type on the chip of each real tensor of the chip.

    Args:
        graph: after the pass `place`.
        ranges: of calibration, None without samples.
        given: types that the network gives.

    Raises:
        MissingScaleError: a scale is neither given nor can it be found without samples.
    """
    ties = Ties(graph, ranges)
    for name, kind in given.items():
        assert kind.quantisation is not None
        ties.fix(name, kind.element, kind.quantisation)
    _fix(ties)
    _widths(ties)
    for one in graph.operations:
        if one.on_chip:
            _tie_moves(ties, one)
    for one in reversed(graph.operations):
        if one.on_chip:
            _tie_clip(ties, one)
    for one in graph.operations:
        if one.on_chip:
            _tie_free(ties, one)
    return {name: _type(ties, name) for name in _touched(ties)}


def _touched(ties: Ties) -> list[str]:
    found: dict[str, None] = {}
    for one in ties.graph.operations:
        if one.on_chip:
            for name in (*ties.facts.activations(one), *one.outputs):
                if ties.graph.type(name).element == Element.F32:
                    found[name] = None
    return list(found)


def _fix(ties: Ties) -> None:
    """Fix what instructions prescribe: scores, probabilities, rows of a norm without gain."""
    facts = ties.facts
    for one in ties.graph.operations:
        if not one.on_chip:
            continue
        x, y = one.inputs[0], one.outputs[0]
        if one.kind == "softmax":
            ties.fix(y, Element.U8, PROBABILITIES)
            if facts.only_reader(x) is one and ties.can_be_scores(x):
                ties.fix(x, Element.I16, SCORES)
        if one.kind in ("layernorm", "rmsnorm") and len(one.used) == 1:
            reader = facts.only_reader(y)
            if reader is not None and reader.on_chip and _is_scaling(facts, reader, y):
                ties.fix(y, Element.I16, NORMALISED)


def _is_scaling(facts: Facts, reader: Operation, y: str) -> bool:
    return (
        reader.kind in LINEAR
        and reader.inputs[0] == y
        and (
            (reader.kind == "conv" and reader["groups"] == facts.graph.type(y).shape[-1])
            or (reader.kind == "matmul" and is_diagonal(facts.value(reader.inputs[1])))
        )
    )


def _widths(ties: Ties) -> None:
    """Say which tensors want 16 bits: rows of norms, sums that are added to again, logits."""
    facts, graph = ties.facts, ties.graph
    for one in graph.operations:
        if not one.on_chip:
            continue
        if one.kind in ("layernorm", "rmsnorm", "softmax"):
            ties.group(one.inputs[0]).wide = True
        if one.kind in ("add", "sub"):
            for name in one.inputs:
                maker = facts.maker(name)
                if maker is not None and maker.on_chip and maker.kind in ("add", "sub"):
                    ties.group(name).wide = True
                    ties.group(one.outputs[0]).wide = True
        linear = one.kind in LINEAR or facts.absorbed(one)
        if linear and _is_result(facts, one.outputs[0]):
            ties.group(one.outputs[0]).wide = True
        if one.kind in _NARROW_READERS:
            for name in facts.activations(one):
                ties.group(name).narrow = True
        for name in one.outputs:
            if not ties.can_be_wide(name):
                ties.group(name).narrow = True
        if one.kind == "transpose" and turns_rows(one):
            ties.group(one.inputs[0]).narrow = ties.group(one.outputs[0]).narrow = True


def _is_result(facts: Facts, name: str) -> bool:
    """Say whether a tensor is an output of the graph, perhaps in another shape."""
    if name in facts.graph.outputs:
        return True
    reader = facts.only_reader(name)
    return reader is not None and reader.kind == "reshape" and _is_result(facts, reader.outputs[0])


def _tie_moves(ties: Ties, one: Operation) -> None:
    x, y = one.inputs[0], one.outputs[0]
    if one.kind in (
        "reshape",
        "slice",
        "transpose",
        "identity",
        "expand",
        "pad",
        "maxpool",
        "rope",
    ):
        ties.tie([x, y])
    elif one.kind == "attention":
        ties.tie([one.inputs[2], y])


def _tie_clip(ties: Ties, one: Operation) -> None:
    """Give what only a clip reads the scale of its result: saturating there loses nothing."""
    if one.kind != "clip":
        return
    x, y = one.inputs[0], one.outputs[0]
    if ties.facts.only_reader(x) is not one or len(ties.group(x).members) > 1:
        return
    if ties.group(x).fixed is not None and ties.group(y).fixed is None:
        return
    known = ties.magnitude(y)
    if known is not None:
        ties.covered[x] = known
    ties.tie([x, y])


def _tie_free(ties: Ties, one: Operation) -> None:
    """Tie operands and results of sums where that costs no more than a bit."""
    if one.kind not in PAIRS[:2] + PAIRS[3:] and one.kind != "concat":
        return
    names = [*one.inputs, one.outputs[0]]
    result = ties.group(one.outputs[0])
    if result.wide and not result.narrow and one.kind != "concat":
        _tie_wide(ties, one)
        return
    if any(ties.group(name).fixed is not None for name in names):
        _tie_fixed(ties, one)
        return
    found = [_whole(ties, name) for name in names]
    sizes = [size for size in found if size is not None and size > 0]
    if len(sizes) == len(found) and max(sizes) <= FREE * min(sizes):
        ties.tie(names)
    elif len(sizes) == len(found) and one.kind in ("add", "sub"):
        _widen(ties, one, max(sizes), sizes[-1])


def _widen(ties: Ties, one: Operation, largest: float, result: float) -> None:
    """Let a product make an operand of an untied sum in 16 bits, so that the sum is exact."""
    if largest > result * 256 / _FINER * 0.99:
        return
    for name in one.inputs:
        maker, group = ties.facts.maker(name), ties.group(name)
        alone = len(group.members) == 1 and ties.facts.only_reader(name) is one
        if alone and maker is not None and maker.on_chip and maker.kind in LINEAR:
            scale = _scale(result / 127 / _FINER)
            ties.fix(name, Element.I16, Quantisation((scale,)))
            return


def _whole(ties: Ties, name: str) -> float | None:
    """Return what the scale of a tensor's group is to cover."""
    sizes = [ties.magnitude(each) for each in ties.group(name).members]
    known = [size for size in sizes if size is not None]
    return max(known) if len(known) == len(sizes) else None


def _tie_wide(ties: Ties, one: Operation) -> None:
    """Tie those operands of an int16 sum that can be made int16 in its scale."""
    for name in one.inputs:
        group = ties.group(name)
        if not group.narrow and group.fixed is None:
            ties.tie([name, one.outputs[0]])


def _tie_fixed(ties: Ties, one: Operation) -> None:
    """Make what only a sum reads in the scale that its result has."""
    result = ties.group(one.outputs[0])
    if result.fixed is None or result.fixed[1].zero:
        return
    for name in one.inputs:
        group = ties.group(name)
        maker = ties.facts.maker(name)
        free = group.fixed is None and len(group.members) == 1 and one.kind != "mul"
        wide = result.fixed[0] == Element.I16
        if free and maker is not None and maker.kind in LINEAR and (wide or one.kind == "concat"):
            ties.tie([name, one.outputs[0]])


def _type(ties: Ties, name: str) -> TensorType:
    group, shape = ties.group(name), ties.graph.type(name).shape
    if group.fixed is not None:
        return TensorType(shape, *group.fixed)
    magnitude = _whole(ties, name)
    if magnitude is None:
        return _derived(ties, name)
    if group.wide and not group.narrow:
        scale = magnitude * MARGIN16 / 32767
        return TensorType(shape, Element.I16, Quantisation((_scale(scale),)))
    if _one_sided(ties, group):
        return TensorType(shape, Element.I8, Quantisation((_scale(magnitude / 255),), -128))
    return TensorType(shape, Element.I8, Quantisation((_scale(magnitude / 127),)))


def _scale(wish: float) -> float:
    """Return a scale that float32 holds; that of an all-zero tensor is 1."""
    return float(np.float32(wish)) if wish > 1e-30 else 1.0


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
    if reader is not None and reader.on_chip and reader.kind in ("add", "sub"):
        fixed = ties.group(reader.outputs[0]).fixed
        if fixed is not None and ties.can_be_wide(name):
            scale = fixed[1].scale / (_FINER if fixed[0] == Element.I8 else 0.5)
            return TensorType(
                ties.graph.type(name).shape, Element.I16, Quantisation((_scale(scale),))
            )
    maker = ties.facts.maker(name)
    of = f", result of {maker.name!r}," if maker is not None else ""
    raise MissingScaleError(
        f"tensor {name!r}{of} has no scale: the network is in float and needs samples "
        f"(--calibrate FILE.npz, or random:N), allowed are {wanted(ties.graph)}",
        name,
    )
