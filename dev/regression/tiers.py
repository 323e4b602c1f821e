# SPDX-License-Identifier: Apache-2.0
"""The tiers: what each one runs.

smoke: every test on the usual chip in its short form, and those that depend on the size of the
array on the smallest. full: all of them in their long form, on every chip of
spec/configurations.toml, every bench of a block, the coprocessor's functions on all their inputs,
the machine of core and chip, and the suites. nightly: the same with three seeds, hostile runs with
ten, all tests without a simulator, and the largest networks.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from dev.regression.task import Kind, Task
from npu.commands.arguments import check_tier
from spec.configurations import ChipParameters
from spec.paths import ROOT
from tb.cop_datapath import model
from tb.run import requests, units

SEEDS = {"smoke": 1, "full": 1, "nightly": 3}
"""Seeds of a tier unless the user says how many."""
HOSTILE_SEEDS = 10
"""Seeds of hostile runs in a night, at least: with 500 hits in each of two tests, 10,000."""
LONG_UNITS = ("cop", "cop_lane", "cop_facc", "cop_root", "cop_divide", "cop_func")
"""Blocks whose tests have a long form."""
SUITES = ("tests/soc", "tests/suites")
WITHOUT_SIMULATOR = ("tests/python", "tests/bad_input", "tests/bench", "tests/dev", "tests/rtl")


def tasks_of(
    tier: str, chip: ChipParameters, seeds: Sequence[int], hostile: int = 0, memory: str = ""
) -> list[Task]:
    """Return the tasks of a tier.

    Args:
        tier: one of `npu.commands.arguments.TIERS`.
        chip: that everything runs on.
        seeds: of random tests.
        hostile: seed of a hostile memory for all tests on the chip without the tag `timing`,
            0 for none; then nothing else runs.
        memory: a DRAM for the same tests, "" for none; likewise.

    Raises:
        UsageError: there is no such tier.
    """
    full = check_tier(tier) != "smoke"
    more = HOSTILE_SEEDS if tier == "nightly" else 0
    tasks = list(_on_chip(chip, seeds, full, hostile, memory, more))
    if not full or hostile or memory:
        return tasks
    tasks += _on_blocks(seeds)
    tasks += [Task("sweep", name, "", 1, True) for name in model.FUNCTIONS]
    kind: Kind = "nightly" if tier == "nightly" else "python"
    tasks += [Task(kind, file, "", 1, True) for folder in SUITES for file in _files(folder)]
    if tier == "nightly":
        tasks += [
            Task("python", f, "", 1, True) for home in WITHOUT_SIMULATOR for f in _files(home)
        ]
    return tasks


def _on_chip(
    chip: ChipParameters, seeds: Sequence[int], full: bool, hostile: int, memory: str, more: int
) -> Iterator[Task]:
    for on, tests in requests.tests_by_chip(chip).items():
        # A model takes longer to build than its few tests.
        if not (full or on.chip.smoke or on.chip == chip):
            continue
        for test in tests:
            if (hostile or memory) and "timing" in test.tags:
                continue
            count = max(len(seeds), more if "hostile" in test.tags else 0)
            own = range(seeds[0], seeds[0] + count)
            for seed in own:
                yield Task("rtl", test.name, on.folder.name, seed, full, hostile, memory)


def _on_blocks(seeds: Sequence[int]) -> Iterator[Task]:
    for block in units.blocks():
        folder = units.UnitConfiguration(block=block).folder.name
        for test in units.tests_of(block):
            for seed in seeds:
                yield Task("unit", test.name, folder, seed, block in LONG_UNITS)


def _files(folder: str) -> list[str]:
    return [str(path.relative_to(ROOT)) for path in sorted((ROOT / folder).rglob("test_*.py"))]
