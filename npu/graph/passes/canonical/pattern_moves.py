# SPDX-License-Identifier: Apache-2.0
"""Chains of moves that two moves replace; scales and repetitions in front of attention."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from npu.graph.form import Array, Element, Names, Operation
from npu.graph.passes.canonical.attention_moves import as_moves, origin
from npu.graph.passes.canonical.edit import Replacement
from npu.graph.passes.canonical.region import GraphView, meaning, uniform

_MOVES = ("reshape", "transpose")
_LARGEST = 1 << 24


def shortened(view: GraphView, root: Operation, names: Names) -> Replacement | None:
    """Replace three or more reshapes and transposes by a transpose and a reshape."""
    if root.kind not in _MOVES or view.graph.type(root.outputs[0]).size > _LARGEST:
        return None
    if view.graph.type(root.outputs[0]).quantisation is not None:
        return None
    chain = [root]
    while True:
        made = view.maker(chain[0].inputs[0], *_MOVES)
        if made is None or view.readers(made.outputs[0]) != 1:
            break
        chain.insert(0, made)
    if len(chain) < 3:
        return None
    source = chain[0].inputs[0]
    shape = view.shape(source)
    value: Array = np.arange(math.prod(shape)).reshape(shape)
    for one in chain:
        value = meaning(one.kind, one.attributes, [value], [None], view.graph.type(one.outputs[0]))
    edit = Replacement(view, root, names)
    made_name = as_moves(edit, source, value)
    if made_name is None or len(edit.operations) >= len(chain):
        return None
    if not edit.operations:
        edit.last("identity", [source])
        return edit
    return edit.named(made_name)


def scaled(view: GraphView, root: Operation, names: Names) -> Replacement | None:
    """Take a factor of queries or keys into the scale of attention."""
    if root.kind != "attention":
        return None
    for index in (0, 1):
        name = root.inputs[index]
        moves: list[Operation] = []
        while (one := view.maker(name)) is not None and one.kind in (*_MOVES, "expand"):
            moves.insert(0, one)
            name = one.inputs[0]
        found = _factor(view, name)
        if found is None or found[1] <= 0:
            continue
        edit = Replacement(view, root, names)
        made = found[0]
        for one in moves:
            given: dict[str, Any] = {**one.attributes}
            made = edit.step(one.kind, [made], **given)
        inputs = [made if place == index else old for place, old in enumerate(root.inputs)]
        if root.inputs[0] == root.inputs[1]:
            continue
        attributes: dict[str, Any] = {**root.attributes, "scale": float(root["scale"]) * found[1]}
        edit.last("attention", inputs, **attributes)
        return edit
    return None


def grouped(view: GraphView, root: Operation, names: Names) -> Replacement | None:
    """Let heads share keys and values that are repeated for them."""
    if root.kind != "attention":
        return None
    heads = view.shape(root.inputs[1])[1]
    found = [origin(view, name) for name in root.inputs[1:3]]
    for times in range(heads, 1, -1):
        if heads % times:
            continue
        few = [value[:, ::times] for _, value in found]
        if not all(
            np.array_equal(np.repeat(one, times, axis=1), value)
            for one, (_, value) in zip(few, found, strict=True)
        ):
            continue
        edit = Replacement(view, root, names)
        made = [as_moves(edit, name, one) for one, (name, _) in zip(few, found, strict=True)]
        if None in made:
            continue
        inputs = [root.inputs[0], *(name or "" for name in made), *root.inputs[3:]]
        attributes: dict[str, Any] = {**root.attributes}
        edit.last("attention", inputs, **attributes)
        return edit
    return None


def chosen(view: GraphView, root: Operation, names: Names) -> Replacement | None:
    """Replace a choice whose condition is known by what it chooses."""
    if root.kind != "select":
        return None
    condition = view.graph.constant(root.inputs[0])
    if condition is None or not condition.size or condition.any() != condition.all():
        return None
    taken = root.inputs[1 if condition.all() else 2]
    edit = Replacement(view, root, names)
    if view.graph.type(taken) == view.graph.type(root.outputs[0]):
        edit.last("identity", [taken])
    elif view.graph.type(taken).element == view.graph.type(root.outputs[0]).element:
        edit.last("expand", [taken], shape=view.shape(root.outputs[0]))
    else:
        return None
    return edit


def _factor(view: GraphView, name: str) -> tuple[str, float] | None:
    """Return the tensor that is multiplied by one number, and the number."""
    made = view.maker(name)
    if made is None or view.graph.type(name).element != Element.F32 or view.readers(name) != 1:
        return None
    if made.kind == "table" and made["functions"] == ("scale",):
        return made.inputs[0], float(made["parameters"][0])
    if made.kind not in ("mul", "div"):
        return None
    number = uniform(view.graph.constant(made.inputs[1]))
    if number and view.shape(made.inputs[0]) == view.shape(name):
        return made.inputs[0], number if made.kind == "mul" else 1.0 / number
    number = uniform(view.graph.constant(made.inputs[0]))
    if number and made.kind == "mul" and view.shape(made.inputs[1]) == view.shape(name):
        return made.inputs[1], number
    return None
