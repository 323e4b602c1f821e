# SPDX-License-Identifier: Apache-2.0
"""Which tensors share a scale, and which of them want or need a width of their own."""

from __future__ import annotations

from npu.graph.form import Element, Operation, Quantisation
from npu.graph.passes.facts import LINEAR, NORMS, PAIRS, SUMS, Facts, turns_rows
from npu.graph.passes.placing.place_rules import UNIT
from npu.graph.passes.quantising.calibrate import chip_tensors
from npu.graph.passes.quantising.scale_groups import FINER, Ties, scale_of, whole

FREE = 2.0
"""The loss of resolution up to which operands of sums and pieces of a whole share a scale."""
SCORES = Quantisation((UNIT,))
NORMALISED = Quantisation((2.0**-10,))
PROBABILITIES = Quantisation((1 / 256,))
_NARROW_READERS = ("maxpool", "rope", "attention")


def tie_all(ties: Ties) -> None:
    """Find all groups: what is prescribed first, then moves, clips, and what is free to share."""
    _fix(ties)
    _widths(ties)
    _tie_states(ties)
    operations = [op for op in ties.graph.operations if op.on_chip]
    for one in operations:
        _tie_moves(ties, one)
    for one in reversed(operations):
        _tie_clip(ties, one)
    for one in operations:
        _tie_free(ties, one)


def _fix(ties: Ties) -> None:
    """Fix what instructions prescribe: scores and masks, probabilities, norms without gain."""
    facts = ties.facts
    for op in ties.graph.operations:
        if not op.on_chip:
            continue
        x, y = op.inputs[0], op.outputs[0]
        if op.kind == "softmax":
            ties.fix(y, Element.U8, PROBABILITIES)
            if facts.only_reader(x) is op and ties.can_be_scores(x):
                ties.fix(x, Element.I16, SCORES)
        if op.kind == "attention":
            for name in facts.activations(op)[3:]:
                ties.fix(name, Element.I16, SCORES)
        if op.kind in NORMS and len(op.used) == 1:
            reader = facts.only_reader(y)
            if (
                reader is not None
                and reader.on_chip
                and reader.inputs[0] == y
                and facts.scales(reader)
            ):
                ties.fix(y, Element.I16, NORMALISED)


def _widths(ties: Ties) -> None:
    """Say which tensors want 16 bits: rows of norms, sums that are added to again, logits."""
    facts, graph = ties.facts, ties.graph
    for name in ties.wanted:
        ties.group(name).wide = True
    for op in graph.operations:
        if not op.on_chip:
            continue
        if op.kind in {"softmax", *NORMS}:
            ties.group(op.inputs[0]).wide = True
        if op.kind in SUMS:
            for name in op.inputs:
                maker = facts.maker(name)
                if maker is not None and maker.on_chip and maker.kind in SUMS:
                    ties.group(name).wide = True
                    ties.group(op.outputs[0]).wide = True
        linear = op.kind in LINEAR or facts.absorbed(op)
        if linear and _is_result(facts, op.outputs[0]):
            ties.group(op.outputs[0]).wide = True
        if op.kind in _NARROW_READERS:
            for name in facts.activations(op):
                ties.group(name).narrow = True
        for name in op.outputs:
            if not ties.can_be_wide(name):
                ties.group(name).narrow = True
        if op.kind == "transpose" and turns_rows(op):
            ties.group(op.inputs[0]).narrow = ties.group(op.outputs[0]).narrow = True


def _tie_states(ties: Ties) -> None:
    """Give what a run leaves the integers in which the next one finds it."""
    touched = {*chip_tensors(ties.graph)} if ties.graph.states else set()
    for one in ties.graph.states:
        if touched >= {one.input, one.output}:
            ties.tie([one.input, one.output])


def _is_result(facts: Facts, name: str) -> bool:
    """Say whether a tensor is an output of the graph, perhaps in another shape."""
    if name in facts.graph.outputs:
        return True
    reader = facts.only_reader(name)
    return reader is not None and reader.kind == "reshape" and _is_result(facts, reader.outputs[0])


def _tie_moves(ties: Ties, op: Operation) -> None:
    x, y = op.inputs[0], op.outputs[0]
    if op.kind in (
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
    elif op.kind == "attention":
        ties.tie([op.inputs[2], y])


def _tie_clip(ties: Ties, op: Operation) -> None:
    """Give what only a clip reads the scale of its result: saturating there loses nothing."""
    if op.kind != "clip":
        return
    x, y = op.inputs[0], op.outputs[0]
    if ties.facts.only_reader(x) is not op or len(ties.group(x).members) > 1:
        return
    if ties.group(x).fixed is not None and ties.group(y).fixed is None:
        return
    known = ties.magnitude(y)
    if known is not None:
        ties.covered[x] = known
    ties.tie([x, y])


def _tie_free(ties: Ties, op: Operation) -> None:
    """Tie operands and results of sums where that costs no more than a bit."""
    if op.kind not in PAIRS - {"mul"} | {"concat"}:
        return
    names = [*op.inputs, op.outputs[0]]
    result = ties.group(op.outputs[0])
    # A result that is given in int8 stays so: its operands would saturate before they meet.
    narrow = result.narrow or (result.fixed is not None and result.fixed[0] != Element.I16)
    if result.wide and not narrow and op.kind != "concat":
        _tie_wide(ties, op)
        return
    if any(ties.group(name).fixed is not None for name in names):
        _tie_fixed(ties, op)
        return
    found = [whole(ties, name) for name in names]
    sizes = [size for size in found if size is not None and size > 0]
    if ties.wanted.intersection(names) and any(ties.group(name).narrow for name in names):
        return
    if len(sizes) == len(found) and max(sizes) <= FREE * min(sizes):
        ties.tie(names)
    elif len(sizes) == len(found) and op.kind in SUMS:
        _widen(ties, op, max(sizes), sizes[-1])


def _widen(ties: Ties, op: Operation, largest: float, result: float) -> None:
    """Let a product make an operand of an untied sum in 16 bits, so that the sum is exact."""
    if largest > result * 256 / FINER * 0.99:
        return
    for name in op.inputs:
        maker, group = ties.facts.maker(name), ties.group(name)
        alone = len(group.members) == 1 and ties.facts.only_reader(name) is op
        if alone and maker is not None and maker.on_chip and maker.kind in LINEAR:
            scale = scale_of(result / 127 / FINER)
            ties.fix(name, Element.I16, Quantisation((scale,)))
            return


def _tie_wide(ties: Ties, op: Operation) -> None:
    """Tie those operands of an int16 sum that can be made int16 in its scale."""
    for name in op.inputs:
        group = ties.group(name)
        if not group.narrow and group.fixed is None:
            ties.tie([name, op.outputs[0]])


def _tie_fixed(ties: Ties, op: Operation) -> None:
    """Give a tensor that only a sum reads the scale of the sum."""
    result = ties.group(op.outputs[0])
    if result.fixed is None or result.fixed[1].zero:
        return
    for name in op.inputs:
        group = ties.group(name)
        maker = ties.facts.maker(name)
        free = group.fixed is None and len(group.members) == 1 and op.kind != "mul"
        wide = result.fixed[0] == Element.I16
        if free and maker is not None and maker.kind in LINEAR and (wide or op.kind == "concat"):
            ties.tie([name, op.outputs[0]])
