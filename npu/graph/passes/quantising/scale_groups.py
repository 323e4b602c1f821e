# SPDX-License-Identifier: Apache-2.0
"""Groups of tensors that share one scale, while they are found."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np

from npu.graph.form import Element, Graph, Quantisation
from npu.graph.operations import Trait, with_trait
from npu.graph.passes.facts import LINEAR, MOVES, SUMS, Facts, turns_rows
from npu.graph.passes.quantising.calibrate import Range

FINER = 64
"""Steps of an int16 operand of a sum in one of the int8 result."""
_NARROW_MAKERS = with_trait(Trait.BYTES) - {"conv"} | {"mul"}


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


class Ties:
    """The groups of a graph while they are found."""

    def __init__(
        self,
        graph: Graph,
        ranges: Mapping[str, Range] | None,
        wanted: frozenset[str] = frozenset(),
    ) -> None:
        """Begin with a group for each tensor.

        Args:
            graph: after the pass `place`.
            ranges: of calibration, None without samples.
            wanted: tensors that somebody wants to have 16 bits.
        """
        self.graph = graph
        self.facts = Facts(graph)
        self.ranges = ranges
        self.wanted = wanted
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

    def magnitude(self, name: str, *, outliers: bool = False) -> float | None:
        """Return the range that the scale of a tensor is to cover, None if nobody knows.

        Args:
            name: of the tensor.
            outliers: whether it has to cover the largest magnitude, whatever calibration clips.
        """
        value = self.facts.value(name)
        if value is not None:
            finite = value[np.isfinite(value)]
            return float(np.abs(finite).max()) if finite.size else 0.0
        if name in self.covered:
            return self.covered[name]
        if self.ranges is None or name not in self.ranges:
            return None
        found = self.ranges[name]
        return max(found.magnitude, -found.low, found.high) if outliers else found.magnitude

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
        if maker.kind == "mul" and name in self.wanted:
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
        made = maker.kind in LINEAR | SUMS or self.facts.absorbed(maker)
        return made and self.can_be_wide(name)


def whole(ties: Ties, name: str, *, outliers: bool = False) -> float | None:
    """Return the range that the scale of a tensor's group is to cover."""
    members = ties.group(name).members
    sizes = [ties.magnitude(each, outliers=outliers) for each in members]
    known = [size for size in sizes if size is not None]
    return max(known) if len(known) == len(sizes) else None


def scale_of(wish: float) -> float:
    """Return a scale that float32 holds; that of an all-zero tensor is 1."""
    return float(np.float32(wish)) if wish > 1e-30 else 1.0
