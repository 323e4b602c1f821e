# SPDX-License-Identifier: Apache-2.0
"""The library of operators: model and golden agree, real numbers are near, mistakes are named."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from golden.graph import run
from npu.cli.command_line import main
from npu.driver.command.product import Product
from npu.graph.form import GraphError, Target
from npu.graph.library import OPERATORS, operator_graph
from npu.planner.operator_plan import build_operator
from npu.runtime.network_account import disagreements, report_of
from tb.stimulus.operator_sizes import operator_sizes
from tessera.golden_chip import run_on_golden
from tessera.operators import run_operator

SEEDS = range(4)
HOST = {"quantise", "dequantise", "slice", "reshape", "transpose", "concat"}
"""What the host may do: borders, and moves of what it copies anyway."""


@pytest.mark.parametrize("name", OPERATORS)
def test_model_is_golden_and_near_real_numbers(name: str) -> None:
    """At random sizes, with every stage a result and with all of them fused."""
    for seed in SEEDS:
        sizes = operator_sizes(name, np.random.default_rng(seed)) if seed else {}
        for stages in (False, True):
            where = f"build_operator({name!r}, {sizes}, stages={stages}, seed={seed})"
            one = build_operator(name, sizes, stages=stages, seed=seed)
            found = run_on_golden(one.built.plan, one.inputs)
            for stage, value in run(one.fused, one.inputs).items():
                assert np.array_equal(found.outputs[stage], value), f"{where}: {stage}"
                assert one.error(stage, value) <= one.operator.bound, f"{where}: {stage}"
                assert np.unique(value).size > 1, f"{where}: {stage}"


@pytest.mark.parametrize("name", OPERATORS)
def test_the_chip_does_what_counts(name: str) -> None:
    """The host has borders and moves only."""
    graph = build_operator(name, stages=True).built.plan.graph
    on_host = {
        one.kind for one in graph.operations if one.place and one.place.target is Target.HOST
    }
    assert on_host <= HOST
    assert any(one.on_chip or one.on_port for one in graph.operations)


def test_stages_are_in_order_and_named() -> None:
    """Those of a decoder block as its builder has them; without stages only the result."""
    stages = operator_graph("decoder_block", stages=True).outputs
    assert stages[:4] == ("normed", "query", "key", "value")
    assert stages[-1] == "y"
    assert operator_graph("decoder_block").outputs == ("y",)


def test_packed_and_separate_projections_differ_in_matrices_only() -> None:
    """Three matrices, or one and slices of what it makes."""
    separate = operator_graph("qkv_projection", {"packed": 0})
    packed = operator_graph("qkv_projection", {"packed": 1})
    assert [one.kind for one in separate.operations] == ["matmul"] * 3
    assert [one.kind for one in packed.operations] == ["matmul", *["slice"] * 3]
    assert separate.outputs == packed.outputs == ("query", "key", "value")


def test_caches_keep_what_lies_outside() -> None:
    """Rows before and behind the new ones are those of the cache, head by head."""
    one = build_operator("cache_update", {"length": 6, "spread": 2, "fresh": 3})
    found = run(one.fused, one.inputs)
    for head, length in enumerate((6, 4, 2)):
        for name in ("key", "value"):
            cache, new = one.inputs[f"{name}_cache"][0, head], one.inputs[f"new_{name}"][0, head]
            expected = cache.copy()
            expected[length : length + 3] = new
            assert np.abs(found[f"{name}s"][0, head] - expected).max() < 0.02


def test_windows_hide_what_is_old() -> None:
    """A decode step with a window of 2 gives each query its own key and the one before."""
    one = build_operator("decode_attention", {"window": 2, "spread": 0}, stages=True)
    weights = run(one.fused, one.inputs)["weights"]
    assert ((weights > 0).sum(axis=-1) <= 2).all()
    whole = build_operator("decode_attention", {"spread": 0}, stages=True)
    assert ((run(whole.fused, whole.inputs)["weights"] > 0).sum(axis=-1) > 2).any()


def test_the_port_counts_what_the_report_says() -> None:
    """Multiplications of tiles are those asked for; a count that differs is said."""
    one = build_operator("narrow_scores")
    found = run_on_golden(one.built.plan, one.inputs)
    report = report_of(one.built.plan, products=found.products)
    assert disagreements(report, found.products) == []
    lines = [line for line in report.operations if line.on_port]
    assert sum(line.macs for line in lines) == report.macs == report.cost.macs == 2 * 5 * 9 * 16
    assert all(line.port_operations for line in lines)
    name, product = next(iter(found.products.items()))
    wrong = {name: Product(product.values, product.operations, product.macs + 1)}
    (said,) = disagreements(report, wrong)
    assert said == f"operation {name}: MACs: counted 721, reported 720"


@pytest.mark.parametrize(
    ("name", "sizes", "said"),
    [
        ("mlpp", {}, "operator 'mlpp': there is none, allowed mlp"),
        (
            "mlp",
            {"row": 3},
            "operator mlp, row: there is no such size, allowed rows, width, hidden",
        ),
        ("mlp", {"rows": 0}, "operator mlp, rows: given 0, allowed 1 to 4096"),
        ("mlp", {"rows": "many"}, "operator mlp, rows: given 'many', allowed 1 to 4096"),
        ("attention", {"mask": "odd"}, "mask: given 'odd', allowed none, causal, window, random"),
        ("attention", {"groups": 3}, "groups 3, allowed what 4 heads are a multiple of"),
        ("attention", {"keys": 3}, "mask causal with 12 rows and 3 keys, allowed at least 12"),
        ("cache_update", {"length": 23}, "length 23 and fresh 2, allowed 24 together"),
        ("cache_update", {"length": 0, "fresh": 24}, "fresh 24, allowed fewer than the capacity"),
        ("rope", {"depth": 5}, "operator rope with heads=4, rows=16, depth=5, position=3: depth 5"),
        ("grouped_conv", {"groups": 5}, "operator grouped_conv with size=8, channels=12"),
    ],
)
def test_mistakes_are_named(name: str, sizes: dict[str, int | str], said: str) -> None:
    """Name or size, what was given, what is allowed."""
    with pytest.raises(GraphError) as error:
        operator_graph(name, sizes)
    assert said in str(error.value)


def test_a_run_has_all_of_it() -> None:
    """Stages with golden and real numbers, sizes, report; as JSON too."""
    found = run_operator("swiglu", {"rows": 5})
    assert found.exact
    assert found.error <= found.operator.bound
    assert [one.name for one in found.stages][-1] == "mlp"
    record = json.loads(json.dumps(found.to_json()))
    assert record["sizes"] == {"rows": 5, "width": 48, "hidden": 96, "linear": 0}
    assert record["stages"][0]["found"] == record["stages"][0]["golden"]
    lines = record["report"]["operations"]
    assert sum(one["macs"] for one in lines) == 3 * 5 * 48 * 96
    assert sum(one["cost"]["tiles"] for one in lines) == 3 * 3 * 6
    assert record["report"]["total"]["host_bytes"] > 0


def test_the_command_lists_runs_and_writes(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """`npu operator` shows all of them; with a name it runs one."""
    assert main(["operator"]) == 0
    listed = capsys.readouterr().out
    assert all(name in listed for name in OPERATORS)
    file = tmp_path / "run.json"
    assert main(["operator", "rope", "--set", "rows=4", "--json", str(file)]) == 0
    shown = capsys.readouterr().out
    assert "turned" in shown
    assert "equal" in shown
    assert json.loads(file.read_text())["operator"] == "rope"
    assert main(["operator", "rope", "--set", "rows"]) == 2
    assert "--set rows: allowed SIZE=N" in capsys.readouterr().err
