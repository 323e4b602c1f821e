# SPDX-License-Identifier: Apache-2.0
"""Networks on the RTL as users run them: equal to the model, and the report to the counters."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from tests.needs import needs

needs("graphs")

from golden import session
from golden.graph import run as golden_run
from golden.graph import run_steps
from npu.cli import command_line
from npu.commands import network_folder
from npu.compiler import compile_model
from npu.compiler.network import compile_network
from npu.graph.passes.quantising.samples import random_samples
from npu.planner.build_plan import CompileOptions, build_plan
from npu.planner.decoder_plan import plan_of_decoder
from npu.planner.network_plan import plan_of
from npu.planner.operator_plan import build_operator
from npu.runtime.network_account import report_of
from npu.runtime.replay import By, NetworkRun
from tb.run import build
from tb.stimulus.random_graphs import random_graph
from tessera import rtl_chip
from tessera.golden_chip import run_on_golden
from tessera.session import Session
from tests.forms import sample
from tests.python.compiler.long_attention import CASES
from tests.python.compiler.long_attention import network as long_attention
from tests.python.compiler.long_attention import samples as long_samples
from tests.python.compiler.narrow_networks import narrow_network
from tests.python.compiler.network_weights import NETWORKS as NARROW_NETWORKS
from tests.python.compiler.network_weights import RECIPES, one_product
from tests.python.compiler.network_weights import built as built_in
from tests.python.compiler.small_networks import grown
from tests.python.compiler.user_networks import built, one_input
from tests.python.compiler.wide_networks import NETWORKS
from tests.python.graph.state_networks import PAIRS, lstm_cell
from tests.python.graph.state_networks import samples as state_samples
from tests.python.importers.small_encoders import (
    random_encoder,
    random_signal,
    sentences,
    signals,
)
from tests.python.plans.segmented_networks import KINDS, equals_golden, kinds_of, segmented
from weights.quantize import quantize_checkpoint
from weights.shipped import CHECKPOINTS


@pytest.fixture(autouse=True)
def built_model(monkeypatch: pytest.MonkeyPatch) -> None:
    """Use the model that was built before pytest: several tests may not build at once."""
    assert build.Configuration().binary.exists(), "the model is not built: run make test"
    monkeypatch.setattr(build, "generate", lambda: None)
    monkeypatch.setattr(build, "build", lambda configuration: None)


def test_a_network_with_host_operations_inside_runs_on_the_rtl(tmp_path: Path) -> None:
    """RTL = model = golden graph; every counter is the report's; cycles come per operation."""
    network_folder.write(built(), tmp_path / "out")
    np.save(tmp_path / "x.npy", one_input()["x"])
    arguments = ["run", f"{tmp_path}/out", "--input", f"{tmp_path}/x.npy", "--on", "rtl"]
    assert command_line.main(arguments) == 0
    outputs = np.load(tmp_path / "out" / "run" / "outputs.npz")
    expected = golden_run(built().passes["fuse"], one_input())
    np.testing.assert_array_equal(outputs["y"], expected["y"])
    np.testing.assert_array_equal(
        outputs["y"], run_on_golden(built().plan, one_input()).outputs["y"]
    )
    record = json.loads((tmp_path / "out" / "run" / "report.json").read_text())
    assert len(record["segments"]) == 2
    for one in record["segments"]:
        counters, cost = one["counters"], one["cost"]
        assert counters["macs"] == cost["macs"]
        assert counters["instrs"] == cost["instructions"]
        assert 16 * counters["write_beats"] == cost["store_bytes"]
        loads = counters["read_beats"] - counters["stream_beats"]
        assert 16 * loads == cost["load_bytes"] + 16 * cost["words"]
        lines = [line for line in record["operations"] if line["segment"] == one["number"]]
        cycles = sum(line["cycles"] for line in lines)
        assert 0 < counters["cycles"] - cycles < 200
        for line in lines:
            assert line["cycles"] >= 0.9 * line["ideal"], line["name"]
    assert record["total"]["cycles"] == sum(s["counters"]["cycles"] for s in record["segments"])


def test_a_wrong_bit_of_the_rtl_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    """The tensor, the place and both values are named; so is a counter that the report denies."""
    plan = built().plan

    def flipped(*_: object, inner: bool, **__: object) -> NetworkRun:
        found = run_on_golden(plan, one_input(), inner=inner)
        (name,) = plan.segments[1].writes
        wrong = found.tensors[name].copy()
        wrong[0, 3] ^= 1
        return replace(found, tensors={**found.tensors, name: wrong})

    monkeypatch.setattr(rtl_chip, "run_on_golden", flipped)
    with pytest.raises(
        rtl_chip.ChipMismatchError, match=r"1 of 10 elements differ, first \[0, 3\]"
    ):
        rtl_chip.run_on_rtl(plan, one_input())
    assert report_of(plan).cycles is None


