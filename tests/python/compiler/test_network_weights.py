# SPDX-License-Identifier: Apache-2.0
"""Weights of networks in narrow formats: one meaning for graph and programs, and fewer bytes."""

from __future__ import annotations

import re

import numpy as np
import pytest

from golden.graph import run as golden_run
from npu.compiler.network import compile_network, convolution
from npu.graph.evaluate import evaluate
from npu.graph.form import GraphError
from npu.graph.passes.quantising.samples import random_samples
from npu.graph.text import equal, parse, write
from npu.planner.build_plan import Built
from npu.runtime.network_account import report_of
from spec.configurations import CHIPS
from spec.isa.generated import LINE
from spec.isa.operands import up
from spec.isa.weight_formats import StreamLayout
from tessera.golden_chip import run_on_golden
from tessera.session import load
from tests.forms import sample
from tests.python.compiler.network_weights import (
    CASES,
    NARROW,
    NETWORKS,
    RECIPES,
    built,
    one_product,
)
from tests.python.compiler.small_networks import Net, grown, residual_images, transformer
from weights.formats.recipe import INT8, WORDS, NetworkRecipe, parse_network_recipe


def formats(one: Built) -> set[str]:
    """Return the formats of shares of the stream."""
    return {share.format + share.group for share in one.plan.shares}


@pytest.mark.parametrize(("net", "word"), sample(RECIPES, len(CASES)))
def test_programs_compute_what_the_graph_says(net: str, word: str) -> None:
    """The graph has the expanded weights; the chip gets codes and side bytes."""
    one = built(grown(NETWORKS[net]), word)
    assert WORDS[word].format is not None
    assert str(WORDS[word]).replace("ternary", "int2") in formats(one)
    inputs = {name: data[0] for name, data in random_samples(one.plan.graph, 1, 7).items()}
    found = run_on_golden(one.plan, inputs).outputs
    for name, wanted in golden_run(one.passes["fuse"], inputs).items():
        np.testing.assert_array_equal(found[name], wanted)


@pytest.mark.parametrize("word", NARROW)
def test_weights_take_the_lines_of_their_format(word: str) -> None:
    """Side lines and padding included, behind 8 bytes of each channel; nothing else changes."""
    inner, columns = 70, 40
    one = built(one_product(inner, columns), word)
    (share,) = one.plan.shares
    encoding = WORDS[word]
    assert encoding.format is not None
    edge = one.plan.limits.edge
    layout = StreamLayout(encoding.format, encoding.group, edge)
    tiles = up(columns, edge) // edge
    assert share.bytes == tiles * (8 * edge + layout.lines(inner) * LINE)
    ((name, bits),) = report_of(one.plan).weights
    assert name == str(encoding).replace("ternary", "int2")
    assert bits == pytest.approx(8 * tiles * layout.lines(inner) * LINE / (inner * columns))


def test_a_recipe_names_operations_kinds_and_operations_of_the_file() -> None:
    """The word is for all the others; int8 is a word as well."""
    graph = grown(residual_images)
    names = [one.name for one in graph.operations if one.kind in ("conv", "matmul")]
    one = built(graph, f"int4g32,{names[1]}=mxfp4,matmul=int8")
    found = {re.split(r"\.(block|weight)", each.name)[0]: each.format for each in one.plan.shares}
    assert found[names[0]] == "int4g"
    assert found[names[1]] == "mxfp4"
    assert found[names[-1]] == ""
    assert formats(built(graph, f"{names[2]}=int8s")) == {"", "int8s"}


def test_narrow_weights_are_near_the_real_ones() -> None:
    """Four bits in groups lose more than eight, and not everything."""
    graph = one_product(256, 64, rows=8)
    inputs = {name: data[0] for name, data in random_samples(graph, 1, 3).items()}
    lost = {}
    real = built(graph, "int8").passes["canonical"]
    wanted = evaluate(real, inputs)
    for word in ("int8", "mxfp6e2", "int4g32", "int4", "int2"):
        found = golden_run(built(graph, word).passes["fuse"], inputs)
        (name,) = graph.outputs
        lost[word] = float(np.abs(found[name] - wanted[name]).mean() / np.abs(wanted[name]).mean())
    assert lost["int8"] < lost["mxfp6e2"] < lost["int4g32"] < lost["int4"] < lost["int2"]
    assert lost["int4g32"] < 0.12


