# SPDX-License-Identifier: Apache-2.0
"""What a regression runs, in which order, and which tests share a process."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from functools import cache
from pathlib import Path

import pytest

from dev.regression import batches, known, models, selection, tiers
from dev.regression.task import Task
from npu.commands.arguments import TIERS, UsageError, names_in
from spec.configurations import USUAL
from spec.paths import ROOT
from tb.cop_datapath import model
from tb.run import registry, requests, units
from tb.tests.chip.test_hostile import FULL


@cache
def tier(name: str) -> tuple[Task, ...]:
    """Return the tasks of a tier with its usual seeds."""
    return tuple(tiers.tasks_of(name, USUAL, range(1, 1 + tiers.SEEDS[name])))


def on_chip() -> set[tuple[str, str]]:
    """Return all pairs of a test on the chip and a model that it runs on."""
    chips = requests.tests_by_chip().items()
    return {(test.name, chip.folder.name) for chip, tests in chips for test in tests}


# Tiers


@pytest.mark.parametrize("name", TIERS)
def test_every_model_is_known_by_its_folder(name: str) -> None:
    """A worker builds what a task runs on from nothing but that name."""
    folders = {task.model for task in tier(name) if task.model}
    assert {models.configuration_of(folder).folder.name for folder in folders} == folders


def test_smoke_has_every_test_on_the_chip() -> None:
    """In its short form, once for each of two models; and nothing else.

    The two lack nothing but what tests of a chip without narrow formats are about.
    """
    tasks = tier("smoke")
    both = {"fast-a16", "fast-a4"}
    assert {(task.name, task.model) for task in tasks} == {
        (name, model) for name, model in on_chip() if model in both
    }
    assert {task.name for task in tasks} == {
        test.name for test in registry.discover() if test.narrow_formats
    }
    assert {(task.kind, task.seed, task.full) for task in tasks} == {("rtl", 1, False)}


def test_full_has_the_long_forms_and_all_else_that_simulates() -> None:
    """All benches of blocks, all sweeps, all files of tests/soc and tests/suites."""
    kinds: dict[str, list[Task]] = {}
    for task in tier("full"):
        kinds.setdefault(task.kind, []).append(task)
    assert {(task.name, task.model) for task in kinds["rtl"]} == on_chip()
    assert all(task.full for task in kinds["rtl"])
    assert {task.name for task in kinds["unit"]} == {test.name for test in units.tests_of()}
    assert {task.name for task in kinds["unit"] if task.full} == {
        test.name for block in tiers.LONG_UNITS for test in units.tests_of(block)
    }
    assert {task.name for task in kinds["sweep"]} == set(model.FUNCTIONS)
    assert {task.name for task in kinds["python"]} == files_of("soc", "suites")
    assert set(kinds) == {"rtl", "unit", "sweep", "python"}


def test_nightly_has_three_seeds_and_all_tests() -> None:
    """The suites know that it is night; no file of tests/ is left out but oracles' own."""
    tasks = tier("nightly")
    seeds: dict[tuple[str, str], set[int]] = {}
    for task in tasks:
        if task.kind in ("rtl", "unit"):
            seeds.setdefault((task.name, task.model), set()).add(task.seed)
    ten = {name for (name, _), own in seeds.items() if own == {*range(1, 11)}}
    assert ten == {"test_hostile_memory", "test_hostile_host"}
    assert all(own == {1, 2, 3} for (name, _), own in seeds.items() if name not in ten)
    assert FULL * len(ten) * tiers.HOSTILE_SEEDS == 10_000
    assert set(seeds) >= on_chip()
    names = Counter(task.name for task in tasks if task.kind in ("python", "nightly"))
    others = {path.name for path in (ROOT / "tests").iterdir() if path.is_dir()}
    others -= {"oracles", "__pycache__"}  # `make oracles`: torch, by hand
    assert set(names) == files_of(*others)
    assert set(names.values()) == {1}
    assert {t.name for t in tasks if t.kind == "nightly"} == files_of("soc", "suites")