def test_products_on_the_command_port_run_on_the_rtl_as_well() -> None:
    """Programs and products of one network: golden's outputs, multiplications as reported."""
    graph, inputs = random_graph(4, operations=(8, 14), mixed=True)
    plan = plan_of(compile_network(graph))
    assert plan.segments
    assert plan.products
    found = rtl_chip.run_on_rtl(plan, inputs).run
    for name, value in golden_run(graph, inputs).items():
        np.testing.assert_array_equal(found.outputs[name], value)
    assert found.products.keys() == {str(step.of) for step in plan.products.values()}
    assert sum(one.operations for one in found.products.values()) > 0


@pytest.mark.parametrize(("kind", "window"), [("int4", 3), ("uint2", 0)])
def test_narrow_weights_of_a_file_run_on_the_rtl(kind: str, window: int) -> None:
    """A convolution with four bits, a product with two: every byte as golden's."""
    model, inputs = narrow_network(kind, window=window)
    plan = build_plan(model).plan
    assert {share.format for share in plan.shares} == {kind.removeprefix("u")}
    found = rtl_chip.run_on_rtl(plan, inputs).run.outputs["y"]
    np.testing.assert_array_equal(found, run_on_golden(plan, inputs).outputs["y"])


@pytest.mark.parametrize(("net", "word"), sample(RECIPES, 3))
def test_networks_with_narrow_weights_run_on_the_rtl(net: str, word: str) -> None:
    """Real weights that were rounded to a format: every tensor as golden's."""
    one = built_in(grown(NARROW_NETWORKS[net]), word)
    inputs = {name: data[0] for name, data in random_samples(one.plan.graph, 1, 7).items()}
    found = rtl_chip.run_on_rtl(one.plan, inputs).run.outputs
    for name, wanted in golden_run(one.passes["fuse"], inputs).items():
        np.testing.assert_array_equal(found[name], wanted)


def test_narrow_weights_of_one_row_take_fewer_cycles() -> None:
    """The stream is the bound of one row: half of the bytes are about half of the cycles."""
    cycles = {}
    for word in ("int8", "int4g32"):
        plan = built_in(one_product(256, 256), word).plan
        session = Session(plan, "rtl")
        session.run(None, {"x": np.ones((1, 256), np.float32)})
        cycles[word] = session.report().cycles or 0
    assert 0 < cycles["int4g32"] < 0.62 * cycles["int8"]


SEGMENTED = (4, 17)


def test_the_sample_of_segmented_networks_has_every_kind() -> None:
    """Of how segments feed one another without the host between."""
    assert set.union(*(kinds_of(segmented(seed)[0].plan) for seed in SEGMENTED)) == set(KINDS)


@pytest.mark.parametrize("by", ["registers", "ring"])
@pytest.mark.parametrize("seed", SEGMENTED)
def test_segments_feed_one_another_on_the_rtl(seed: int, by: By) -> None:
    """Without the host between, around splits and host; `make regress` runs many more."""
    equals_golden(seed, by)


def test_a_session_runs_segments_that_feed_one_another_on_the_rtl() -> None:
    """What a user of Python calls."""
    built, inputs = segmented(SEGMENTED[1])
    found = Session(built.plan, "rtl").run(inputs)
    for name, value in golden_run(built.passes["fuse"], inputs).items():
        np.testing.assert_array_equal(found[name], value)


def test_a_network_of_products_alone_runs_on_the_rtl() -> None:
    """No program, no cycles, and still golden's bits from the RTL."""
    one = build_operator("narrow_scores")
    found = rtl_chip.run_on_rtl(one.built.plan, one.inputs).run
    for name, value in golden_run(one.fused, one.inputs).items():
        np.testing.assert_array_equal(found.outputs[name], value)
    assert sum(each.macs for each in found.products.values()) == 2 * 5 * 9 * 16


def test_the_plan_of_a_decoder_writes_on_the_rtl() -> None:
    """The tokens of the network, and the cycles of one program."""
    model = quantize_checkpoint(str(CHECKPOINTS / "llama-tiny"))
    plan = plan_of_decoder(compile_model(model), 118)
    ids = np.arange(1, 119, dtype=np.uint32)
    found = rtl_chip.run_on_rtl(plan, {"prompt": ids}).run
    assert found.outputs["tokens"].tolist() == session.generate(model, ids.tolist(), 11)
    (counters,) = found.counters
    assert counters.cycles > 11 * len(plan.stream) // 16


