# SPDX-License-Identifier: Apache-2.0
"""The same network in ONNX, jax and TFLite is the same graph, and computes what jax computes."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from npu.compiler.network import compile_network
from npu.graph.evaluate import evaluate
from npu.graph.form import Array, Graph
from npu.graph.passes.canonical.canonicalise import canonicalise
from npu.graph.passes.canonical.order import alike, anonymous
from npu.graph.prepare import prepare
from npu.graph.text import write
from npu.graph.verify import verify
from tests.needs import needs
from tests.python.graph import graph_networks as networks
from tests.python.graph import graph_networks_int8 as integers

needs("graphs")

import jax

from npu.graph.importers import onnx_file, stablehlo, tflite_file

SEEDS = (1, 2)
IMAGES = (1, networks.SIDE, networks.SIDE, 1)
LINES = (1, networks.ROWS, networks.WIDTH)


def normal(seed: int, *shape: int) -> Array:
    """Return seeded normal numbers as float32."""
    return np.random.default_rng(seed).standard_normal(shape).astype(np.float32)


def from_jax(function: Any, shape: tuple[int, ...]) -> Graph:  # noqa: ANN401
    """Read a function and bring it into canonical form."""
    return canonicalise(stablehlo.from_jax(function, (np.zeros(shape, np.float32),)))


def same(graph: Graph, function: Any, x: Array, given: Array) -> None:  # noqa: ANN401
    """Compare a graph with a function of jax."""
    verify(graph)
    found = evaluate(graph, {graph.inputs[0]: given})[graph.outputs[0]]
    np.testing.assert_allclose(found, np.asarray(function(x)), rtol=1e-5, atol=1e-5)


def steps(graph: Graph) -> list[tuple[object, ...]]:
    """Return what a graph does but for the values of its weights."""
    plain = anonymous(graph)
    return [
        (one.kind, one.inputs, one.outputs, tuple(sorted(one.attributes.items())))
        for one in plain.operations
    ]


def nearly(one: Graph, other: Graph) -> None:
    """Check that two graphs differ in the last bits of their weights only."""
    assert steps(one) == steps(other)
    left, right = anonymous(one), anonymous(other)
    for name, tensor in left.tensors.items():
        data = right.tensors[name].data
        assert (tensor.data is None) == (data is None)
        if tensor.data is not None and data is not None:
            np.testing.assert_allclose(tensor.data, data, rtol=2e-6, atol=2e-7)


@pytest.mark.parametrize("seed", SEEDS)
def test_a_convolutional_network_is_one_graph(seed: int) -> None:
    """Byte for byte from jax (NHWC) and TFLite; from ONNX but for the layout of its input."""
    w = networks.convolutional(seed)
    function = networks.convolutional_jax(w, folded=True)
    first = from_jax(function, IMAGES)
    second = canonicalise(tflite_file.read(networks.convolutional_tflite(w)))
    third = canonicalise(onnx_file.read(networks.convolutional_onnx(w, folded=True)))
    assert [one.kind for one in first.operations] == [
        *("conv", "table", "maxpool", "conv", "table", "mean", "matmul")
    ]
    assert write(anonymous(first)) == write(anonymous(second))
    # One channel: moving it is a reshape.
    assert third.operations[0].kind == "reshape"
    assert [one.kind for one in third.operations[1:]] == [one.kind for one in first.operations]
    for here, there in zip(first.operations, third.operations[1:], strict=True):
        assert here.attributes == there.attributes
        for name, other in zip(here.inputs[1:], there.inputs[1:], strict=True):
            np.testing.assert_array_equal(first.constant(name), third.constant(other))
    x = normal(seed, *IMAGES)
    same(first, function, x, x)
    same(second, function, x, x)
    same(third, function, x, x.transpose(0, 3, 1, 2))


@pytest.mark.parametrize("seed", SEEDS)
def test_batch_norms_are_part_of_the_convolution(seed: int) -> None:
    """Written out in jax, one operation in ONNX, folded beforehand: the same to the last bits."""
    w = networks.convolutional(seed)
    plain = networks.convolutional_jax(w, folded=False)
    opened = from_jax(plain, IMAGES)
    nearly(opened, from_jax(networks.convolutional_jax(w, folded=True), IMAGES))
    joined = canonicalise(onnx_file.read(networks.convolutional_onnx(w, folded=False)))
    folded = canonicalise(onnx_file.read(networks.convolutional_onnx(w, folded=True)))
    nearly(joined, folded)
    x = normal(seed, *IMAGES)
    same(opened, plain, x, x)
    same(joined, plain, x, x.transpose(0, 3, 1, 2))


@pytest.mark.parametrize("seed", SEEDS)
def test_a_block_of_a_transformer_is_one_graph(seed: int) -> None:
    """Byte for byte: norms and attention are found however they are spelled."""
    w = networks.block(seed)
    function = networks.block_jax(w)
    first = from_jax(function, LINES)
    second = canonicalise(onnx_file.read(networks.block_onnx(w)))
    third = canonicalise(tflite_file.read(networks.block_tflite(w)))
    kinds = [one.kind for one in first.operations]
    assert kinds.count("layernorm") == 2 and kinds.count("attention") == 1
    assert kinds.count("matmul") == 6 and kinds.count("table") == 1
    assert write(anonymous(first)) == write(anonymous(second))
    assert alike(first, third)
    fourth = from_jax(networks.block_composites(w), LINES)
    assert steps(fourth) == steps(first)
    x = normal(seed, *LINES)
    for graph in (first, second, third, fourth):
        same(graph, function, x, x)


def test_other_weights_are_another_graph() -> None:
    """So equality says something."""
    one, other = (
        canonicalise(tflite_file.read(networks.block_tflite(networks.block(seed))))
        for seed in SEEDS
    )
    assert steps(one) == steps(other)
    assert not alike(one, other)


@pytest.mark.parametrize("seed", SEEDS)
def test_a_network_with_given_scales_is_one_graph(seed: int) -> None:
    """Borders, integers of weights and scales, from composites of jax, TFLite and ONNX."""
    w = integers.quantised(seed)
    x = np.random.default_rng(seed).integers(-128, 128, integers.IMAGE, dtype=np.int8)
    function = integers.quantised_jax(w)
    first = canonicalise(stablehlo.from_jax(function, (x,)))
    second = canonicalise(tflite_file.read(integers.quantised_tflite(w)))
    third = canonicalise(onnx_file.read(integers.quantised_onnx(w)))
    assert write(anonymous(first)) == write(anonymous(second))
    kinds = [one.kind for one in first.operations]
    assert kinds.count("quantise") == 3
    assert kinds == [one.kind for one in third.operations if one.kind != "transpose"]
    wanted = np.asarray(jax.jit(function)(x)).astype(int)
    for graph, given in ((first, x), (second, x), (third, x.transpose(0, 3, 1, 2))):
        verify(graph)
        found = evaluate(graph, {graph.inputs[0]: given})[graph.outputs[0]]
        # Float32 sums of jax may fall on the other side of a half.
        assert np.abs(found.astype(int) - wanted).max() <= 1
        weights = [one for one in graph.tensors.values() if one.type.element == "int8"]
        assert sum(one.constant for one in weights) == 2


@pytest.mark.parametrize("seed", SEEDS)
def test_networks_of_all_sources_are_one_artefact(seed: int) -> None:
    """Names and sources have no influence on programs, stream and constants; weights have."""
    w, b = networks.convolutional(seed), networks.block(seed)
    images, lines = normal(9, 16, *IMAGES), normal(9, 16, *LINES)
    turned = images.transpose(0, 1, 4, 2, 3)
    function = networks.convolutional_jax(w, folded=True)
    pictures = [
        (stablehlo.from_jax(function, (images[0],)), images),
        (tflite_file.read(networks.convolutional_tflite(w)), images),
        (onnx_file.read(networks.convolutional_onnx(w, folded=True)), turned),
    ]
    blocks = [
        (stablehlo.from_jax(networks.block_jax(b), (lines[0],)), lines),
        (stablehlo.from_jax(networks.block_composites(b), (lines[0],)), lines),
        (tflite_file.read(networks.block_tflite(b)), lines),
        (onnx_file.read(networks.block_onnx(b)), lines),
    ]
    found = [
        {
            compile_network(prepare(graph, samples={graph.inputs[0]: samples})).digest()
            for graph, samples in each
        }
        for each in (pictures, blocks)
    ]
    assert [len(one) for one in found] == [1, 1]
    assert found[0] != found[1]
