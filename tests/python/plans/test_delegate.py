# SPDX-License-Identifier: Apache-2.0
"""Tessera as a delegate: a TFLite file whose parts run here and elsewhere."""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np
import pytest

from tests.needs import needs

needs("graphs")

from golden.graph import run
from npu.graph.evaluate import run as run_on_host
from npu.graph.form import Array, GraphError
from npu.graph.importers import read
from npu.graph.prepare import prepare as prepared_graph
from npu.planner.partition import Part
from npu.runtime.plan_files import PlanFileError
from npu.runtime.prepare import bases_from
from npu.runtime.schema import EntryError
from tessera.delegate import Delegate, partition, preprocess
from tests.python.importers.tflite_writer import Writer
from tests.python.plans.plan_damage import flipped

IMAGE = (1, 8, 8, 4)
UNIT: dict[str, Any] = {"scale": 0.05, "zero": 3}


@cache
def model() -> bytes:
    """Return a file: convolution, a sine in float that no chip has, convolution."""
    random, writer = np.random.default_rng(4), Writer()
    x = writer.tensor("x", IMAGE, "int8", **UNIT)

    def convolution(image: int, name: str) -> int:
        w = random.integers(-127, 128, (4, 3, 3, 4), dtype=np.int8)
        weights = writer.constant(f"{name}.w", w, scale=[0.01] * 4, axis=0)
        bias = random.integers(-900, 900, 4).astype(np.int32)
        shift = writer.constant(f"{name}.b", bias, scale=[0.01 * 0.05] * 4)
        y = writer.tensor(name, IMAGE, "int8", **UNIT)
        options = {"padding": 0, "across": 1, "down": 1, "fused": 0}
        options |= {"dilation_across": 1, "dilation_down": 1}
        writer.operator("CONV_2D", [image, weights, shift], [y], **options)
        return y

    first = convolution(x, "first")
    real, sine = writer.tensor("real", IMAGE), writer.tensor("sine", IMAGE)
    again = writer.tensor("again", IMAGE, "int8", **UNIT)
    writer.operator("DEQUANTIZE", [first], [real])
    writer.operator("SIN", [real], [sine])
    writer.operator("QUANTIZE", [sine], [again])
    return writer.write([x], [convolution(again, "second")])


def image() -> Array:
    """Return an input."""
    return np.random.default_rng(8).integers(-128, 128, IMAGE).astype(np.int8)


@cache
def parts() -> tuple[Part, ...]:
    """Return its parts."""
    return tuple(partition(model(), host=["SIN"]))


def test_a_tflite_file_is_split_into_delegated_and_other_parts() -> None:
    """In an order in which they run, with a reason for each operation."""
    assert [part.delegated for part in parts()] == [True, False, True]
    first, between, last = parts()
    assert (first.graph.inputs, last.graph.outputs) == (("x",), ("second",))
    assert "SIN" in " ".join(between.sources)
    assert any("user wants it on the host" in text for text in between.reasons.values())
    assert any("GEMM" in text for text in first.reasons.values())


def test_delegated_parts_and_others_make_the_network() -> None:
    """Parts in turn give what the whole gives, to the bit."""
    values = {"x": image()}
    for part in parts():
        graph = part.graph
        given = {name: values[name] for name in graph.inputs}
        if part.delegated:
            values |= Delegate(preprocess(graph)).execute(given)
            continue
        for one in graph.operations:
            arguments = [values[name] if name else None for name in one.inputs]
            values.update(zip(one.outputs, run_on_host(graph, one, arguments), strict=True))
    whole = prepared_graph(read(model()), host=["SIN"])
    np.testing.assert_array_equal(values["second"], run(whole, {"x": image()})["second"])
    assert np.unique(values["second"]).size > 20


def test_a_whole_graph_is_a_delegate_too() -> None:
    """With the operations of the host in the plan, and the arguments of compilation."""
    graph = read(model())
    delegate = Delegate(preprocess(graph, {"host": ["SIN"], "split": ["first.real"]}))
    (found,) = delegate.execute([image()]).values()
    expected = run(prepared_graph(graph, host=["SIN"]), {"x": image()})["second"]
    np.testing.assert_array_equal(found, expected)
    assert "host" in str(delegate.report())


def test_a_delegate_can_be_bound_to_any_addresses() -> None:
    """Descriptor images and memory, for runtimes with a chip of their own."""
    delegate = Delegate(preprocess(parts()[0].graph))
    plan = delegate.session.plan
    here, there = (delegate.prepared(bases_from(plan, at)) for at in (0x1000, 0x40_0000))
    assert [data for _, data in here.memory] == [data for _, data in there.memory]
    assert here.batches[0].words != there.batches[0].words
    with pytest.raises(EntryError, match="bases"):
        delegate.prepared(bases_from(plan, 0xFFFF_F000))


def test_what_is_wrong_is_refused() -> None:
    """Damaged data, specs that there are not, tensors that do not fit."""
    data = preprocess(parts()[0].graph)
    for bit in range(0, 8 * len(data), 4093):
        with pytest.raises(PlanFileError, match=r"delegate.*given"):
            Delegate(flipped(data, bit))
    with pytest.raises(GraphError, match="specs: given 'calibrate', allowed split, limits"):
        preprocess(parts()[0].graph, {"calibrate": "random:2"})
    with pytest.raises(GraphError, match="specs: given 'speed', allowed calibrate, host"):
        preprocess(read(model()), {"speed": 1})
    delegate = Delegate(data)
    with pytest.raises(GraphError, match="tensors: given 2, allowed 1: x"):
        delegate.execute([image(), image()])
    with pytest.raises(GraphError, match=r"input 'x' has shape \[1, 8, 8, 3\]"):
        delegate.execute({"x": image()[..., :3]})
    with pytest.raises(GraphError, match="input 'x': given float64, allowed int8"):
        delegate.execute({"x": image() * 0.5})
