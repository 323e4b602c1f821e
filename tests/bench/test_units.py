# SPDX-License-Identifier: Apache-2.0
"""The benches of single blocks: what they consist of, names, and what is said when one fails."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from npu.cli import command_line
from spec.configurations import CHIPS
from spec.paths import HDL
from tb.run import registry, runner, unit_times, units
from tb.run.unit_commands import TABLE_HEAD, BlockResult, chosen_tests


def test_every_wrapper_has_tests_and_the_other_way_round() -> None:
    """A wrapper without tests would be green for ever."""
    files = (HDL / "unit").glob("unit_*.sv")
    shells = (
        *("unit_control u_control", "u_engine (", "u_elements (", "bench.svh"),
        *("cop_rules ", "axil_monitor "),
    )
    tops = [path for path in files if any(word in path.read_text("utf-8") for word in shells)]
    benches = {path.stem.removeprefix("unit_") for path in tops} - {"elements", "engine"}
    assert benches | set(units.VARIANTS) == set(units.blocks())
    assert all(units.tests_of(block) for block in units.blocks())


def test_a_model_reads_packages_its_wrapper_and_its_checks_only() -> None:
    """An edited line of another block is not even read."""
    names = {path.stem for path in units.UnitConfiguration(block="vec").inputs}
    assert {"unit_vec", "npu_pkg", "npu_isa_pkg", "tb_pkg", "unit_pkg"} <= names
    checks = {name for name in names if name.endswith("_checks")}
    assert checks == {"cells_checks", "seq_checks", "sram_checks", "vec_checks"}
    assert not any(name in names for name in ("npu_vec", "npu_gemm", "npu_top", "tb_top"))


def test_a_port_of_its_own_is_told_to_the_tests() -> None:
    """The reference of the coprocessor counts the operands that the bench delivers."""
    job = runner.Job(units.tests_of("cop_two")[0], units.UnitConfiguration(block="cop_two"), 1)
    command = runner.command(job, Path("simulator"), Path("run"))
    assert {"+cop_sources=2"} == {word for word in command if word.startswith("+cop_sources")}
    assert any("NumRs=2" in word for word in job.configuration.parameters)


def test_a_run_says_how_to_repeat_it() -> None:
    """With its block, so that only this one is built."""
    test = units.tests_of("vec")[0]
    job = runner.Job(test, units.UnitConfiguration(block="vec"), 7)
    assert job.repro == f"make unit BLOCK=vec TESTCASE={test.name} SEED=7"


def test_names_choose_blocks_and_tests() -> None:
    """Blocks once each, in the order asked for; blocks without a named test are left out."""
    assert units.select(["vec", "vec"]) == ["vec"]
    assert units.select([]) == units.blocks()
    assert units.select([], CHIPS["a8"]) == ["dma", "gemm", "legal_gemm", "nrm", "softmax", "vec"]
    name = units.tests_of("vec")[0].name
    chosen = chosen_tests(units.blocks(), [name])
    assert {block: [test.name for test in tests] for block, tests in chosen.items()} == {
        "vec": [name]
    }


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["unit", "vce"], "no block is called 'vce'; near: vec"),
        (["unit", "qqqq"], "no block is called 'qqqq'; all: "),
        (["unit", "--config", "a8", "cmd"], "BLOCK=cmd: given CONFIG=a8, allowed a16; "),
        (["unit", "--tests", "unit_vec_randm"], "no test is called 'unit_vec_randm'; near: "),
    ],
)
def test_unknown_names(words: list[str], said: str, capsys: pytest.CaptureFixture[str]) -> None:
    """One line with the near names, exit status 2."""
    assert command_line.main(words) == 2
    assert f"npu: {said}" in capsys.readouterr().err


def test_the_table_shows_failures() -> None:
    """One row for each block."""
    test = registry.BenchTest("tb.unit.test_vec", "unit_vec_random", "")
    job = runner.Job(test, units.UnitConfiguration(block="vec"))
    ends = [runner.TestResult(job, passed, "", "", 1.5) for passed in (True, False)]
    row = str(BlockResult("vec", 3.0, ends))
    assert dict(zip(TABLE_HEAD.replace(" s", "_s").split(), row.split(), strict=True)) == {
        "block": "vec",
        "build_s": "3.0",
        "run_s": "3.0",
        "runs": "2",
        "failed": "1",
    }


def test_times_are_reported_to_a_tenth(tmp_path: Path) -> None:
    """One row for each block, in the order in which they were measured."""
    path = tmp_path / "reports" / "times.json"
    times = [unit_times.Time("vec", "npu_vec", 12.34, 14.0), unit_times.Time("a", "b", 1.0, 2.06)]
    unit_times.write_report(times, path)
    assert json.loads(path.read_text(encoding="utf-8")) == [
        {"block": "vec", "module": "npu_vec", "wall_s": 12.3, "processor_s": 14.0},
        {"block": "a", "module": "b", "wall_s": 1.0, "processor_s": 2.1},
    ]
