# SPDX-License-Identifier: Apache-2.0
"""Convolutions with one filter per channel: compiled to depthwise GEMMs, equal to golden."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace

import numpy as np
import pytest

from golden.graph import run
from npu.compiler.network import CompiledNetwork, compile_network
from npu.graph.form import (
    Array,
    Element,
    Graph,
    Operation,
    OperationPlace,
    Quantisation,
    Target,
    Tensor,
    TensorType,
)
from npu.planner.build_plan import CompileOptions, build_plan
from spec.isa.operands import Limits
from tests.python.compiler.network_runs import run_compiled
from tests.python.compiler.small_networks import Net, first, gated_images, grown, samples

SAME = (1, 1, 1, 1)


@dataclass(frozen=True)
class Case:
    """A depthwise convolution with random integers.

    Attributes:
        shape: of the images.
        kernel, strides, pads, dilations: as the operation has them.
        relu, combine: what follows the sums.
        zeros: zero points of images and weights.
        element: of the images.
        largest: of the weights.
        limits: of the chip.
        form: whether depthwise GEMMs are made of it.
    """

    shape: tuple[int, int, int, int]
    kernel: tuple[int, int] = (3, 3)
    strides: tuple[int, int] = (1, 1)
    pads: tuple[int, int, int, int] = SAME
    dilations: tuple[int, int] = (1, 1)
    relu: bool = False
    combine: str = ""
    zeros: tuple[int, int] = (0, 0)
    element: Element = Element.I8
    largest: int = 127
    limits: Limits = field(default_factory=Limits)
    form: bool = True

    @property
    def out(self) -> tuple[int, int, int, int]:
        """Shape of the result."""
        images, height, width, channels = self.shape
        (top, left, bottom, right), (down, across) = self.pads, self.dilations
        rows = height + top + bottom - (self.kernel[0] - 1) * down - 1
        columns = width + left + right - (self.kernel[1] - 1) * across - 1
        return images, rows // self.strides[0] + 1, columns // self.strides[1] + 1, channels

    def graph(self) -> Graph:
        """Return a network of nothing else."""
        channels, random = self.shape[3], np.random.default_rng(1)
        inputs = {"x": TensorType(self.shape, self.element, Quantisation((1.0,), self.zeros[0]))}
        result = TensorType(self.out, Element.I8, Quantisation((1.0,)))
        if self.combine:
            inputs["d"] = result
        shape = (*self.kernel, 1, channels)
        weight = random.integers(-self.largest, self.largest + 1, shape, np.int8)
        kind = TensorType(shape, Element.I8, Quantisation((1.0,)))
        multiplied = self.combine == "mul"
        one = Operation(
            "dw",
            "conv",
            ("x", "w", *(["d"] if self.combine else [])),
            ("y",),
            {
                "strides": self.strides,
                "pads": self.pads,
                "dilations": self.dilations,
                "groups": channels,
                "relu": self.relu,
                "combine": self.combine,
                "product_mult": 1 << 14 if multiplied else 0,
                "product_shift": 20 if multiplied else 0,
                "pad_value": self.zeros[0],
                "x_zero": self.zeros[0],
                "w_zero": self.zeros[1],
            },
            place=OperationPlace(Target.NPU, "given"),
            integers={
                "bias": random.integers(-(1 << 12), 1 << 12, channels).astype(np.int32),
                "mult": random.integers(1 << 14, 1 << 15, channels).astype(np.uint16),
                "shift": random.integers(22, 25, channels).astype(np.uint8),
            },
        )
        tensors = {name: Tensor(name, kind, None) for name, kind in inputs.items()}
        tensors |= {"w": Tensor("w", kind, weight), "y": Tensor("y", result, None)}
        return Graph("depthwise", tuple(inputs), ("y",), tensors, (one,))


def integers(graph: Graph) -> dict[str, Array]:
    """Return inputs over the whole range of their types."""
    random, found = np.random.default_rng(2), {}
    for name in graph.inputs:
        kind = graph.type(name)
        edge = np.iinfo(kind.element.dtype)
        found[name] = random.integers(edge.min, edge.max + 1, kind.shape).astype(edge.dtype)
    return found


def forms(network: CompiledNetwork) -> list[bool]:
    """Return of each GEMM whether it is depthwise."""
    lines = "".join(one.text for one in network.segments).splitlines()
    return ["depthwise" in line for line in lines if line.startswith("GEMM")]


CASES = {
    "benchmark": Case((1, 14, 14, 64)),
    **{f"{channels} channels": Case((1, 9, 11, channels)) for channels in (3, 8, 17, 40, 100)},
    "no border": Case((1, 12, 12, 32), pads=(0, 0, 0, 0)),
    "border on one side": Case((1, 12, 10, 32), pads=(0, 2, 1, 0)),
    "border on the other side": Case((1, 12, 10, 32), pads=(2, 0, 0, 2)),
    "wide border": Case((1, 4, 4, 16), pads=(3, 3, 3, 3)),
    "mostly border": Case((1, 2, 2, 16), pads=(0, 0, 3, 3)),
    "bands below the image": Case((1, 2, 60, 64), pads=(0, 0, 5, 2)),
    "bands above the image": Case((1, 2, 60, 64), pads=(6, 0, 0, 2)),
    "a pixel": Case((1, 1, 1, 16)),
    "images of even filters": Case((3, 12, 12, 32), (4, 4), pads=(1, 2, 2, 1)),
    "two by two": Case((1, 12, 12, 32), (2, 2), pads=(0, 1, 1, 0)),
    "stride 2": Case((1, 14, 14, 64), strides=(2, 2), pads=(0, 0, 1, 1)),
    "stride 2, odd": Case((1, 15, 13, 40), strides=(2, 2)),
    "stride down": Case((1, 15, 13, 40), strides=(2, 1)),
    "stride across": Case((1, 15, 13, 40), strides=(1, 2), pads=(1, 0, 0, 1)),
    "high": Case((2, 25, 5, 64)),
    "wide": Case((1, 5, 25, 64), relu=True),
    "rows in parts": Case((1, 8, 200, 32)),
    "rows in parts, stride 2": Case((1, 8, 300, 32), strides=(2, 2)),
    "bands": Case((1, 60, 60, 96)),
    "a line": Case((1, 1, 200, 32), (1, 9), pads=(0, 4, 0, 4)),
    "a long line": Case((1, 1, 9000, 16), (1, 3), pads=(0, 1, 0, 1)),
    "a column, stride 2": Case((1, 200, 1, 17), (16, 1), (2, 1), (7, 0, 8, 0)),
    "row filters": Case((1, 20, 30, 32), (1, 7), pads=(0, 3, 0, 3)),
    "column filters": Case((1, 20, 30, 32), (7, 1), pads=(3, 0, 3, 0)),
    "dilation down": Case((1, 20, 30, 32), pads=(2, 1, 2, 1), dilations=(2, 1)),
    "dilation in a line": Case((1, 1, 60, 16), (1, 3), pads=(0, 8, 0, 8), dilations=(1, 8)),
    "dilation between taps": Case((1, 1, 60, 16), (1, 3), pads=(0, 2, 0, 2), dilations=(1, 2)),
    "zero point": Case((1, 14, 14, 64), zeros=(-17, 0)),
    "unsigned": Case((1, 14, 14, 64), zeros=(130, 0), element=Element.U8),
    "weights of nine bits": Case((1, 14, 14, 64), zeros=(5, 30)),
    "nine bits and a sum": Case((1, 14, 14, 24), zeros=(5, 3), combine="add"),
    "nine bits and a product": Case((1, 14, 14, 64), zeros=(0, 30), combine="mul"),
    "sum": Case((1, 14, 14, 40), combine="add"),
    "sum, stride 2": Case((1, 14, 14, 40), strides=(2, 2), combine="add"),
    "product": Case((1, 14, 14, 40), combine="mul", relu=True),
    "four bits": Case((1, 14, 14, 64), largest=7),
    "two bits": Case((1, 14, 14, 64), largest=1),
    "array 32": Case((1, 14, 14, 40), limits=Limits(array_dim=32)),
    "little room": Case((1, 28, 28, 64), limits=Limits(sram_bytes=32 * 1024)),
    "array 8": Case((1, 14, 14, 16), limits=Limits(array_dim=8), form=False),
    "five by five": Case((1, 14, 14, 64), (5, 5), pads=(2, 2, 2, 2), form=False),
}


@pytest.mark.parametrize("name", CASES)
def test_a_depthwise_convolution_is_what_golden_says(name: str) -> None:
    """Bit for bit, and in the form that is meant for it."""
    case = CASES[name]
    graph = case.graph()
    inputs, network = integers(graph), compile_network(graph, case.limits)
    assert set(forms(network)) == {case.form}
    expected = run(graph, inputs)["y"]
    assert np.unique(expected).size > min(16, expected.size // 4)
    found = run_compiled(network, inputs, limits=case.limits).outputs["y"]
    np.testing.assert_array_equal(found, expected)


def test_no_bytes_are_moved_but_the_image_and_the_result() -> None:
    """Windows are not copied: VEC fills the border, and rows go where they belong."""
    text = "".join(one.text for one in compile_network(CASES["benchmark"].graph()).segments)
    assert "copy2d" not in text
    assert text.count("DMA_LOAD") == text.count("DMA_STORE") == text.count("GEMM")


def _chain(net: Net) -> str:
    """Return depthwise layers between others, one beside another in a concatenation."""
    x = net.conv(net.input("x", 2, 13, 11, 3), 24, 1)
    x = net.build.add("clip", [net.conv(x, 24, groups=24)], low=0.0, high=6.0)
    x = net.conv(net.conv(x, 24, stride=2, groups=24), 48, 1)
    y = net.build.add("concat", [net.conv(x, 48, groups=48), net.conv(x, 16, 1)], axis=3)
    y = net.conv(net.conv(y, 64, groups=64), 48, 1)
    return net.conv(net.build.add("add", [x, y]), 48, groups=48)


@pytest.mark.parametrize("small", [False, True])
@pytest.mark.parametrize("make", [_chain, gated_images])
def test_layers_between_others_are_what_golden_says(
    make: Callable[[Net], str], *, small: bool
) -> None:
    """Images and results in SRAM, or most of them in memory."""
    graph = grown(make)
    built = build_plan(graph, CompileOptions(calibrate=samples(graph)))
    fused = built.passes["fuse"]
    limits = replace(Limits(), sram_bytes=16 * 1024) if small else Limits()
    network = compile_network(fused, limits)
    assert len({True, False} & set(forms(network))) == 2
    inputs = first(samples(graph, 5))
    expected, found = run(fused, inputs), run_compiled(network, inputs, limits=limits).outputs
    for name in fused.outputs:
        np.testing.assert_array_equal(found[name], expected[name])


@pytest.mark.parametrize(("word", "form"), [("int8", True), ("int4", True), ("int4g32", False)])
def test_weights_in_narrow_formats_are_held_or_multiplied_in_blocks(word: str, form: bool) -> None:
    """A factor per column holds in any order of rows, one per group in the rounded order only."""
    graph = grown(lambda net: net.conv(net.input("x", 1, 9, 9, 32), 32, groups=32))
    built = build_plan(graph, CompileOptions(calibrate=samples(graph), weights=word))
    network = compile_network(built.passes["fuse"])
    assert set(forms(network)) == {form}
    inputs = first(samples(graph, 5))
    expected, found = run(built.passes["fuse"], inputs), run_compiled(network, inputs).outputs
    for name in graph.outputs:
        np.testing.assert_array_equal(found[name], expected[name])