def test_values_of_16_bits_are_those_of_golden_on_the_rtl() -> None:
    """Convolutions in halves, squares and clips: each tensor is compared."""
    network = NETWORKS["powers of sound"]
    samples = network.samples(4, 1)
    wide = ["x", "conv", "conv.2", "table"]
    session = Session(
        build_plan(grown(network.make), CompileOptions(calibrate=samples, wide=wide)).plan, "rtl"
    )
    session.run(None, {"x": samples["x"][0]})
    assert session.report().cycles


def test_a_checkpoint_is_a_network_on_the_rtl() -> None:
    """Logits of every position, and what the table of tokens on the host leads to."""
    plan = build_plan(CHECKPOINTS / "llama-tiny", CompileOptions(shapes={"tokens": (1, 20)}))
    tokens = np.arange(60, 100, 2, dtype=np.int32)[None]
    session = Session(plan.plan, "rtl")
    found = session.run({"tokens": tokens})["logits"]
    wanted = golden_run(plan.passes["fuse"], {"tokens": tokens})["logits"]
    np.testing.assert_array_equal(found, wanted)
    assert {one.name for one in session.report().operations if one.cycles} >= {"h.0.q", "logits"}


def test_a_checkpoint_goes_on_token_by_token_on_the_rtl() -> None:
    """With what the run before has left of K, V and the position."""
    plan = build_plan(
        CHECKPOINTS / "gpt2-tiny", CompileOptions(shapes={"tokens": (1, 1), "past": (16,)})
    )
    tokens = np.arange(70, 73, dtype=np.int32).reshape(3, 1, 1)
    session = Session(plan.plan, "rtl")
    found = np.stack([session.run({"tokens": one})["logits"] for one in tokens])
    wanted = run_steps(plan.passes["fuse"], {"tokens": tokens})["logits"]
    np.testing.assert_array_equal(found, wanted)


def test_an_lstm_goes_on_where_it_was_on_the_rtl() -> None:
    """Three runs, each with what the one before has left."""
    x = state_samples(3)
    plan = build_plan(lstm_cell(), CompileOptions(calibrate={"x": state_samples(64)}, state=PAIRS))
    session = Session(plan.plan, "rtl")
    found = np.stack([session.run({"x": one})["y"] for one in x])
    wanted = run_steps(plan.passes["fuse"], {"x": x})["y"]
    np.testing.assert_array_equal(found, wanted)
    alone = run_steps(plan.passes["fuse"], {"x": x[2:]})["y"][0]
    assert not np.array_equal(alone, wanted[2])


def test_an_encoder_runs_on_the_rtl_at_several_lengths() -> None:
    """BERT of random weights: one plan, the mask as an input, golden's bits."""
    checkpoint = random_encoder()
    samples = sentences(checkpoint, 32, (32, 5, 19))
    network = build_plan(checkpoint, CompileOptions(shapes={"tokens": (1, 32)}, calibrate=samples))
    assert len(network.plan.segments) == 1
    for number in (1, 2):
        inputs = {name: data[number] for name, data in samples.items()}
        found = rtl_chip.run_on_rtl(network.plan, inputs).run.outputs["embedding"]
        wanted = golden_run(network.passes["fuse"], inputs)["embedding"]
        np.testing.assert_array_equal(found, wanted)


@pytest.mark.parametrize("family", ["vit", "whisper"])
def test_an_encoder_of_a_signal_runs_on_the_rtl(family: str) -> None:
    """Pictures of 37 rows, sound of 30: golden's bits."""
    checkpoint = random_signal(family)
    samples = signals(checkpoint, 4)
    network = build_plan(checkpoint, CompileOptions(calibrate=samples))
    inputs = {name: data[3] for name, data in samples.items()}
    found = rtl_chip.run_on_rtl(network.plan, inputs).run.outputs
    wanted = golden_run(network.passes["fuse"], inputs)
    for name, values in found.items():
        np.testing.assert_array_equal(values, wanted[name])


@pytest.mark.parametrize("name", ["pairs on one", "mask of the run"])
def test_attention_in_parts_runs_on_the_rtl(name: str) -> None:
    """More than SRAM holds: loads and stores of parts beside the array."""
    graph = long_attention(CASES[name])
    samples = long_samples(graph)
    network = build_plan(graph, CompileOptions(calibrate=samples))
    inputs = {name: data[1] for name, data in samples.items()}
    found = rtl_chip.run_on_rtl(network.plan, inputs).run.outputs["y"]
    np.testing.assert_array_equal(found, golden_run(network.passes["fuse"], inputs)["y"])
