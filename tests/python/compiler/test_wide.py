# SPDX-License-Identifier: Apache-2.0
"""Values of 16 bits where somebody wants them, or where 8 lose most."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import pytest

from golden.graph import run
from npu.cli import command_line
from npu.graph.evaluate import evaluate
from npu.graph.form import Element, Graph, GraphError
from npu.planner.build_plan import CompileOptions, build_plan
from spec.paths import DOCS
from tessera.accuracy import AccuracyError, loss_of
from tessera.golden_chip import run_on_golden
from tessera.session import load
from tessera.wide_search import wide_until
from tests.python.compiler.small_networks import grown, transformer
from tests.python.compiler.wide_networks import NETWORKS, Samples


@pytest.mark.parametrize("name", NETWORKS)
def test_sixteen_bits_bring_the_outputs_near_enough(name: str) -> None:
    """Those that lose most, no more names than needed, and the chip computes what golden says."""
    network = NETWORKS[name]
    graph, samples = grown(network.make), network.samples(24, 1)
    narrow = build_plan(graph, CompileOptions(calibrate=samples))
    assert loss_of(narrow, samples).output > network.most
    built = build_plan(graph, CompileOptions(calibrate=samples, wide=wide_until(network.most)))
    assert built.wide
    for one in built.wide:
        rest = [other for other in built.wide if other != one]
        again = build_plan(graph, CompileOptions(calibrate=samples, wide=rest))
        assert loss_of(again, samples).output > network.most, f"{one} is not needed"
    assert loss_of(built, samples).output <= network.most
    others = network.samples(16, 2)
    before, after = (decibels(graph, plan.passes["fuse"], others) for plan in (narrow, built))
    assert after > network.gain + before
    row = re.search(rf"^\| {name} \|.*$", (DOCS / "graphs.md").read_text(encoding="utf-8"), re.M)
    assert row
    said = [float(figure) for figure in re.findall(r"([\d.]+) dB", row[0])]
    assert said == pytest.approx([before, after], abs=0.06), "what the page says"
    inputs = {one: value[0] for one, value in others.items()}
    found, wanted = run_on_golden(built.plan, inputs), run(built.passes["fuse"], inputs)
    for one in wanted:
        np.testing.assert_array_equal(found.outputs[one], wanted[one])


def decibels(graph: Graph, fused: Graph, samples: Samples) -> float:
    """Return the size of the outputs over the error of what integers make of them."""
    power = noise = 0.0
    for index in range(len(next(iter(samples.values())))):
        inputs = {one: value[index] for one, value in samples.items()}
        real, made = evaluate(graph, inputs), run(fused, inputs)
        for one, value in real.items():
            power += float(np.sum(np.square(value, dtype=np.float64)))
            noise += float(np.sum(np.square(value - made[one], dtype=np.float64)))
    return 10 * float(np.log10(power / noise))


def test_a_name_gives_16_bits_to_what_it_stands_for() -> None:
    """An input, an operation, all of a kind."""
    network = NETWORKS["powers of sound"]
    samples = network.samples(4, 1)
    for name, wide in (("x", {"x.int16"}), ("conv.2", {"conv.2"}), ("conv", {"conv"})):
        built = build_plan(grown(network.make), CompileOptions(calibrate=samples, wide=[name]))
        types = built.passes["quantise"].tensors
        assert built.wide == (name,)
        for one in wide:
            assert types[one].type.element == Element.I16


def test_nothing_is_wide_where_8_bits_are_enough() -> None:
    """Nobody pays for what is not needed."""
    network = NETWORKS["channels far out"]
    samples = network.samples(8, 1)
    built = build_plan(grown(network.make), CompileOptions(calibrate=samples, wide=wide_until(0.2)))
    assert not built.wide


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("attention", "--wide attention: on the chip it has 8 bits or none, allowed inputs and"),
        ("nothing", "--wide nothing: there is no such operation, allowed for example"),
    ],
)
def test_a_name_that_cannot_be_wide_is_refused(name: str, message: str) -> None:
    """With what can be."""
    samples = {"x": np.ones((1, 1, 8, 32), np.float32)}
    with pytest.raises(GraphError, match=message):
        build_plan(grown(transformer), CompileOptions(calibrate=samples, wide=[name]))


def test_sessions_choose_as_the_command_does() -> None:
    """Auto needs a target; a target that nothing reaches is refused with the worst operations."""
    network = NETWORKS["channels far out"]
    graph, samples = grown(network.make), network.samples(8, 1)
    assert load(graph, calibrate=samples, wide="auto", max_error=network.most)
    with pytest.raises(AccuracyError, match=r"allowed 0\.01% .*what loses most: \w"):
        load(graph, calibrate=samples, wide="auto", max_error=1e-4)
    with pytest.raises(GraphError, match="'auto', allowed a list of names, or 'auto' with max_err"):
        load(graph, calibrate=samples, wide="auto")


@pytest.mark.parametrize("more", [[], ["--max-error", "1%", "--wide", "x"]])
def test_auto_needs_a_target_and_stands_alone(
    more: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """One line says so."""
    (tmp_path / "x.onnx").write_bytes(b"")
    line = ["compile", f"{tmp_path}/x.onnx", "-o", f"{tmp_path}/out", "--wide", "auto", *more]
    assert command_line.main(line) != 0
    assert "--wide auto: allowed with --max-error and without other" in capsys.readouterr().err
