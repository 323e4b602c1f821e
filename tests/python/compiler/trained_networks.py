# SPDX-License-Identifier: Apache-2.0
"""The networks of `graph_networks`, trained in jax on generated data.

Pictures: a class is the direction of waves, under noise. Rows: the last one asks for the
value that stands beside its key in one of the others, so that attention has to find it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, fields, replace
from typing import Any, TypeVar

import numpy as np

from npu.graph.form import Array
from tests.python.graph import graph_networks as networks

KEYS = VALUES = 8
CLASSES = 10
Weights = TypeVar("Weights", networks.Convolutional, networks.BlockWeights)


@dataclass(frozen=True)
class Examples:
    """Inputs (n, 1, ...) float32 and classes (n,) int64."""

    inputs: Array
    classes: Array

    def __getitem__(self, part: slice) -> Examples:
        return Examples(self.inputs[part], self.classes[part])


def pictures(count: int, seed: int) -> Examples:
    """Return pictures (count, 1, 28, 28, 1) of ten classes."""
    random = np.random.default_rng(seed)
    classes = random.integers(0, CLASSES, count)
    angle = (np.pi * classes / CLASSES)[:, None, None]
    down, right = np.mgrid[:28, :28]
    phase = random.uniform(0, 2 * np.pi, (count, 1, 1))
    waves = np.cos(2 * np.pi / 5 * (right * np.cos(angle) + down * np.sin(angle)) + phase)
    inputs = waves + 1.3 * random.standard_normal((count, 28, 28))
    return Examples(inputs[:, None, :, :, None].astype(np.float32), classes)


def questions(count: int, seed: int) -> Examples:
    """Return rows (count, 1, 6, 32): five pairs of key and value, and a key that is asked for."""
    random = np.random.default_rng(seed)
    rows, width = networks.ROWS, networks.WIDTH
    inputs = 0.42 * random.standard_normal((count, rows, width))
    classes = np.zeros(count, np.int64)
    for index in range(count):
        keys = random.permutation(KEYS)[: rows - 1]
        values = random.integers(0, VALUES, rows - 1)
        asked = random.integers(0, rows - 1)
        place = np.arange(rows - 1)
        inputs[index, place, keys] += 2
        inputs[index, place, KEYS + values] += 2
        inputs[index, -1, KEYS + VALUES + keys[asked]] += 2
        classes[index] = values[asked]
    return Examples(inputs[:, None].astype(np.float32), classes)


def logits(outputs: Array) -> Array:
    """Return the scores of the classes from the outputs of either network, (..., classes)."""
    return outputs[:, -1, :VALUES] if outputs.ndim == 3 else outputs


def train(
    weights: Weights,
    network: Callable[[Weights], Any],
    examples: Examples,
    *,
    steps: int,
    batch: int,
    rate: float,
    fixed: Sequence[str] = (),
) -> Weights:
    """Return weights after some steps of Adam on the cross entropy.

    Args:
        weights: at the beginning.
        network: makes a function of jax from weights.
        examples: that are drawn from, in their order.
        steps: how many.
        batch: examples of a step.
        rate: of learning, falls to 0 along a cosine.
        fixed: names of weights that stay.
    """
    import jax
    import jax.numpy as jnp

    def loss(parts: dict[str, Any], x: Any, label: Any) -> Any:  # noqa: ANN401
        scores = logits(network(replace(weights, **parts))(x))
        chosen = jnp.take_along_axis(jax.nn.log_softmax(scores), label[:, None], 1)
        return -chosen.mean()

    def step(state: Any, x: Any, label: Any, number: Any) -> Any:  # noqa: ANN401
        parts, first, second = state
        slope = jax.grad(loss)(parts, x, label)
        speed = rate * 0.5 * (1 + jnp.cos(jnp.pi * number / steps))
        tree = jax.tree.map
        first = tree(lambda m, g: 0.9 * m + 0.1 * g, first, slope)
        second = tree(lambda v, g: 0.99 * v + 0.01 * g * g, second, slope)
        parts = tree(
            lambda p, m, v: (
                p
                - speed
                * m
                / (1 - 0.9 ** (number + 1))
                / (jnp.sqrt(v / (1 - 0.99 ** (number + 1))) + 1e-8)
            ),
            parts,
            first,
            second,
        )
        return parts, first, second

    parts = {
        one.name: getattr(weights, one.name) for one in fields(weights) if one.name not in fixed
    }
    compiled = jax.jit(step)
    zeros = jax.tree.map(jnp.zeros_like, parts)
    state = parts, zeros, zeros
    inputs = examples.inputs[:, 0]
    for number in range(steps):
        at = np.arange(number * batch, (number + 1) * batch) % len(inputs)
        state = compiled(state, inputs[at], examples.classes[at], number)
    trained = jax.tree.map(lambda one: np.asarray(one, np.float32), state[0])
    return replace(weights, **trained)
