# SPDX-License-Identifier: Apache-2.0
"""Convolutions with one filter per channel: compiled to depthwise GEMMs, equal to golden."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pytest

from npu.compiler.network import CompiledNetwork, compile_network
from npu.graph.form import Element
from npu.planner.build_plan import CompileOptions, build_plan
from spec.isa.operands import Limits
from tests.python.compiler.given_convolutions import GivenConvolution as Conv
from tests.python.compiler.given_convolutions import integers
from tests.python.compiler.network_runs import gemms, run_as_golden
from tests.python.compiler.small_networks import Net, first, gated_images, grown, samples


def forms(network: CompiledNetwork) -> list[bool]:
    """Return of each GEMM whether it is depthwise."""
    return ["depthwise" in line for line in gemms(network)]


CASES = {
    "benchmark": Conv((1, 14, 14, 64)),
    **{f"{channels} channels": Conv((1, 9, 11, channels)) for channels in (3, 8, 17, 40, 100)},
    "no border": Conv((1, 12, 12, 32), pads=(0, 0, 0, 0)),
    "border on one side": Conv((1, 12, 10, 32), pads=(0, 2, 1, 0)),
    "border on the other side": Conv((1, 12, 10, 32), pads=(2, 0, 0, 2)),
    "wide border": Conv((1, 4, 4, 16), pads=(3, 3, 3, 3)),
    "mostly border": Conv((1, 2, 2, 16), pads=(0, 0, 3, 3)),
    "bands below the image": Conv((1, 2, 60, 64), pads=(0, 0, 5, 2)),
    "bands above the image": Conv((1, 2, 60, 64), pads=(6, 0, 0, 2)),
    "a pixel": Conv((1, 1, 1, 16)),
    "images of even filters": Conv((3, 12, 12, 32), (4, 4), pads=(1, 2, 2, 1)),
    "two by two": Conv((1, 12, 12, 32), (2, 2), pads=(0, 1, 1, 0)),
    "stride 2": Conv((1, 14, 14, 64), strides=(2, 2), pads=(0, 0, 1, 1)),
    "stride 2, odd": Conv((1, 15, 13, 40), strides=(2, 2)),
    "stride down": Conv((1, 15, 13, 40), strides=(2, 1)),
    "stride across": Conv((1, 15, 13, 40), strides=(1, 2), pads=(1, 0, 0, 1)),
    "high": Conv((2, 25, 5, 64)),
    "wide": Conv((1, 5, 25, 64), relu=True),
    "rows in parts": Conv((1, 8, 200, 32)),
    "rows in parts, stride 2": Conv((1, 8, 300, 32), strides=(2, 2)),
    "bands": Conv((1, 60, 60, 96)),
    "a line": Conv((1, 1, 200, 32), (1, 9), pads=(0, 4, 0, 4)),
    "a long line": Conv((1, 1, 9000, 16), (1, 3), pads=(0, 1, 0, 1)),
    "a column, stride 2": Conv((1, 200, 1, 17), (16, 1), (2, 1), (7, 0, 8, 0)),
    "row filters": Conv((1, 20, 30, 32), (1, 7), pads=(0, 3, 0, 3)),
    "column filters": Conv((1, 20, 30, 32), (7, 1), pads=(3, 0, 3, 0)),
    "dilation down": Conv((1, 20, 30, 32), pads=(2, 1, 2, 1), dilations=(2, 1)),
    "dilation in a line": Conv((1, 1, 60, 16), (1, 3), pads=(0, 8, 0, 8), dilations=(1, 8)),
    "dilation between taps": Conv((1, 1, 60, 16), (1, 3), pads=(0, 2, 0, 2), dilations=(1, 2)),
    "zero point": Conv((1, 14, 14, 64), zeros=(-17, 0)),
    "unsigned": Conv((1, 14, 14, 64), zeros=(130, 0), element=Element.U8),
    "weights of nine bits": Conv((1, 14, 14, 64), zeros=(5, 30)),
    "nine bits and a sum": Conv((1, 14, 14, 24), zeros=(5, 3), combine="add"),
    "nine bits and a product": Conv((1, 14, 14, 64), zeros=(0, 30), combine="mul"),
    "sum": Conv((1, 14, 14, 40), combine="add"),
    "sum, stride 2": Conv((1, 14, 14, 40), strides=(2, 2), combine="add"),
    "product": Conv((1, 14, 14, 40), combine="mul", relu=True),
    "four bits": Conv((1, 14, 14, 64), largest=7),
    "two bits": Conv((1, 14, 14, 64), largest=1),
    "array 32": Conv((1, 14, 14, 40), limits=Limits(array_dim=32)),
    "little room": Conv((1, 28, 28, 64), limits=Limits(sram_bytes=32 * 1024)),
    "array 8": Conv((1, 14, 14, 16), limits=Limits(array_dim=8)),
    "five by five": Conv((1, 14, 14, 64), (5, 5), pads=(2, 2, 2, 2)),
}
BLOCKS = ("array 8", "five by five")
"""Those that are multiplied in blocks of channels."""


@pytest.mark.parametrize("name", CASES)
def test_a_depthwise_convolution_is_what_golden_says(name: str) -> None:
    """Bit for bit, and in the form that is meant for it."""
    case = CASES[name]
    graph = case.graph()
    network, found = run_as_golden(graph, integers(graph), case.limits)
    assert set(forms(network)) == {name not in BLOCKS}
    assert np.unique(found["y"]).size > min(16, found["y"].size // 4)


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
    network, _ = run_as_golden(fused, first(samples(graph, 5)), limits)
    assert len({True, False} & set(forms(network))) == 2


@pytest.mark.parametrize(("word", "form"), [("int8", True), ("int4", True), ("int4g32", False)])
def test_weights_in_narrow_formats_are_held_or_multiplied_in_blocks(word: str, form: bool) -> None:
    """A factor per column holds in any order of rows, one per group in the rounded order only."""
    graph = grown(lambda net: net.conv(net.input("x", 1, 9, 9, 32), 32, groups=32))
    built = build_plan(graph, CompileOptions(calibrate=samples(graph), weights=word))
    network, _ = run_as_golden(built.passes["fuse"], first(samples(graph, 5)))
    assert set(forms(network)) == {form}
