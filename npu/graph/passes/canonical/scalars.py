# SPDX-License-Identifier: Apache-2.0
"""Rules that make functions of one variable of arithmetic with one number, and chains one table."""

from __future__ import annotations

import math

import numpy as np

from npu.graph.form import Operation
from npu.graph.operations.base import FLOATS
from npu.graph.operations.functions import steps
from npu.graph.passes.canonical.rewrite import Walk

Chain = list[tuple[str, tuple[float, ...]]]


def scalar(walk: Walk, name: str) -> float | None:
    """Return the number that all elements of a constant are, None if there is none such."""
    data = walk.value(name)
    if data is None or data.size == 0 or walk.type(name).element not in FLOATS:
        return None
    first = data.reshape(-1)[0]
    return float(first) if bool((data == first).all()) else None


def arithmetic(walk: Walk, op: Operation) -> bool:
    """Make a function of add, sub, mul, div, pow, max and min with one number."""
    if op.kind not in ("add", "sub", "mul", "div", "pow", "max", "min"):
        return False
    if walk.type(op.outputs[0]).quantisation is not None:
        return False
    a, b = op.inputs
    if op.kind == "mul" and a == b:
        return _table(walk, op, a, [("square", ())])
    number, behind = scalar(walk, b), True
    x = a
    if number is None:
        number, behind, x = scalar(walk, a), False, b
    if number is None or walk.shape(x) != walk.shape(op.outputs[0]) or not math.isfinite(number):
        return False
    chain = _functions(op.kind, number, behind)
    return chain is not None and _table(walk, op, x, chain)


def _functions(kind: str, number: float, behind: bool) -> Chain | None:
    """Return the functions of an operation with a number; `behind` if the number is second."""
    if kind == "add":
        return [("shift", (number,))]
    if kind == "mul":
        return [("scale", (number,))]
    if kind == "sub":
        return [("shift", (-number,))] if behind else [("scale", (-1.0,)), ("shift", (number,))]
    if kind == "div":
        if behind:
            return [("scale", (1.0 / number,))] if number else None
        return [("reciprocal", ()), ("scale", (number,))]
    if kind == "max":
        return [("clip", (number, math.inf))]
    if kind == "min":
        return [("clip", (-math.inf, number))]
    if not behind:
        return [("scale", (math.log(number),)), ("exp", ())] if number > 0 else None
    known: dict[float, Chain] = {
        2.0: [("square", ())],
        0.5: [("sqrt", ())],
        -0.5: [("rsqrt", ())],
        -1.0: [("reciprocal", ())],
        1.0: [("scale", (1.0,))],
    }
    return known.get(number, [("power", (number,))])


def _table(walk: Walk, op: Operation, x: str, chain: Chain, source: str = "") -> bool:
    walk.emit(
        op,
        "table",
        [x],
        output=op.outputs[0],
        source=source,
        functions=[name for name, _ in chain],
        parameters=[value for _, values in chain for value in values],
    )
    return True


def chain_of(op: Operation) -> Chain | None:
    """Return the functions of a table or clip."""
    if op.kind == "clip":
        return [("clip", (op["low"], op["high"]))]
    if op.kind == "table":
        return list(steps(op["functions"], op["parameters"]))
    return None


def composed(walk: Walk, op: Operation) -> bool:
    """Make one table of two that follow each other."""
    after = chain_of(op)
    before = walk.only(op.inputs[0], "table", "clip") if after is not None else None
    first = chain_of(before) if before else None
    if after is None or before is None or first is None:
        return False
    if walk.type(op.inputs[0]).quantisation is not None:
        return False
    if walk.type(op.inputs[0]).element not in FLOATS:
        return False
    simple = simplified([*first, *after])
    source = " + ".join(dict.fromkeys(name for name in (before.source, op.source) if name))
    walk.emit(
        before,
        "table",
        before.inputs,
        output=op.outputs[0],
        source=source,
        functions=[name for name, _ in simple],
        parameters=[value for _, values in simple for value in values],
    )
    return True


def simplified(chain: Chain) -> Chain:
    """Join neighbouring scales, shifts and clips, and drop those that do nothing.

    One function is left in any case.
    """
    found: Chain = []
    for name, values in chain:
        if name == "relu":
            name, values = "clip", (0.0, math.inf)
        if name == "neg":
            name, values = "scale", (-1.0,)
        last, given = found[-1] if found else ("", ())
        if name == last == "scale":
            found[-1] = ("scale", (given[0] * values[0],))
        elif name == last == "shift":
            found[-1] = ("shift", (given[0] + values[0],))
        elif name == last == "clip":
            low, high = max(given[0], values[0]), min(given[1], values[1])
            found[-1] = ("clip", (min(low, values[1]), max(high, values[0])))
        else:
            found.append((name, values))
    left = [one for one in found if one not in (("scale", (1.0,)), ("shift", (0.0,)))]
    if len(left) < len(found) and left:
        return simplified(left)
    return [_shown(one) for one in left or found[:1]]


def _shown(one: tuple[str, tuple[float, ...]]) -> tuple[str, tuple[float, ...]]:
    """Return how a function is written: relu and neg have names."""
    if one == ("clip", (0.0, math.inf)):
        return ("relu", ())
    return ("neg", ()) if one == ("scale", (-1.0,)) else one


def normal(walk: Walk, op: Operation) -> bool:
    """Write a table or clip in its shortest form; a clip alone is a clip, but for relu."""
    chain = chain_of(op)
    if chain is None or walk.type(op.outputs[0]).element not in FLOATS:
        return False
    simple = simplified(chain)
    if len(simple) == 1 and simple[0][0] == "clip":
        low, high = simple[0][1]
        if op.kind == "clip" and (low, high) == (op["low"], op["high"]):
            return False
        walk.emit(op, "clip", op.inputs, output=op.outputs[0], low=low, high=high)
        return True
    if op.kind == "table" and simple == chain:
        return False
    return _table(walk, op, op.inputs[0], simple)


def vectors(walk: Walk, op: Operation) -> bool:
    """Write division by and subtraction of constants as multiplication and addition."""
    if op.kind not in ("div", "sub"):
        return False
    data = walk.value(op.inputs[1])
    kind = walk.type(op.inputs[1])
    if data is None or kind.element not in FLOATS or not np.isfinite(data).all():
        return False
    wide = data.astype(np.float64)
    if op.kind == "div" and not wide.all():
        return False
    other = (1.0 / wide if op.kind == "div" else -wide).astype(data.dtype)
    walk.emit(
        op,
        "mul" if op.kind == "div" else "add",
        [op.inputs[0], walk.constant(other, op.inputs[1])],
        output=op.outputs[0],
    )
    return True


RULES = (arithmetic, vectors, composed, normal)