def files_of(*folders: str) -> set[str]:
    """Return the files of pytest in folders of tests/."""
    found = [path for folder in folders for path in (ROOT / "tests" / folder).rglob("test_*.py")]
    return {str(path.relative_to(ROOT)) for path in found}


def test_a_hostile_memory_is_only_for_tests_on_the_chip() -> None:
    """Those that measure cycles, or how long the chip waits, are left out."""
    tasks = tiers.tasks_of("full", USUAL, [1], hostile=5)
    assert {(task.kind, task.hostile) for task in tasks} == {("rtl", 5)}
    left_out = {t.name for t in tier("full") if t.kind == "rtl"} - {task.name for task in tasks}
    assert left_out == {test.name for test in registry.discover() if "timing" in test.tags}


def test_a_dram_is_for_the_same_tests() -> None:
    """Under keys of their own, by which a person sees what answered the chip."""
    tasks = tiers.tasks_of("full", USUAL, [1], memory="ddr4")
    assert {(task.kind, task.memory) for task in tasks} == {("rtl", "ddr4")}
    hostile = tiers.tasks_of("full", USUAL, [1], hostile=5)
    assert [task.name for task in tasks] == [task.name for task in hostile]
    assert all(task.key.endswith("/ddr4") and task.short.endswith(" on ddr4") for task in tasks)


def test_keys_are_unique() -> None:
    """A key is what results are found by."""
    for name in TIERS:
        assert max(Counter(task.key for task in tier(name)).values()) == 1


def test_an_unknown_tier() -> None:
    """One line with those that there are."""
    with pytest.raises(UsageError) as raised:
        tiers.tasks_of("smok", USUAL, [1])
    assert str(raised.value) == "TIER=smok: given 'smok', allowed smoke, full, nightly"


def test_every_module_says_what_it_is_about() -> None:
    """A filter by tags would silently leave out one that does not."""
    assert {test.module for test in registry.discover() if not test.tags} == set()


def test_a_tag_that_there_is_not(tmp_path: Path) -> None:
    """One line with those that there are, and the file."""
    file = tmp_path / "test_x.py"
    file.write_text('TAGS = ("gemm", "gem")\n', encoding="utf-8")
    known = rf"^{file}: given the tag 'gem', allowed ld, st, gemm,"
    with pytest.raises(registry.BadTestError, match=known):
        registry.discover(tmp_path, "x")


# Selection


@pytest.mark.parametrize(
    ("text", "chosen"),
    [
        ("test_dma_random", lambda t: t.name == "test_dma_random"),
        ("test_dma", lambda t: module_of(t) == "test_dma"),
        ("registers", lambda t: "registers" in tags_of(t)),
        ("gemm", lambda t: "gemm" in tags_of(t) or (t.kind, t.model) == ("unit", "fast-gemm")),
        ("axi_mux", lambda t: t.model == "fast-axi_mux"),
        ("sweep", lambda t: t.kind == "sweep"),
        ("fast-a4", lambda t: t.model == "fast-a4"),
        ("tests/soc/test_hosts.py", lambda t: t.name == "tests/soc/test_hosts.py"),
        ("tests/soc/*", lambda t: t.name.startswith("tests/soc/")),
        ("*_random", lambda t: t.name.endswith("_random")),
        ("rtl,!long", lambda t: t.kind == "rtl" and "long" not in tags_of(t)),
        ("!rtl", lambda t: t.kind != "rtl"),
        ("test_dma, sweep ,!test_dma_random,!exp_float32", lambda t: (
            module_of(t) == "test_dma" and t.name != "test_dma_random"
        ) or (t.kind == "sweep" and t.name != "exp_float32")),
        ("rtl unit", lambda t: t.kind in ("rtl", "unit")),
        ("", lambda t: True),
    ],
)  # fmt: skip
def test_words_of_a_filter(text: str, chosen: Callable[[Task], bool]) -> None:
    """Names, modules, tags, engines, blocks, kinds, models, files, globs, and `!`."""
    left = selection.chosen(tier("full"), names_in(text))
    assert left == [task for task in tier("full") if chosen(task)]
    assert left


