# SPDX-License-Identifier: Apache-2.0
"""Finding and choosing tests by name."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from npu.commands.arguments import UsageError
from spec.configurations import CHIPS, USUAL
from spec.isa.operands import ARRAY_DIMS
from tb.run import registry, requests, runner
from tb.run.build import Configuration

SOURCE = '''
import cocotb

@cocotb.test
async def test_first(dut):
    """The first."""

@cocotb.test(timeout_time=1)
async def test_second(dut):
    """The second."""

async def helper(dut):
    pass
'''

SECOND = SOURCE.replace("test_first", "test_third").replace("test_second", "test_fourth")


def _folder(path: Path, **modules: str) -> Path:
    for name, text in modules.items():
        (path / f"{name}.py").write_text(text, encoding="utf-8")
    return path


def test_discovers_decorated_functions_only(tmp_path: Path) -> None:
    """Both forms of the decorator count, other coroutines do not."""
    tests = registry.discover(_folder(tmp_path, test_one=SOURCE))
    assert [(test.name, test.group, test.summary) for test in tests] == [
        ("test_first", "test_one", "The first."),
        ("test_second", "test_one", "The second."),
    ]


def test_memory_that_a_module_asks_for(tmp_path: Path) -> None:
    """The line in the module counts for all its tests; others have the usual memory."""
    folder = _folder(tmp_path, test_one=SOURCE, test_two="MEMORY_MIB = 48\n" + SECOND)
    sizes = {test.group: test.memory_bytes for test in registry.discover(folder)}
    assert sizes == {"test_one": registry.MEMORY_MIB << 20, "test_two": 48 << 20}


def test_power_up_states_that_a_module_asks_for(tmp_path: Path) -> None:
    """All zeros, all ones and as many random ones, others with each seed; else one random one."""
    folder = _folder(tmp_path, test_one=SOURCE, test_two="POWER_UPS = 3\n" + SECOND)
    for test in registry.discover(folder):
        states = [
            [str(state) for state in runner.Job(test, Configuration(), seed, full=True).power_ups]
            for seed in (1, 2)
        ]
        if test.group == "test_one":
            assert states == [["random bits 1"], ["random bits 2"]]
            continue
        both = ["all ZEROS", "all ONES"]
        assert states == [
            [*both, *(f"random bits {seed}" for seed in (1, 2, 3))],
            [*both, *(f"random bits {seed}" for seed in (4, 5, 6))],
        ]
        short = runner.Job(test, Configuration(), 2).power_ups
        assert [str(state) for state in short] == [*both, "random bits 2"]


def test_command_port_that_a_module_asks_for(tmp_path: Path) -> None:
    """The line in the module counts for all its tests; others run on every chip."""
    folder = _folder(tmp_path, test_one=SOURCE, test_two="SCRATCH_BYTES = (64, 256)\n" + SECOND)
    fitting = {
        test.group: [test.fits(replace(USUAL, scratch_bytes=size)) for size in (0, 64, 128, 256)]
        for test in registry.discover(folder)
    }
    assert fitting == {"test_one": [True] * 4, "test_two": [False, True, False, True]}


def test_coprocessor_that_a_module_asks_for(tmp_path: Path) -> None:
    """The line in the module counts for all its tests, beside that for the command port."""
    lines = "SCRATCH_BYTES = (0,)\nCOP_SOURCES = (0, 3)\n"
    folder = _folder(tmp_path, test_one=SOURCE, test_two=lines + SECOND)
    fitting = {
        test.group: [
            test.fits(replace(USUAL, scratch_bytes=size, cop_sources=sources))
            for size, sources in ((0, 0), (0, 2), (0, 3), (64, 3))
        ]
        for test in registry.discover(folder)
    }
    assert fitting == {"test_one": [True] * 4, "test_two": [True, False, True, False]}


def test_every_chip_is_built_and_tested() -> None:
    """There is a chip for each array, command port and coprocessor that the tests need."""
    for usual in CHIPS.values():
        found = requests.tests_by_chip(usual)
        chips = [model.chip for model in found]
        assert chips == [usual, *(chip for chip in CHIPS.values() if chip != usual)]
        run = {(model, test) for model, tests in found.items() for test in tests}
        assert len(run) == sum(map(len, found.values())), "each once on each chip"
        for model, test in run:
            assert test.fits(model.chip)
    assert {chip.scratch_bytes for chip in CHIPS.values()} == {0, 64, 128, 256}
    assert {chip.cop_sources for chip in CHIPS.values()} == {0, 2, 3}
    assert {chip.narrow_formats for chip in CHIPS.values()} == {False, True}
    assert {chip.array_dim for chip in CHIPS.values()} == set(ARRAY_DIMS)
    tests = [test for tests in requests.tests_by_chip().values() for test in tests]
    assert set(registry.discover()) <= set(tests), "a test runs on no chip"


def test_chip_without_narrow_formats(tmp_path: Path) -> None:
    """The line in the module makes its tests those of such a chip, and of no other."""
    folder = _folder(tmp_path, test_one=SOURCE, test_two="NARROW_FORMATS = 0\n" + SECOND)
    tests = registry.discover(folder)
    fitting = {
        test.group: [test.fits(replace(USUAL, narrow_formats=narrow)) for narrow in (False, True)]
        for test in tests
    }
    assert fitting == {"test_one": [False, True], "test_two": [True, False]}
    folders = [chip.folder.name for chip in requests.chips_of(tests, None)]
    assert folders == ["fast-a16", "fast-a16-int8"]
    with pytest.raises(UsageError, match=r"given CONFIG=a8, allowed a16-int8: the others"):
        requests.chips_of(tests, CHIPS["a8"])


def test_refuses_equal_names(tmp_path: Path) -> None:
    """A name stands for one test."""
    with pytest.raises(registry.BadTestError, match="two tests are called test_first"):
        registry.discover(_folder(tmp_path, test_one=SOURCE, test_two=SOURCE))


def test_refuses_what_is_no_python(tmp_path: Path) -> None:
    """The message has file and line."""
    folder = _folder(tmp_path, test_one=SOURCE + "\nasync def\n")
    with pytest.raises(registry.BadTestError, match=r"test_one\.py, line \d+: "):
        registry.discover(folder)


def test_selects_by_exact_name_of_test_or_module(tmp_path: Path) -> None:
    """Each chosen test comes once."""
    tests = registry.discover(_folder(tmp_path, test_one=SOURCE))
    chosen = registry.select(["test_second", "test_one"], tests)
    assert [test.name for test in chosen] == ["test_second", "test_first"]


def test_unknown_name_lists_near_ones(tmp_path: Path) -> None:
    """A mistyped name is answered with what it may have meant."""
    tests = registry.discover(_folder(tmp_path, test_one=SOURCE))
    with pytest.raises(registry.UnknownTestError, match="'test_frist'; near: test_first"):
        registry.select(["test_frist"], tests)


def test_every_test_of_the_tree_has_a_summary() -> None:
    """`make list` shows one line for each."""
    tests = registry.discover()
    assert "test_gpt2_block" in {test.name for test in tests}
    assert all(test.summary for test in tests)
