# SPDX-License-Identifier: Apache-2.0
"""What several passes ask of a graph: who makes and reads a tensor, and what is constant."""

from __future__ import annotations

import numpy as np

from npu.graph.form import Array, Element, Graph, Operation, Quantisation, TensorType
from npu.graph.operations import TABLE, Trait, with_trait
from npu.graph.operations.borders import dequantised

LINEAR = with_trait(Trait.PRODUCT)
BORDERS = with_trait(Trait.BORDER) - {"requantise"}
MOVES = with_trait(Trait.COPY)
UNARY_MOVES = MOVES - {"concat"}
PAIRS = with_trait(Trait.PAIR)
SUMS = with_trait(Trait.SUM)
NORMS = with_trait(Trait.NORM)
POINTWISE = with_trait(Trait.POINTWISE)
BROADCASTING = frozenset(name for name in POINTWISE if len(TABLE[name].inputs) > 1)
CHIP_BYTES = (Element.I8, Element.U8)


class Facts:
    """Answers about one graph; it does not follow changes."""

    def __init__(self, graph: Graph) -> None:
        """Collect producers and consumers."""
        self.graph = graph
        self.makers = graph.producers()
        self.readers = graph.consumers()

    def given_integers(self, name: str) -> tuple[Array, TensorType] | None:
        """Return integers and their type if a tensor is the real value of constant integers."""
        maker = self.makers.get(name)
        if maker is None or maker.kind != "dequantise":
            return None
        data = self.graph.constant(maker.inputs[0])
        return None if data is None else (data, self.graph.type(maker.inputs[0]))

    def value(self, name: str) -> Array | None:
        """Return a constant, also one that is given as integers; None for "" and the rest."""
        if not name:
            return None
        data = self.graph.constant(name)
        if data is not None:
            return data
        found = self.given_integers(name)
        return None if found is None else dequantised(*found)

    def maker(self, name: str) -> Operation | None:
        """Return who assigns a tensor."""
        return self.makers.get(name)

    def only_reader(self, name: str) -> Operation | None:
        """Return the operation that alone reads a tensor that is no output of the graph."""
        readers = self.readers[name]
        return readers[0] if len(readers) == 1 and name not in self.graph.outputs else None

    def absorbed(self, operation: Operation) -> bool:
        """Say whether a table becomes part of the factor and bias of the product before it."""
        found = affine_of(operation)
        maker = self.maker(operation.inputs[0]) if operation.inputs else None
        return (
            found is not None
            and found[0] > 0
            and operation.on_chip
            and maker is not None
            and maker.on_chip
            and maker.kind in LINEAR
            and self.only_reader(operation.inputs[0]) is operation
        )

    def weights(self, operation: Operation) -> bool:
        """Say whether a linear operation multiplies with a constant matrix or filter."""
        name = operation.inputs[1]
        constant = self.value(name) is not None
        return constant and (operation.kind == "conv" or len(self.graph.type(name).shape) == 2)

    def scales(self, operation: Operation) -> bool:
        """Say whether an operation is linear and only multiplies each channel with a factor."""
        if operation.kind not in ("conv", "matmul"):
            return False
        x, w = operation.inputs[:2]
        if operation.kind == "conv":
            alone = self.graph.type(w).shape[:2] == (1, 1)
            return alone and operation["groups"] == self.graph.type(x).shape[-1]
        return is_diagonal(self.value(w))

    def activations(self, operation: Operation) -> list[str]:
        """Return the inputs that are tensors of the chip, not parameters of the instruction."""
        kind, inputs = operation.kind, operation.inputs
        if kind in LINEAR:
            return list(inputs[:1] if self.weights(operation) else inputs[:2])
        if kind in NORMS or kind in ("rope", "gather"):
            return [inputs[0]]
        if kind == "attention":
            masks = (name for name in inputs[3:] if name and self.value(name) is None)
            return [*inputs[:3], *masks]
        return list(operation.used)


def affine_of(op: Operation) -> tuple[float, float] | None:
    """Return (gain, shift) of a table that is x * gain + shift, None for another one."""
    if op.kind != "table" or not set(op["functions"]) <= {"scale", "shift", "neg"}:
        return None
    gain, shift, values = 1.0, 0.0, list(op["parameters"])
    for name in op["functions"]:
        if name == "shift":
            shift += values.pop(0)
            continue
        by = -1.0 if name == "neg" else values.pop(0)
        gain, shift = gain * by, shift * by
    return gain, shift


def chip_type(kind: TensorType) -> TensorType | None:
    """Return how the chip holds given integers, None if it cannot: unsigned ones less half."""
    found = kind.quantisation
    if found is None or found.axis is not None:
        return None
    signed = {Element.U8: Element.I8, Element.U16: Element.I16}.get(kind.element)
    if signed is not None:
        half = -int(np.iinfo(signed.dtype).min)
        return TensorType(kind.shape, signed, Quantisation(found.scales, found.zero - half))
    return kind if kind.element in (Element.I8, Element.I16) else None


def same_numbers(one: TensorType, other: TensorType) -> bool:
    """Say whether integers of two types stand for the same numbers in the same width."""
    return one.element == other.element and one.quantisation == other.quantisation


def quantisation_of(kind: TensorType) -> Quantisation:
    """Return the quantisation of a type of the chip."""
    assert kind.quantisation is not None
    return kind.quantisation


def is_diagonal(matrix: Array | None) -> bool:
    """Say whether a matrix is square with zeros beside its diagonal."""
    if matrix is None or matrix.ndim != 2 or matrix.shape[0] != matrix.shape[1]:
        return False
    return not np.any(matrix - np.diag(np.diag(matrix)))


def turns_rows(op: Operation) -> bool:
    """Say whether a transposition moves the last axis, which the chip does in bytes only."""
    order = op["order"]
    return bool(order[-1] != len(order) - 1)