def module_of(task: Task) -> str:
    """Return the module of a task's test."""
    test = known.tests().get(task.name)
    return test.group if test else ""


def tags_of(task: Task) -> tuple[str, ...]:
    """Return the tags of a task's test."""
    test = known.tests().get(task.name)
    return test.tags if test else ()


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("test_dma_randon", "near: test_dma_random"),
        ("gemm,vex", "near: vec"),
        ("!vex", "near: vec"),
        ("GEMM", "FILTER: given 'GEMM', no test, module, file, block, model, tag or engine"),
        ("nonsense[", "of this tier; tags: ld, st, gemm,"),
        ("tests/soc/test_none.py", "of this tier"),
        ("a\x1bb", r"FILTER: given 'a\x1bb', no test"),
        ("gemm vex", "FILTER: given 'vex', no test"),
        ("gemm,!gemm", "FILTER: given 'gemm,!gemm', which leaves no test"),
        ("!*", "FILTER: given '!*', which leaves no test"),
    ],
)
def test_a_filter_that_fits_nothing(text: str, said: str) -> None:
    """One line with near names and all tags."""
    with pytest.raises(selection.SelectionError) as raised:
        selection.chosen(tier("full"), names_in(text))
    assert said in str(raised.value)
    assert "\n" not in str(raised.value)


@pytest.mark.parametrize("count", [1, 2, 7, 100])
def test_shares_are_the_whole(count: int) -> None:
    """Each task is in one of them, and they are of one size but for one task."""
    shares = [selection.shard(tier("full"), f"{n}/{count}") for n in range(1, count + 1)]
    tasks = [task for share in shares for task in share]
    assert sorted(tasks) == sorted(tier("full"))
    assert max(map(len, shares)) - min(map(len, shares)) <= 1


@pytest.mark.parametrize(
    "text",
    ["0/4", "5/4", "1", "1/", "/4", "1/0", "-1/4", "a/b", "1/4/2", "1.0/4", "\u0661/4", "1/4\n",
     " 1/4", "1/" + "9" * 5000],
)  # fmt: skip
def test_a_share_that_means_nothing(text: str) -> None:
    """One line with an example."""
    with pytest.raises(selection.SelectionError) as raised:
        selection.shard(tier("full"), text)
    assert str(raised.value) == f"SHARD: given {text!r}, allowed such as 1/4, the first of four"


def test_a_share_without_tests() -> None:
    """More shares than tests."""
    with pytest.raises(selection.SelectionError, match=r"^SHARD=4/4: leaves no test of 3$"):
        selection.shard(tier("full")[:3], "4/4")


# Batches


def varied() -> list[Task]:
    """Return tests of all kinds on all models, with two seeds, in both forms and memories."""
    seeds = [replace(task, seed=2) for task in tier("full")]
    hostile = tiers.tasks_of("full", USUAL, [1], hostile=3)
    dram = tiers.tasks_of("full", USUAL, [1], memory="lpddr4")
    found = [*tier("smoke"), *tier("full"), *seeds, *hostile, *dram]
    random.Random(1).shuffle(found)
    return found


def test_every_task_is_in_one_batch() -> None:
    """None is lost, and none runs twice."""
    given = [task for batch in batches.make(varied(), {}) for task in batch.tasks]
    assert Counter(given) == Counter(varied())


