# SPDX-License-Identifier: Apache-2.0
"""What the chip executes: for each kind a rule that gives the sentence why not, or nothing."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np

from npu.graph.form import Element, Operation
from npu.graph.operations import TABLE
from npu.graph.passes.facts import Facts, chip_type
from npu.graph.passes.place_widths import clipped, narrowed, rounded_terms

ROW_MOST = 8192
FIELD_MOST = 0xEFFF
DEPTH_MOST = 16384
_JUMPS = frozenset(("floor", "ceil", "round", "sign"))
UNIT = math.log(2) / 64
"""Scores of SOFTMAX are integers in units of 2^-6 of a binary logarithm."""


def refusal(facts: Facts, one: Operation) -> str:
    """Return the sentence why the chip cannot execute an operation, "" if it can."""
    if one.kind == "host":
        return str(one["reason"]) or f"the chip has no {one['operator']}"
    if not TABLE[one.kind].chip:
        return f"the chip has no {one.kind}"
    common = _types(facts, one) or narrowed(facts, one)
    rule = _RULES.get(one.kind)
    return common or (rule(facts, one) if rule is not None else "")


def _types(facts: Facts, one: Operation) -> str:
    graph = facts.graph
    if one.kind == "requantise":
        elements = {graph.type(name).element for name in (*one.used, *one.outputs)}
        unsigned = Element.U8 in elements
        return "the host turns the sign bit of unsigned bytes as it copies them" if unsigned else ""
    for name in (*facts.activations(one)[: 1 if one.kind == "gather" else None], *one.outputs):
        kind = graph.type(name)
        if kind.element != Element.F32:
            return f"{name!r} is {kind.element}; the chip takes real numbers that it holds in int8"
        if 0 in kind.shape:
            return f"{name!r} is empty"
        if not kind.shape:
            return f"{name!r} is a single number without axes"
    if all(facts.value(name) is not None for name in facts.activations(one)):
        return "all that it reads is constant"
    return ""


def _table(facts: Facts, one: Operation) -> str:
    """Refuse functions whose result int8 on either side does not show."""
    maker = facts.maker(one.inputs[0])
    given = maker is not None and maker.kind == "dequantise"
    jumps = sorted(_JUMPS & set(one["functions"]))
    if jumps and not given:
        return f"{jumps[0]} jumps, with int8 in front of it in other places"
    if one["functions"][0] == "log" and maker is not None and maker.kind == "softmax":
        return "logarithms of small probabilities need more than 8 bits"
    return clipped(facts, one)


def _before_log(facts: Facts, one: Operation) -> bool:
    reader = facts.only_reader(one.outputs[0])
    return reader is not None and reader.kind == "table" and reader["functions"][0] == "log"


def _matmul(facts: Facts, one: Operation) -> str:
    graph = facts.graph
    a, y = graph.type(one.inputs[0]).shape, graph.type(one.outputs[0]).shape
    depth = a[-2] if one["transpose_a"] else a[-1]
    most = DEPTH_MOST if facts.value(one.inputs[1]) is None else FIELD_MOST
    if depth > most:
        return f"its inner axis has {depth} elements, the chip takes {most}"
    if y[-1] > FIELD_MOST:
        return f"its result has {y[-1]} columns, the chip takes {FIELD_MOST}"
    if len(one.used) > 2 and facts.value(one.inputs[2]) is None:
        return "its bias is not constant"
    for name in one.used[:2]:
        given = facts.given_integers(name)
        if given is not None and given[1].element not in (Element.I8, Element.U8):
            return f"{name!r} is given as {given[1].element}, the chip takes int8 and uint8"
    return _whole_axis(facts, one)


def _whole_axis(facts: Facts, one: Operation) -> str:
    """Refuse weights with scales along the axis that is summed over."""
    given = facts.given_integers(one.inputs[1])
    if given is None or given[1].quantisation is None or given[1].quantisation.axis is None:
        return ""
    rank = len(given[1].shape)
    axis = rank - 2 if one.kind == "matmul" and one["transpose_b"] else rank - 1
    if given[1].quantisation.axis != axis:
        return "its weights have scales along an axis that is summed over"
    return ""


def _conv(facts: Facts, one: Operation) -> str:
    if facts.value(one.inputs[1]) is None:
        return "its filter is not constant"
    if len(one.used) > 2 and facts.value(one.inputs[2]) is None:
        return "its bias is not constant"
    shape = facts.graph.type(one.inputs[1]).shape
    depth = math.prod(shape[:3])
    if depth > FIELD_MOST:
        return f"a window has {depth} elements, the chip takes {FIELD_MOST}"
    if shape[3] > FIELD_MOST:
        return f"it has {shape[3]} filters, the chip takes {FIELD_MOST}"
    given = facts.given_integers(one.inputs[1])
    if given is not None and given[1].element not in (Element.I8, Element.U8):
        return f"its filter is given as {given[1].element}, the chip takes int8 and uint8"
    return _whole_axis(facts, one)


def _softmax(facts: Facts, one: Operation) -> str:
    if _before_log(facts, one):
        return "logarithms of small probabilities need more than 8 bits"
    length = facts.graph.type(one.inputs[0]).shape[one["axis"]]
    return _row(length)


def _row(length: int) -> str:
    if length > ROW_MOST:
        return f"a row has {length} elements, the chip takes {ROW_MOST}"
    return ""


def _norm(facts: Facts, one: Operation) -> str:
    shape = facts.graph.type(one.inputs[0]).shape
    length = math.prod(shape[len(shape) - one["axes"] :])
    for name in one.used[1:]:
        if facts.value(name) is None:
            return f"{name!r} is not constant"
    if one["epsilon"] < 0:
        return f"its epsilon is {one['epsilon']}"
    return _row(length)


def _rope(facts: Facts, one: Operation) -> str:
    for name in one.used[1:]:
        data = facts.value(name)
        if data is None:
            return f"{name!r} is not constant"
        if data.size and np.abs(data).max() > 1.99:
            return f"{name!r} leaves +-2, it holds no cosines"
    return ""


def _pool(facts: Facts, one: Operation) -> str:
    image, made = (facts.graph.type(name).shape for name in (one.inputs[0], one.outputs[0]))
    for axis in (0, 1):
        step, pads = one["strides"][axis], one["pads"]
        dilation = one.attributes.get("dilations", (1, 1))[axis]  # type: ignore[index]
        reach = (one["window"][axis] - 1) * dilation + 1
        last = (made[axis + 1] - 1) * step - pads[axis]
        if last >= image[axis + 1] or reach - pads[axis] <= 0:
            return "a window lies outside of the image"
    return ""


def _attention(facts: Facts, one: Operation) -> str:
    if one["softcap"]:
        return "its scores are capped"
    if len(one.used) > 3 and facts.value(one.inputs[3]) is None:
        return "its mask is not constant"
    if one["scale"] <= 0:
        return f"its scale is {one['scale']}"
    return _row(facts.graph.type(one.inputs[1]).shape[2])


def _slice(facts: Facts, one: Operation) -> str:
    return "its steps are negative" if min(one["steps"]) < 0 else ""


def _pad(facts: Facts, one: Operation) -> str:
    return "" if math.isfinite(one["value"]) else f"it pads with {one['value']}"


def _gather(facts: Facts, one: Operation) -> str:
    indices = facts.value(one.inputs[1])
    if indices is None:
        return "its indices are not constant"
    if indices.size > 64:
        return f"it has {indices.size} constant indices, more than 64 slices"
    return ""


def _requantise(facts: Facts, one: Operation) -> str:
    for name in (one.inputs[0], one.outputs[0]):
        if chip_type(facts.graph.type(name)) is None:
            return f"{name!r} is {facts.graph.type(name).element}, the chip takes int8 and int16"
    return ""


_RULES: dict[str, Callable[[Facts, Operation], str]] = {
    "add": rounded_terms,
    "sub": rounded_terms,
    "mul": rounded_terms,
    "max": rounded_terms,
    "min": rounded_terms,
    "clip": clipped,
    "matmul": _matmul,
    "conv": _conv,
    "softmax": _softmax,
    "layernorm": _norm,
    "rmsnorm": _norm,
    "rope": _rope,
    "maxpool": _pool,
    "avgpool": _pool,
    "attention": _attention,
    "slice": _slice,
    "pad": _pad,
    "gather": _gather,
    "requantise": _requantise,
    "table": _table,
}
