# SPDX-License-Identifier: Apache-2.0
"""Samples for calibration: what is accepted, and random ones on request."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from npu.graph.form import Array, Element, Graph, GraphError
from npu.graph.inputs import UNNAMED, Samples, refuse_states, typed

RANDOM_SEED = 20240229
RANDOM_MOST = 4096


def wanted(graph: Graph) -> str:
    """Return names, types and shapes that samples of a graph must have, as text."""
    return ", ".join(
        f"{name!r}: {graph.type(name).element}{['samples', *graph.type(name).shape]}".replace(
            "'samples'", "samples"
        )
        for name in graph.arguments
    )


def random_samples(graph: Graph, count: int, seed: int = RANDOM_SEED) -> dict[str, Array]:
    """Return standard normal samples, and integers that are indices in a table, for each input.

    Integers with a scale, and others of 8 bits, are all that the type has; integers of another use,
    and booleans, are 0 and 1.

    Raises:
        GraphError: the count is not in 1..4096.
    """
    if not 1 <= count <= RANDOM_MOST:
        raise GraphError(f"random:{count}, allowed random:1 to random:{RANDOM_MOST}")
    rng = np.random.default_rng(seed)
    found = {}
    for name in graph.arguments:
        kind = graph.type(name)
        shape = (count, *kind.shape)
        floats = np.dtype(kind.element).kind == "f"
        data = (
            rng.standard_normal(shape) if floats else rng.integers(*_integers(graph, name), shape)
        )
        found[name] = np.asarray(data).astype(kind.element.dtype)
    return found


def _integers(graph: Graph, name: str) -> tuple[int, int]:
    """Return the first value of an input and the one behind its last."""
    sizes = [
        graph.type(one.inputs[0]).shape[one["axis"]]
        for one in graph.consumers()[name]
        if one.kind == "gather" and one.inputs[1] == name
    ]
    kind = graph.type(name)
    if (
        sizes
        or kind.element is Element.BOOL
        or not (kind.quantisation or kind.element.dtype.itemsize == 1)
    ):
        return 0, min(sizes, default=2)
    # What runs on 0 and 1 alone shows nothing of large values.
    return int(np.iinfo(kind.element.dtype).min), int(np.iinfo(kind.element.dtype).max) + 1


def by_input(graph: Graph, samples: Samples | Sequence[Any] | str | None) -> Samples | str | None:
    """Return samples as `read_samples` takes them, of an array or arrays without names.

    Raises:
        GraphError: they are something else, or of another number than the inputs.
    """
    if samples is None or isinstance(samples, str | Mapping):
        return samples
    names = graph.arguments
    if hasattr(samples, "shape"):
        return {names[0] if len(names) == 1 else UNNAMED: np.asarray(samples)}
    if not isinstance(samples, list | tuple):
        raise GraphError(
            f"samples: given {type(samples).__name__}, allowed arrays by name or 'random:N'; here "
            f"are {wanted(graph)}"
        )
    if len(samples) != len(names):
        raise GraphError(
            f"samples: given {len(samples)} arrays, allowed {len(names)}, "
            f"one for each of {', '.join(names)}"
        )
    return dict(zip(names, samples, strict=True))


def read_samples(graph: Graph, samples: Samples | str) -> list[dict[str, Array]]:
    """Return one dictionary of inputs per sample; with states these are runs one after another.

    Args:
        graph: that has the inputs.
        samples: per input an array whose first axis counts samples, or that is one sample, or a
            number of batches one behind the other; one array under "" for the only input; or the
            text "random:N".

    Raises:
        GraphError: a name, shape, type or value is wrong; the message says what is allowed.
    """
    if isinstance(samples, str):
        kind, _, count = samples.partition(":")
        if kind != "random" or not count.isdigit():
            raise GraphError(
                f"samples {samples!r}, allowed a file or random:N (in Python arrays, numpy.load, "
                "or 'random:N')"
            )
        samples = random_samples(graph, int(count))
    elif list(samples) == [UNNAMED]:
        if len(graph.arguments) != 1:
            text = f"here are {wanted(graph)}" if graph.arguments else "here is none"
            raise GraphError(
                f"samples: given one array without a name (an .npy), allowed for one input; {text}"
            )
        samples = {graph.arguments[0]: samples[UNNAMED]}
    refuse_states(graph, samples)
    unknown = [name for name in samples if name not in graph.arguments]
    missing = [name for name in graph.arguments if name not in samples]
    if unknown or missing:
        what = f"unknown {unknown[0]!r}" if unknown else f"missing {missing[0]!r}"
        raise GraphError(f"samples: {what}; allowed are {wanted(graph)}")
    stacks = {name: _stack(graph, name, np.asarray(samples[name])) for name in graph.arguments}
    counts = {name: len(stack) for name, stack in stacks.items()}
    if len(set(counts.values())) > 1:
        text = ", ".join(f"{name!r}: {count}" for name, count in counts.items())
        raise GraphError(f"samples: {text}; allowed the same number for every input")
    if not stacks:
        return [{}]
    number = next(iter(counts.values()))
    if not number:
        raise GraphError("samples: 0 samples, allowed one or more")
    return [{name: stack[index] for name, stack in stacks.items()} for index in range(number)]


def _stack(graph: Graph, name: str, data: Array) -> Array:
    kind = graph.type(name)
    where = f"samples of input {name!r}"
    wide = kind.shape
    if data.shape == wide:
        data = data[None]
    elif data.ndim == len(wide) and data.shape[1:] == wide[1:] and data.shape[0] % wide[0] == 0:
        data = data.reshape(-1, *wide)
    if data.shape[1:] != wide or data.ndim != len(wide) + 1:
        allowed = f"(samples, {', '.join(map(str, wide))})"
        raise GraphError(f"{where}: given shape {list(data.shape)}, allowed {allowed}")
    return typed(where, data, kind.element)
