# SPDX-License-Identifier: Apache-2.0
"""Operations that are too large for the chip: cut another way, or run by the host with a reason."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from golden.graph import run
from npu.compiler.errors import CompileError
from npu.compiler.network import compile_network
from npu.graph.evaluate import evaluate
from npu.graph.form import Graph, GraphError
from npu.graph.prepare import prepare
from npu.planner.build_plan import CompileOptions, build_plan
from spec.isa.operands import Limits
from tests.python.compiler.network_runs import run_compiled
from tests.python.compiler.small_networks import (
    POINT,
    SAME,
    Net,
    grown,
    integer_weights,
    integers,
    quantised,
    quantised_input,
    samples,
)

SMALL = Limits(sram_bytes=8192)


def line(length: int, channels: int, filters: int, kernel: int, **given: Any) -> Graph:  # noqa: ANN401
    """Return a convolution along one axis with an addend."""

    def make(net: Net) -> str:
        x = quantised_input(net, "x", (2, 1, length, channels), 0.02, 3)
        groups = given.get("groups", 1)
        w = integer_weights(net, (1, kernel, channels // groups, filters), (0.01,))
        shape = {**POINT, "pads": (0, kernel // 2, 0, kernel // 2), **given}
        y = net.build.add(
            "dequantise", [quantised(net, net.build.add("conv", [x, w], **shape), 0.1)]
        )
        other = quantised_input(net, "other", net.build.shape(y), 0.1)
        return quantised(net, net.build.add("add", [y, other]), 0.1)

    return grown(make)


@pytest.mark.parametrize(
    "graph",
    [
        line(700, 16, 16, 9),
        line(701, 5, 24, 4, strides=(1, 3)),
        line(600, 16, 7, 3, dilations=(1, 4), pads=(0, 0, 0, 5)),
        line(500, 40, 40, 5, groups=40),
        line(400, 48, 96, 3, groups=3, strides=(1, 2)),
    ],
)
def test_a_line_is_cut_along_its_length(graph: Graph) -> None:
    """It is longer than the SRAM of this chip, which writes what golden says."""
    fused, inputs = prepare(graph), integers(graph, 2)
    wanted = run(fused, inputs)
    found = run_compiled(compile_network(fused, SMALL), inputs, limits=SMALL).outputs
    assert [one.on_chip for one in fused.operations if one.kind == "conv"] == [True]
    for name, expected in wanted.items():
        assert np.unique(expected).size > 40
        assert np.array_equal(found[name], expected)


def deep(net: Net) -> str:
    """Return an image with two convolutions that fit no small chip, between two that do."""
    x = net.conv(net.input("x", 1, 6, 6, 16), 16, kernel=1)
    tall = {**SAME, "pads": (2, 2, 2, 2)}  # five rows, which are no lines of one product
    wide = net.table(net.build.add("conv", [x, net.floats(5, 5, 16, 256)], **tall), "relu")
    deep = net.build.add("conv", [wide, net.floats(3, 3, 256, 16, scale=0.01)], **SAME)
    return net.table(net.conv(deep, 16, kernel=1), "relu")


def test_what_no_cut_fits_runs_on_the_host() -> None:
    """It says so with the reason; the rest stays on the chip, and the network means the same."""
    graph = grown(deep)
    given = samples(graph)
    with pytest.raises(CompileError, match="no cut of a convolution"):
        compile_network(prepare(graph, samples=given), Limits(sram_bytes=4096))
    built = build_plan(graph, CompileOptions(calibrate=given, limits=Limits(sram_bytes=4096)))
    placed = built.passes["place"].operations
    places = [(one.on_chip, one.place.reason) for one in placed if one.kind == "conv" and one.place]
    assert [on_chip for on_chip, _ in places] == [True, False, False, True]
    for _, reason in places[1:3]:
        assert "fits 4096 bytes of SRAM" in reason
    inputs = {name: values[0] for name, values in samples(graph, 1, 1).items()}
    (real,), (made,) = evaluate(graph, inputs).values(), run(built.passes["fuse"], inputs).values()
    assert np.abs(made - real).max() <= 0.04 * np.abs(real).max()


def test_what_is_wanted_on_the_chip_is_refused_without_room() -> None:
    """The line names the operation and why."""
    graph = grown(deep)
    names = [one.name for one in graph.operations if one.kind == "conv"]
    with pytest.raises(
        GraphError, match=f"--npu {names[1]}: .* cannot be executed by the chip: no cut"
    ):
        build_plan(
            graph, CompileOptions(calibrate="random:2", npu=names, limits=Limits(sram_bytes=4096))
        )