def test_only_what_is_alike_shares_a_process() -> None:
    """One kind, model, seed, form and memory; short, few, and none that wants to be alone."""
    tasks = varied()
    rng = random.Random(2)
    seconds = {task.key: rng.choice((0.1, 1.0, 5.0, 7.0, 100.0)) for task in tasks[::2]}
    expected = batches.guesses(tasks, seconds)
    shared = [batch for batch in batches.make(tasks, seconds) if len(batch.tasks) > 1]
    assert len(shared) > 50
    for batch in shared:
        alike = {(t.kind, t.model, t.seed, t.full, t.hostile, t.memory) for t in batch.tasks}
        assert len(alike) == 1
        assert len({known.tests()[t.name].memory_bytes for t in batch.tasks}) == 1
        assert {kind for kind, *_ in alike} <= {"rtl", "unit"}
        assert len(batch.tasks) <= batches.MOST
        assert sum(expected[task] for task in batch.tasks) <= batches.BATCH_S
        assert max(expected[task] for task in batch.tasks) <= batches.BATCH_S / 2
        for task in batch.tasks:
            test = known.tests()[task.name]
            assert not test.alone, test
            assert not test.power_ups, test
            assert not (task.full and "long" in test.tags and task.key not in seconds), task


def test_some_modules_want_to_be_alone(tmp_path: Path) -> None:
    """A line says so; several states at power-up need several processes."""
    body = "import cocotb\n{}\n@cocotb.test()\nasync def test_{}(dut): pass\n"
    for name, line in (("a", "ALONE = 1"), ("b", "POWER_UPS = 2"), ("c", "MEMORY_MIB = 1")):
        (tmp_path / f"test_{name}.py").write_text(body.format(line, name), encoding="utf-8")
    alone = {test.name: test.alone for test in registry.discover(tmp_path, "x")}
    assert alone == {"test_a": True, "test_b": True, "test_c": False}
    assert any(test.alone for test in registry.discover())


def test_the_longest_first() -> None:
    """As far as is known from the last pass, and by kind where nothing is known."""
    tasks = varied()
    seconds = {task.key: 1000.0 + number for number, task in enumerate(tasks[:5])}
    given = batches.make(tasks, seconds)
    assert [batch.tasks for batch in given[:5]] == [(task,) for task in tasks[4::-1]]
    expected = batches.guesses(tasks, seconds)
    sums = [sum(expected[task] for task in batch.tasks) for batch in given]
    assert sums == sorted(sums, reverse=True)


def test_what_a_change_concerns_goes_before_all() -> None:
    """In its own order, however short it is."""
    tasks = varied()
    first = list(dict.fromkeys(task.test for task in random.Random(3).sample(tasks, 40)))
    given = batches.make(tasks, {}, first=first)
    ranks = [min(rank(first, task) for task in batch.tasks) for batch in given]
    assert ranks == sorted(ranks)
    concerned = [any(task.test in first for task in batch.tasks) for batch in given]
    assert concerned == sorted(concerned, reverse=True)
    assert given[0].tasks[0].test == first[0]


def rank(first: list[str], task: Task) -> int:
    """Return the place of a task in a list of keys, its length if it is not there."""
    return first.index(task.test) if task.test in first else len(first)


def test_what_a_change_concerns_goes_first_in_any_form() -> None:
    """What a run of the long forms executed decides the order of the short ones too."""
    names = ("test_gemm_random", "test_vec_random", "test_registers_lock")
    recorded = [Task("rtl", name, "fast-a16", 1, True) for name in names]
    keys = [task.key for task in reversed(recorded)]
    files = [Path("rtl/vec/npu_vec.sv"), Path("tb/tests/engines/test_vec.py")]
    order = selection.concerned(recorded, files, keys)
    assert [test.rsplit("/")[-1] for test in order] == [names[1], names[2], names[0]]
    short = [Task("rtl", name, "fast-a16") for name in names]
    given = batches.make(short, dict.fromkeys((task.key for task in short), 60.0), first=order)
    assert [batch.tasks[0].name for batch in given] == [names[1], names[2], names[0]]


def test_a_change_without_rtl_concerns_who_imports_it() -> None:
    """Not those that executed most of nothing."""
    recorded = [
        Task("rtl", name, "fast-a16") for name in ("test_registers_lock", "test_dma_random")
    ]
    order = selection.concerned(
        recorded, [Path("tb/stimulus/simple_cases.py")], [task.key for task in recorded]
    )
    assert order[0].endswith("test_dma_random")