def test_the_text_of_a_graph_keeps_the_formats() -> None:
    """What is parsed compiles to the same bytes; another word is none."""
    fused = built(grown(transformer), "int4g32").passes["fuse"]
    again = parse(write(fused))
    assert equal(fused, again)
    assert compile_network(again).digest() == compile_network(fused).digest()


def test_groups_that_a_cut_would_split_are_not_cut(monkeypatch: pytest.MonkeyPatch) -> None:
    """Five taps of sixteen channels are no whole number of groups of 32 rows, however cheap."""
    monkeypatch.setattr(convolution, "cycles_of", lambda kernel: -kernel.tiling.parts)
    graph = grown(lambda net: net.conv(net.input("x", 1, 6, 6, 16), 16, 5))
    assert len(built(graph, "int4").plan.shares) == 5
    assert len(built(graph, "int4g32").plan.shares) == 1


@pytest.mark.parametrize("kernel", [3, 7])
@pytest.mark.parametrize("word", ["int4g32", "mxfp4", "int8s"])
def test_a_first_layer_is_packed_by_the_host_or_not(kernel: int, word: str) -> None:
    """Its groups hold in both orders of rows: of pixels, and of rows of the filter."""

    def first(net: Net) -> str:
        return net.conv(net.input("x", 1, 9, 9, 3), 16, kernel)

    def second(net: Net) -> str:
        x = net.table(net.input("x", 1, 9, 9, 3), "tanh")
        return net.conv(x, 16, kernel)

    for make in (first, second):
        one = built(grown(make), word)
        assert {share.format for share in one.plan.shares if ".weight" in share.name} == {
            WORDS[word].format.asm  # type: ignore[union-attr]
        }
        inputs = {name: data[0] for name, data in random_samples(one.plan.graph, 1, 7).items()}
        (found,) = run_on_golden(one.plan, inputs).outputs.values()
        (wanted,) = golden_run(one.passes["fuse"], inputs).values()
        np.testing.assert_array_equal(found, wanted)


@pytest.mark.parametrize(
    ("weights", "chip", "message"),
    [
        ("int5", "a16", "--weights: given the format 'int5', allowed fp4g, "),
        ("int4,nobody=int8", "a16", "--weights nobody=int8: no product .* allowed matmul"),
        ("x=int4,int4", "a16", "allowed one word for all products, first, and then NAME=WORD"),
        ("matmul=int4,matmul=int2", "a16", "given 'matmul' twice"),
        ("int4", "a16-int8", "--weights int4: .* allowed int8: the chip has no narrow formats"),
        ("int4g16", "a32", "--weights int4g16: .* groups of 16, allowed at least 32, the tile"),
    ],
)
def test_what_there_is_not_is_refused_in_a_line(weights: str, chip: str, message: str) -> None:
    """What was given, and what is allowed."""
    with pytest.raises(GraphError, match=message) as error:
        load(
            one_product(32, 16),
            calibrate="random:2",
            weights=weights,
            limits=CHIPS[chip].limits,
        )
    assert "\n" not in str(error.value)


def test_a_chip_without_narrow_formats_takes_int8() -> None:
    """What is named int8 is refused nowhere."""
    limits = CHIPS["a16-int8"].limits
    session = load(one_product(32, 16), calibrate="random:2", weights="int8", limits=limits)
    assert {share.format for share in session.plan.shares} == {""}


def test_a_recipe_as_text_is_the_recipe() -> None:
    """Names may hold what words do not."""
    text = "int4g32,a/b=int8,conv=mxfp4"
    found = parse_network_recipe(text)
    assert str(found) == text
    assert found == NetworkRecipe(WORDS["int4g32"], {"a/b": INT8, "conv": WORDS["mxfp4"]})
