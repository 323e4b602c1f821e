# SPDX-License-Identifier: Apache-2.0
"""Convolutions over all channels: compiled to GEMMs with A in lines, equal to golden."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pytest

from npu.compiler.network import compile_network, kernels, lowering
from npu.graph.form import Element
from npu.planner.build_plan import CompileOptions, build_plan
from spec.isa.operands import Limits
from tests.python.compiler.given_convolutions import GivenConvolution as Conv
from tests.python.compiler.given_convolutions import integers
from tests.python.compiler.network_runs import gemms, run_as_golden
from tests.python.compiler.small_networks import Net, first, grown, residual_images, samples

IMAGE = Conv((1, 14, 14, 16), filters=16)
CASES = {
    "benchmark": Conv((1, 32, 32, 16), filters=16),
    "two by two": replace(IMAGE, kernel=(2, 2), pads=(0, 1, 1, 0)),
    "two by three": replace(IMAGE, kernel=(2, 3), pads=(1, 1, 0, 1)),
    "four by four": Conv((3, 12, 12, 16), (4, 4), pads=(1, 2, 2, 1), filters=20),
    "column filters": replace(IMAGE, kernel=(3, 1), pads=(1, 0, 1, 0)),
    "row filters": replace(IMAGE, kernel=(1, 3), pads=(0, 1, 0, 1)),
    "long filters": replace(IMAGE, kernel=(7, 2), pads=(3, 0, 3, 1)),
    **{f"{c} channels": Conv((1, 9, 11, c), filters=c + 3) for c in (3, 8, 17, 40, 100)},
    "no border": replace(IMAGE, pads=(0, 0, 0, 0)),
    "border on one side": Conv((1, 12, 10, 32), pads=(0, 2, 1, 0), filters=8),
    "border on the other side": Conv((1, 12, 10, 32), pads=(2, 0, 0, 2), filters=8),
    "mostly border": Conv((1, 2, 2, 16), pads=(3, 3, 3, 3), filters=16),
    "a pixel": Conv((1, 1, 1, 16), filters=16),
    "stride 2": replace(IMAGE, strides=(2, 2), pads=(0, 0, 1, 1)),
    "stride 2, odd": Conv((2, 15, 13, 24), strides=(2, 2), filters=16),
    "stride down": Conv((1, 15, 13, 24), strides=(2, 1), filters=16),
    "stride across": Conv((1, 15, 13, 24), strides=(1, 3), filters=16),
    "stride over pixels": Conv((1, 15, 17, 16), (2, 2), (4, 5), filters=16),
    "dilation down": replace(IMAGE, pads=(2, 1, 2, 1), dilations=(2, 1)),
    "dilation across": replace(IMAGE, kernel=(1, 3), pads=(0, 2, 0, 2), dilations=(1, 2)),
    "rows in parts": Conv((1, 4, 200, 16), filters=16),
    "rows in parts, stride 2": Conv((1, 8, 300, 16), strides=(2, 2), filters=16),
    "high": Conv((2, 25, 5, 16), relu=True, filters=16),
    "bands": Conv((1, 60, 60, 96), filters=24),
    "zero point": replace(IMAGE, zeros=(-17, 0)),
    "unsigned": replace(IMAGE, zeros=(130, 0), element=Element.U8),
    "weights of nine bits": replace(IMAGE, zeros=(5, 30)),
    "nine bits and a sum": replace(IMAGE, zeros=(5, 3), combine="add"),
    "nine bits and a product": replace(IMAGE, zeros=(0, 30), combine="mul"),
    "ten bits": replace(IMAGE, zeros=(5, -128)),
    "sum": replace(IMAGE, combine="add"),
    "sum, stride 2": replace(IMAGE, strides=(2, 2), combine="add"),
    "product": replace(IMAGE, combine="mul", relu=True),
    "words": replace(IMAGE, element=Element.I16),
    "words of few channels": Conv((2, 14, 9, 8), filters=5, element=Element.I16, zeros=(300, 0)),
    "words and a sum": replace(IMAGE, element=Element.I16, combine="add"),
    "words in parts": Conv((1, 4, 150, 16), element=Element.I16, filters=16),
    "little room": Conv((1, 28, 28, 64), limits=Limits(sram_bytes=32 * 1024), filters=16),
    **{
        f"array {dim}, {c} channels": Conv((1, 14, 14, c), limits=Limits(dim), filters=40)
        for dim in (4, 8, 32)
        for c in (16, 32, 48)
    },
    "array 32, words": Conv((1, 9, 9, 8), element=Element.I16, limits=Limits(32), filters=16),
    "array 32, two by two": Conv((1, 9, 9, 16), (2, 2), limits=Limits(32), filters=16),
    "array 32, sum": Conv((1, 9, 9, 16), limits=Limits(32), filters=16, combine="add"),
}


@pytest.mark.parametrize("name", CASES)
def test_a_convolution_in_lines_is_what_golden_says(
    monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    """Bit for bit, also where windows that are copied would take less time."""
    monkeypatch.setattr(kernels, "cycles_of", lambda _: math.inf)
    monkeypatch.setattr(lowering, "packs", lambda *_: False)
    case = CASES[name]
    graph = case.graph()
    network, found = run_as_golden(graph, integers(graph), case.limits)
    assert all("lines=" in line for line in gemms(network))
    assert np.unique(found["y"]).size > min(16, found["y"].size // 4)


def test_no_bytes_are_moved_but_the_image_and_the_result() -> None:
    """Windows are not copied: VEC fills the border, rows go from memory and back to it."""
    network = compile_network(CASES["benchmark"].graph())
    assert "copy2d" not in "".join(one.text for one in network.segments)
    assert all("lines=3x48" in line for line in gemms(network))


@pytest.mark.parametrize(
    "other",
    [
        replace(IMAGE, kernel=(5, 5), pads=(2, 2, 2, 2)),
        replace(IMAGE, dilations=(2, 2), pads=(2, 2, 2, 2)),
        replace(IMAGE, filters=0),
        replace(IMAGE, element=Element.I16, zeros=(0, 3)),
    ],
)
def test_other_convolutions_copy_windows_or_are_depthwise(
    monkeypatch: pytest.MonkeyPatch, other: Conv
) -> None:
    """Filters of five rows, taps apart, groups, partial sums of words."""
    monkeypatch.setattr(kernels, "cycles_of", lambda _: math.inf)
    assert not any("lines=" in line for line in gemms(compile_network(other.graph())))


def _chain(net: Net) -> str:
    """Return layers with results in SRAM, one of them wider than a word, and a sum."""
    x = net.conv(net.input("x", 2, 13, 11, 3), 16)
    y = net.table(net.conv(x, 16), "relu")
    z = net.build.add("concat", [net.conv(y, 32), net.conv(y, 16)], axis=3)
    return net.build.add("add", [x, net.conv(net.conv(z, 24), 16)])


@pytest.mark.parametrize(
    ("make", "kilobytes"), [(_chain, 256), (_chain, 16), (residual_images, 256)]
)
@pytest.mark.parametrize("word", ["int8", "int4", "int4g32"])
def test_layers_between_others_are_what_golden_says(
    monkeypatch: pytest.MonkeyPatch, make: Callable[[Net], str], kilobytes: int, word: str
) -> None:
    """Images and results in SRAM, or most of them in memory; weights in narrow formats."""
    monkeypatch.setattr(kernels, "cycles_of", lambda _: math.inf)
    graph = grown(make)
    built = build_plan(graph, CompileOptions(calibrate=samples(graph), weights=word))
    limits = replace(Limits(), sram_bytes=kilobytes * 1024)
    network, _ = run_as_golden(built.passes["fuse"], first(samples(graph, 5)), limits)
    assert sum("lines=" in line for line in gemms(network)) > 3
