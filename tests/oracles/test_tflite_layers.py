# SPDX-License-Identifier: Apache-2.0
"""Layer by layer, int8 networks of TFLite are at most one step off LiteRT's reference kernels.

Each layer is given what those made before it, so that nothing adds up. TFLITE_FILES=FOLDER tries
the files of a folder as well, such as the models of MLPerf Tiny, and -s prints a line for each.
"""

from __future__ import annotations

import os
from pathlib import Path

import numpy as np
import pytest

from golden.graph import run
from npu.graph.form import Array, Graph
from npu.graph.importers import tflite_file
from npu.graph.prepare import prepare
from npu.planner.partition import subgraph
from tests.needs import needs
from tests.python.importers.tflite_writer import Writer

needs("oracles")

from ai_edge_litert import interpreter

SEEDS = 3
MOST = 0.003
"""Of the elements may be a step off."""
_PLAIN = {"dilation_across": 1, "dilation_down": 1}
_FOLDER = os.environ.get("TFLITE_FILES", "")
FILES = sorted(Path(_FOLDER).glob("*.tflite")) if _FOLDER else []


def network() -> bytes:
    """Return a classifier of images: two convolutions, a sum, a pool, a product, a softmax."""
    random, writer = np.random.default_rng(1), Writer()
    shape = (1, 12, 10, 8)
    x = writer.tensor("x", shape, "int8", scale=0.03, zero=-4)

    def held(name: str, size: tuple[int, ...], axis: int, unit: float) -> tuple[int, int]:
        scales = random.uniform(0.004, 0.02, size[axis]).astype(np.float32)
        w = random.integers(-127, 128, size).astype(np.int8)
        bias = random.integers(-2000, 2000, size[axis]).astype(np.int32)
        units = (np.float32(unit) * scales).tolist()
        return (
            writer.constant(f"{name}.w", w, scale=scales.tolist(), axis=axis),
            writer.constant(f"{name}.b", bias, scale=units),
        )

    steps = {"padding": 0, "across": 1, "down": 1, **_PLAIN}
    first = writer.tensor("first", shape, "int8", scale=0.12, zero=-100)
    writer.operator("CONV_2D", (x, *held("c", (8, 3, 3, 8), 0, 0.03)), (first,), fused=1, **steps)
    second = writer.tensor("second", shape, "int8", scale=0.2, zero=7)
    deep = held("d", (1, 3, 3, 8), 3, 0.12)
    writer.operator("DEPTHWISE_CONV_2D", (first, *deep), (second,), fused=0, multiplier=1, **steps)
    total = writer.tensor("total", shape, "int8", scale=0.25, zero=-20)
    writer.operator("ADD", (first, second), (total,), fused=0)
    pooled = writer.tensor("pooled", (1, 4, 5, 8), "int8", scale=0.25, zero=-20)
    window = {"padding": 1, "across": 2, "down": 3, "width": 2, "height": 3, "fused": 0}
    writer.operator("AVERAGE_POOL_2D", (total,), (pooled,), **window)
    flat = writer.tensor("flat", (1, 160), "int8", scale=0.25, zero=-20)
    size = writer.constant("size", np.array([1, 160], np.int32))
    writer.operator("RESHAPE", (pooled, size), (flat,))
    scores = writer.tensor("scores", (1, 10), "int8", scale=0.9, zero=3)
    writer.operator("FULLY_CONNECTED", (flat, *held("f", (10, 160), 0, 0.25)), (scores,), fused=0)
    y = writer.tensor("y", (1, 10), "int8", scale=1 / 256, zero=-128)
    writer.operator("SOFTMAX", (scores,), (y,), beta=1.0)
    return writer.write((x,), (y,))


def reference(data: bytes, seed: int) -> dict[str, Array]:
    """Return all tensors that the reference kernels make of a drawn input, by name."""
    made = interpreter.Interpreter(
        model_content=data,
        experimental_op_resolver_type=interpreter.OpResolverType.BUILTIN_REF,
        experimental_preserve_all_tensors=True,
    )
    made.allocate_tensors()
    random = np.random.default_rng(seed)
    for one in made.get_input_details():
        if one["dtype"] == np.float32:
            value = random.standard_normal(one["shape"]).astype(np.float32)
        else:
            ends = np.iinfo(one["dtype"])
            value = random.integers(ends.min, ends.max, one["shape"], one["dtype"], endpoint=True)
        made.set_tensor(one["index"], value)
    made.invoke()
    found = {}
    for one in made.get_tensor_details():
        try:
            found[one["name"]] = made.get_tensor(one["index"])
        except ValueError:  # no tensor of the graph
            continue
    return found


def layers(graph: Graph, known: dict[str, Array]) -> dict[str, Array]:
    """Return by how many steps each known tensor of a fused graph is off, from the others."""
    there = {
        name
        for name, value in known.items()
        if name in graph.tensors
        and not graph[name].constant
        and graph.type(name).shape == value.shape
        and graph.type(name).element.dtype == value.dtype
    }
    makers, found = graph.producers(), {}
    for name in sorted(there & makers.keys()):
        wanted, group = [name], {}
        while wanted:
            maker = makers.get(wanted.pop())
            if maker is not None and maker.name not in group:
                group[maker.name] = maker
                wanted += [u for u in maker.used if u not in there and not graph[u].constant]
        part = subgraph(graph, [one for one in graph.operations if one.name in group])
        made = run(part, {each: known[each] for each in part.inputs}, keep=[name])[name]
        step = 1 / 256 if made.dtype == np.float32 else 1.0
        found[name] = np.rint(np.abs(made.astype(float) - known[name].astype(float)) / step)
    return found


@pytest.mark.parametrize("file", [None, *FILES], ids=lambda one: one.stem if one else "network")
def test_each_layer_is_at_most_a_step_off(file: Path | None) -> None:
    """Of a network of the tests, and of files that somebody has."""
    data = network() if file is None else file.read_bytes()
    graph = prepare(tflite_file.read(data))
    every = [layers(graph, reference(data, seed)) for seed in range(SEEDS)]
    off = np.concatenate([steps.ravel() for one in every for steps in one.values()])
    share = float(np.mean(off > 0))
    print(f"{graph.name}: {len(every[0])} layers, at most {off.max():.0f} step off, {share:.2%}")
    assert len(every[0]) >= 6
    assert off.max() <= 1
    assert share <= MOST
