# SPDX-License-Identifier: Apache-2.0
"""What the integers of a network lose over its real numbers, and at which operations."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from golden.graph import run
from npu.graph.evaluate import evaluate
from npu.graph.form import Array, Element, Graph, TensorType
from npu.graph.inputs import Samples
from npu.graph.operations.borders import dequantised, quantised
from npu.graph.passes.quantising.samples import read_samples
from npu.graph.states import States
from npu.planner.build_plan import Built

MOST, NAMED = 16, 3
"""Samples that are measured, and operations that are named."""
DRAWN = "random:4"
_IMAGES = (".int8", ".uint8", ".int16")


class AccuracyError(ValueError):
    """The outputs of a network differ by more than the user allows."""


@dataclass(frozen=True)
class NetworkLoss:
    """How far integers are from real numbers, as shares of the largest real value.

    Attributes:
        output: of the worst output.
        operations: by the name in the file, what the results of operations of the chip are further
            off than their inputs, the most first.
        tensors: the same of all real tensors that have integers of 8 bits, borders as well.
    """

    output: float
    operations: tuple[tuple[str, float], ...]
    tensors: tuple[tuple[str, float], ...]


def loss_of(built: Built, samples: Samples | str | None = None) -> NetworkLoss:
    """Measure a network on samples.

    Args:
        built: a network and its passes.
        samples: as `read_samples` takes them; None for those that calibrated it.

    Raises:
        GraphError: an operation cannot be evaluated.
    """
    return measured(built.passes, built.samples if samples is None else samples)


def measured(passes: Mapping[str, Graph], samples: Samples | str | None) -> NetworkLoss:
    """Measure what passes have made of a network, as `loss_of`; without samples on drawn ones."""
    real, fused = passes["place"], passes["fuse"]
    images = _images(real, fused)
    largest: dict[str, float] = {}
    apart: dict[str, float] = {}
    states = States(real), States(fused)
    for inputs in read_samples(real, DRAWN if samples is None else samples)[:MOST]:
        wanted = evaluate(real, {**inputs, **states[0].values}, keep=list(images.values()))
        taken = {name: _taken(value, fused.type(name)) for name, value in inputs.items()}
        found = run(fused, {**taken, **states[1].values}, keep=list(images))
        states[0].advance(wanted)
        states[1].advance(found)
        pairs = {name: (found[name], wanted[of]) for name, of in images.items()}
        pairs |= {name: (found[name], wanted[name]) for name in fused.outputs}
        for name, (made, value) in pairs.items():
            numbers = _real(made, fused.type(name))
            reach = np.abs(_real(value, real.type(images.get(name, name)))).max(initial=0.0)
            off = np.abs(numbers - _real(value, real.type(images.get(name, name))))
            largest[name] = max(largest.get(name, 0.0), float(reach))
            apart[name] = max(apart.get(name, 0.0), float(off.max(initial=0.0)))
    share = {name: off / largest[name] if largest[name] else off for name, off in apart.items()}
    grown = []
    for op in fused.operations:
        if op.outputs[0] in images:
            before = max((share[name] for name in op.used if name in share), default=0.0)
            grown.append((op, share[op.outputs[0]] - before))
    grown.sort(key=lambda each: -each[1])
    on_chip = [(one, by) for one, by in grown if one.on_chip]
    return NetworkLoss(
        max((share[name] for name in fused.outputs), default=0.0),
        tuple((f"{one.name} ({one.source or one.name})", by) for one, by in on_chip[:NAMED]),
        tuple(
            (images[one.outputs[0]], by)
            for one, by in grown
            if fused.type(one.outputs[0]).element != Element.I16
        ),
    )


def _images(real: Graph, fused: Graph) -> Mapping[str, str]:
    """Return the tensors of the chip that stand for real ones of the network, with those."""
    found = {}
    for op in fused.operations:
        name = op.outputs[0]
        border = op.kind == "quantise"
        if not (op.on_chip or border) or fused.type(name).quantisation is None:
            continue
        ends = [name, *(name.removesuffix(image) for image in _IMAGES)]
        of = next((each for each in ends if each in real.tensors), "")
        if of and real.type(of).shape == fused.type(name).shape:
            found[name] = of
    return found


def _taken(value: Array, kind: TensorType) -> Array:
    """Return an input as a network takes it, which may be integers for real numbers."""
    real = kind.quantisation is not None and value.dtype.kind == "f"
    return quantised(value, kind) if real else value


def _real(values: Array, kind: TensorType) -> Array:
    """Return the real numbers that the values of a tensor stand for."""
    if kind.quantisation is None:
        return np.asarray(values, np.float64)
    return np.asarray(dequantised(values, kind), np.float64)


def held(built: Built, most: float) -> str:
    """Return the loss of a network on what calibrated it as a sentence.

    Raises:
        AccuracyError: an output is off by more than `most` of its largest value; the operations
            that lose most are named.
    """
    loss = loss_of(built)
    text = f"outputs at most {loss.output:.2%} of the largest value off"
    if loss.output <= most:
        return text
    names = ", ".join(f"{name} {by:.2%}" for name, by in loss.operations)
    raise AccuracyError(
        f"{text}, allowed {100 * most:g}% (--max-error); "
        f"what loses most: {names or 'nothing on chip'}"
    )
