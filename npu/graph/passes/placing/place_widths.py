# SPDX-License-Identifier: Apache-2.0
"""Which operations on 16 bits that a network gives the chip would compute in fewer."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from npu.graph.form import Element, Operation, TensorType
from npu.graph.operations import Trait, with_trait
from npu.graph.passes.facts import (
    LINEAR,
    MOVES,
    UNARY_MOVES,
    Facts,
    chip_type,
    quantisation_of,
    turns_rows,
)
from npu.graph.passes.wide_sums import largest

_BYTES = with_trait(Trait.BYTES)


def narrowed(facts: Facts, op: Operation) -> str:
    """Refuse given 16 bits where the chip makes int8 of them, or takes zero points of 0 alone."""
    narrow = _takes_bytes(facts, op)
    if not narrow and (op.kind in (*MOVES, *LINEAR) or _clips(op)):
        return ""
    read = [(name, _given(facts, name)) for name in facts.activations(op)]
    written = () if op.kind in LINEAR else _written(facts, op.outputs[0])
    made = [(op.outputs[0], facts.graph.type(name)) for name in written]
    for name, kind in (*read, *made):
        if kind is None or kind.element not in (Element.I16, Element.U16):
            continue
        if narrow:
            does = "takes" if (name, kind) in read else "makes"
            return f"{name!r} is given as {kind.element}, the chip {does} int8 here"
        held = chip_type(kind)
        if held is None or quantisation_of(held).zero:
            zero = quantisation_of(kind).zero
            return (
                f"{name!r} is given as {kind.element} around {zero}, the chip takes int16 around 0"
            )
    return ""


def _takes_bytes(facts: Facts, op: Operation) -> bool:
    """Say whether the chip makes int8 of what an operation reads."""
    if op.kind == "matmul":
        return not facts.weights(op)
    if op.kind == "transpose":
        return turns_rows(op)
    return op.kind in _BYTES and not _clips(op)


def _given(facts: Facts, name: str) -> TensorType | None:
    """Return the integers in which a network gives a tensor, None if it does not."""
    maker = facts.maker(name)
    while maker is not None and maker.kind in UNARY_MOVES:
        maker = facts.maker(maker.inputs[0])
    given = maker is not None and maker.kind == "dequantise"
    return facts.graph.type(maker.inputs[0]) if maker is not None and given else None


def _clips(op: Operation) -> bool:
    """Say whether a table only clips, which the chip does in int16 as well."""
    return op.kind == "table" and set(op["functions"]) <= {"relu", "clip"}


def _written(facts: Facts, name: str) -> Iterator[str]:
    """Yield the integers that a network gives of a tensor, moved and clipped on the way."""
    for reader in facts.readers[name]:
        if reader.kind == "quantise":
            yield reader.outputs[0]
        elif reader.kind == "clip" or _clips(reader) or reader.kind in UNARY_MOVES:
            yield from _written(facts, reader.outputs[0])


def _element(facts: Facts, name: str) -> Element:
    return facts.graph.type(name).element


def rescaled(given: TensorType, result: TensorType) -> bool:
    """Say whether the chip makes a given int16 of other integers exactly but for the rounding.

    Its factors have 15 bits, too few for integers of 16 unless they are the real factor.
    """
    if result.element != Element.I16:
        return True
    one, other = quantisation_of(given), quantisation_of(result)
    if one.axis is not None or other.axis is not None:
        return False
    mantissa, _ = np.frexp(np.float64(one.scale) / np.float64(other.scale))
    return bool(mantissa * (1 << 15) == np.rint(mantissa * (1 << 15)))


def clipped(facts: Facts, op: Operation) -> str:
    """Refuse what only clips, where the chip would round a given int16 to another scale first."""
    given = _given(facts, op.inputs[0])
    if given is None or not (op.kind == "clip" or _clips(op)):
        return ""
    for name in _written(facts, op.outputs[0]):
        if not rescaled(given, facts.graph.type(name)):
            return f"{name!r} is given as int16, for which the chip's factor has too few bits"
    return ""


def rounded_terms(facts: Facts, op: Operation) -> str:
    """Refuse a given int16 result whose terms int16 in its steps does not hold exactly.

    The chip would round, and saturate, each term before they meet.
    """
    found = [
        facts.graph.type(name)
        for name in _written(facts, op.outputs[0])
        if _element(facts, name) == Element.I16
    ]
    for kind in found:
        result = quantisation_of(kind)
        for name in op.used:
            maker = facts.maker(name)
            if maker is None or maker.kind != "dequantise":
                continue  # its steps are the compiler's choice
            known = facts.graph.type(maker.inputs[0])
            if result.axis is not None or quantisation_of(known).axis is not None:
                return f"{op.outputs[0]!r} or {name!r} has scales along an axis"
            steps = quantisation_of(known).scale / result.scale
            whole = steps == round(steps) and op.kind != "mul"
            if not whole or result.zero or largest(known) * steps > np.iinfo(np.int16).max + 1:
                return (
                    f"{op.outputs[0]!r} is given as int16, in whose steps the chip would round "
                    f"{name!r} by itself"
                )
    return ""
