# SPDX-License-Identifier: Apache-2.0
"""What must hold for the chip to execute an operation: each rule with its sentence.

Placement asks the rules, docs/graphs.md prints the sentences; both come from the entry of a kind.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol, TypeAlias

import numpy as np

from npu.graph.form import Array, Element, Graph, Operation, TensorType

ROW_MOST = 8192
FIELD_MOST = 0xEFFF
DEPTH_MOST = 16384
INDICES_MOST = 64
LANES = 16
"""Scores of a row are padded to so many."""
COSINE_MOST = 1.99
_JUMPS = frozenset(("floor", "ceil", "round", "sign"))


class Known(Protocol):
    """What a rule asks of the graph around an operation."""

    graph: Graph

    def value(self, name: str) -> Array | None:
        """Return the real value of a constant."""

    def given_integers(self, name: str) -> tuple[Array, TensorType] | None:
        """Return the constant integers that a tensor is the real value of."""

    def maker(self, name: str) -> Operation | None:
        """Return who assigns a tensor."""

    def only_reader(self, name: str) -> Operation | None:
        """Return the operation that alone reads a tensor."""


Refusal: TypeAlias = Callable[[Known, Operation], str]
"""Gives the sentence why the chip cannot execute an operation, "" if it can."""


@dataclass(frozen=True)
class Constraint:
    """What must hold for the chip to execute an operation.

    Attributes:
        sentence: for people.
        refusal: decides; a form that the compiler brings every operation to refuses none.
    """

    sentence: str
    refusal: Refusal = lambda known, operation: ""


def must(sentence: str) -> Callable[[Refusal], Constraint]:
    """Make a constraint of a rule."""
    return lambda refusal: Constraint(sentence, refusal)


def constant(what: str, index: int) -> Constraint:
    """Make the constraint that an input, if it is given, is constant."""

    def refusal(known: Known, op: Operation) -> str:
        given = len(op.inputs) > index and op.inputs[index]
        unknown = given and known.value(op.inputs[index]) is None
        return f"its {what} is not constant" if unknown else ""

    return Constraint(f"the {what} is constant", refusal)


@must(
    "the mask is constant, or real numbers that the host makes, the same for all heads, in rows of "
    "a multiple of 16 keys, beside no causal flag"
)
def mask_of_scores(known: Known, op: Operation) -> str:
    """Refuse a mask that cannot be added to scores as it is."""
    name = op.inputs[3] if len(op.inputs) > 3 else ""
    if not name or known.value(name) is not None:
        return ""
    kind, maker = known.graph.type(name), known.maker(name)
    shapes = (known.graph.type(each).shape for each in op.inputs[:3])
    if not (op["causal"] or op["window"]) and is_mask_of_scores(kind, maker, *shapes):
        return ""
    return "its mask is not constant, and no rows that can be added to scores"


def is_mask_of_scores(
    kind: TensorType,
    maker: Operation | None,
    query: tuple[int, ...],
    key: tuple[int, ...],
    value: tuple[int, ...],
) -> bool:
    """Say whether a mask that is not constant can be added to scores as it is.

    Args:
        kind: its type.
        maker: who makes it, None for an input of the graph.
        query: shape of the queries, (B, H, S, D).
        key: of the keys, (B, G, T, D).
        value: of the values, (B, G, T, Dv).
    """
    plain = kind.element == Element.F32 and (maker is None or maker.kind == "select")
    alike = kind.shape[-2:] == (query[2], key[2]) and math.prod(kind.shape[:-2]) == 1
    return plain and alike and value[3] == query[3] and key[2] % LANES == 0


def given_as_bytes(what: str, *inputs: int) -> Constraint:
    """Make the constraint that constant integers are bytes."""

    def refusal(known: Known, op: Operation) -> str:
        for index in inputs:
            given = known.given_integers(op.inputs[index])
            if given is not None and given[1].element not in (Element.I8, Element.U8):
                return f"{op.inputs[index]!r} is given as {given[1].element}, the chip takes bytes"
        return ""

    return Constraint(f"integers of {what} are given as int8 or uint8", refusal)


def row(what: str, length_of: Callable[[Known, Operation], int]) -> Constraint:
    """Make the constraint that a row is not longer than its engine takes."""

    def refusal(known: Known, op: Operation) -> str:
        length = length_of(known, op)
        return f"a row has {length} elements, the chip takes {ROW_MOST}" * (length > ROW_MOST)

    return Constraint(f"a row has at most {ROW_MOST:,} {what}", refusal)


NO_OVERFLOW = Constraint("the int32 accumulators cannot overflow for any input")


@must(f"the inner axis has at most {FIELD_MOST:,} elements, {DEPTH_MOST:,} between activations")
def matmul_depth(known: Known, op: Operation) -> str:
    """Refuse an inner axis that no field holds."""
    shape = known.graph.type(op.inputs[0]).shape
    depth = shape[-2] if op["transpose_a"] else shape[-1]
    most = DEPTH_MOST if known.value(op.inputs[1]) is None else FIELD_MOST
    return f"its inner axis has {depth} elements, the chip takes {most}" * (depth > most)


@must(f"the result has at most {FIELD_MOST:,} columns")
def matmul_columns(known: Known, op: Operation) -> str:
    """Refuse more columns than a field holds."""
    columns = known.graph.type(op.outputs[0]).shape[-1]
    return f"its result has {columns} columns, the chip takes {FIELD_MOST}" * (columns > FIELD_MOST)


@must("weights have one scale, or one for each index of an axis that is not summed over")
def scales_beside_sums(known: Known, op: Operation) -> str:
    """Refuse weights with scales along the axis that is summed over."""
    given = known.given_integers(op.inputs[1])
    if given is None or given[1].quantisation is None or given[1].quantisation.axis is None:
        return ""
    rank = len(given[1].shape)
    axis = rank - 2 if op.kind == "matmul" and op["transpose_b"] else rank - 1
    wrong = given[1].quantisation.axis != axis
    return "its weights have scales along an axis that is summed over" * wrong


@must(f"a window has at most {FIELD_MOST:,} elements, and there are at most as many filters")
def filter_size(known: Known, op: Operation) -> str:
    """Refuse a filter that no field holds."""
    shape = known.graph.type(op.inputs[1]).shape
    depth = math.prod(shape[:3])
    if depth > FIELD_MOST:
        return f"a window has {depth} elements, the chip takes {FIELD_MOST}"
    return f"it has {shape[3]} filters, the chip takes {FIELD_MOST}" * (shape[3] > FIELD_MOST)


@must("no logarithm reads it")
def read_by_no_logarithm(known: Known, op: Operation) -> str:
    """Refuse probabilities of which somebody takes the logarithm."""
    reader = known.only_reader(op.outputs[0])
    logarithm = reader is not None and reader.kind == "table" and reader["functions"][0] == "log"
    return "logarithms of small probabilities need more than 8 bits" * logarithm


@must("it takes no logarithm of a softmax")
def no_logarithm_of_softmax(known: Known, op: Operation) -> str:
    """Refuse a logarithm of probabilities."""
    maker = known.maker(op.inputs[0])
    small = op["functions"][0] == "log" and maker is not None and maker.kind == "softmax"
    return "logarithms of small probabilities need more than 8 bits" * small


@must("a function that jumps reads given integers")
def jumps_of_given_integers(known: Known, op: Operation) -> str:
    """Refuse functions whose result int8 on either side does not show."""
    maker = known.maker(op.inputs[0])
    given = maker is not None and maker.kind == "dequantise"
    jumps = sorted(_JUMPS & set(op["functions"]))
    return (
        f"{jumps[0]} jumps, with int8 in front of it in other places" if jumps and not given else ""
    )


@must("epsilon is not negative")
def epsilon_from_zero(known: Known, op: Operation) -> str:
    """Refuse a negative epsilon."""
    return f"its epsilon is {op['epsilon']}" if op["epsilon"] < 0 else ""


@must(f"cos and sin lie within +-{COSINE_MOST}")
def cosines(known: Known, op: Operation) -> str:
    """Refuse what is no cosine."""
    for name in op.used[1:]:
        data = known.value(name)
        if data is not None and data.size and np.abs(data).max() > COSINE_MOST:
            return f"{name!r} leaves +-2, it holds no cosines"
    return ""


@must("each window has a part in the image")
def windows_in_image(known: Known, op: Operation) -> str:
    """Refuse windows that see nothing of an image."""
    image, made = (known.graph.type(name).shape for name in (op.inputs[0], op.outputs[0]))
    for axis in (0, 1):
        step, pads = op["strides"][axis], op["pads"]
        dilation = op.attributes.get("dilations", (1, 1))[axis]  # type: ignore[index]
        reach = (op["window"][axis] - 1) * dilation + 1
        last = (made[axis + 1] - 1) * step - pads[axis]
        if last >= image[axis + 1] or reach - pads[axis] <= 0:
            return "a window lies outside of the image"
    return ""


@must("softcap is 0")
def no_softcap(known: Known, op: Operation) -> str:
    """Refuse scores that are capped."""
    return "its scores are capped" if op["softcap"] else ""


@must("the scale is above 0")
def scale_above_zero(known: Known, op: Operation) -> str:
    """Refuse a scale that turns scores round."""
    return f"its scale is {op['scale']}" if op["scale"] <= 0 else ""


@must("the steps are positive")
def steps_forward(known: Known, op: Operation) -> str:
    """Refuse steps backwards."""
    return "its steps are negative" if min(op["steps"]) < 0 else ""


@must("what it pads with is finite")
def finite_padding(known: Known, op: Operation) -> str:
    """Refuse infinities around a tensor."""
    return "" if math.isfinite(op["value"]) else f"it pads with {op['value']}"


@must(f"at most {INDICES_MOST} indices, and they are constant")
def few_indices(known: Known, op: Operation) -> str:
    """Refuse indices that nobody knows, or more than are worth a slice each."""
    indices = known.value(op.inputs[1])
    if indices is None:
        return "its indices are not constant"
    many = indices.size > INDICES_MOST
    return f"it has {indices.size} constant indices, more than {INDICES_MOST} slices" * many
