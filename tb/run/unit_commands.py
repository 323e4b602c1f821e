# SPDX-License-Identifier: Apache-2.0
"""The command `npu unit`: builds the benches of single blocks and runs their tests."""

from __future__ import annotations

import argparse
import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

from npu.commands.arguments import AddCommand, UsageError, names_in, positive
from spec.configurations import USUAL, ChipParameters
from tb.run import build, registry, runner, unit_times, units
from tb.run.requests import add_common, add_keep, check_simulator, print_result, shrink_all
from tb.run.together import run_all as in_one_process
from tb.run.verilator import VerilatorError

BAD_INPUT = (
    UsageError,
    VerilatorError,
    build.BuildError,
    registry.UnknownTestError,
    units.UnknownBlockError,
    units.NoArrayError,
)
"""What a user can cause, or a tool; the text is what to print."""


@dataclass(frozen=True)
class BlockResult:
    """How the tests of a block ended.

    Attributes:
        block: its name.
        build_s: wall-clock seconds until its model was there.
        results: of its tests.
    """

    block: str
    build_s: float
    results: list[runner.TestResult]

    @property
    def failed(self) -> int:
        """The number of runs that failed."""
        return sum(not result.passed for result in self.results)

    def __str__(self) -> str:
        runs = sum(result.seconds for result in self.results)
        return (
            f"{self.block:12} {self.build_s:7.1f} {runs:7.1f} {len(self.results):6} "
            f"{self.failed or '-':>6}"
        )


LISTING = "python -m npu.cli unit --list"
TABLE_HEAD = f"{'block':12} {'build s':>7} {'run s':>7} {'runs':>6} {'failed':>6}"


def chosen_tests(
    blocks: Sequence[str], names: Sequence[str]
) -> dict[str, list[registry.BenchTest]]:
    """Return the tests of each block, or those of them that are named.

    Raises:
        UnknownTestError: none of the blocks has a test of this name.
    """
    tests = {block: units.tests_of(block) for block in blocks}
    if not names:
        return tests
    everything = [test for found in tests.values() for test in found]
    chosen = {test.name for test in registry.select(names, everything, LISTING)}
    named = {block: [t for t in found if t.name in chosen] for block, found in tests.items()}
    return {block: found for block, found in named.items() if found}


def run_block(
    block: str,
    tests: Sequence[registry.BenchTest],
    seeds: Sequence[int],
    chip: ChipParameters = USUAL,
    full: bool = False,
    together: bool = False,
    keep: str = "",
) -> BlockResult:
    """Build a block's model and run tests on it, `full` in their long form."""
    started = time.monotonic()
    configuration = units.UnitConfiguration(block=block, chip=chip)
    build.build(configuration)
    build_s = time.monotonic() - started
    jobs = [
        runner.Job(test, configuration, seed, full=full, keep=keep)
        for test in tests
        for seed in seeds
    ]
    run_all = in_one_process if together else runner.run_all
    return BlockResult(block, build_s, run_all(jobs, 1, print_result))


def _unit(arguments: argparse.Namespace) -> int:
    """Run the tests of single blocks, each in a bench of its own; print a table."""
    check_simulator(arguments.sim)
    chip = arguments.chip or USUAL
    blocks = units.select(names_in(arguments.blocks), chip)
    if arguments.list:
        for test in (test for block in blocks for test in units.tests_of(block)):
            print(f"{units.block_of(test):12} {test.name:32} {test.summary}")
        return 0
    tests = chosen_tests(blocks, names_in(arguments.tests))
    build.generate()
    if arguments.time:
        print(unit_times.HEAD)
        times = []
        for block in tests:
            times.append(unit_times.measure(block))
            print(times[-1], flush=True)
        unit_times.write_report(times)
        return 0
    seeds = range(arguments.seed, arguments.seed + arguments.seeds)
    full, together, keep = arguments.full, arguments.together, arguments.keep
    with ThreadPoolExecutor(max_workers=arguments.jobs) as pool:
        results = list(
            pool.map(
                lambda block: run_block(block, tests[block], seeds, chip, full, together, keep),
                tests,
            )
        )
    shrink_all(each for result in results for each in result.results)
    print(TABLE_HEAD)
    for result in results:
        print(result)
    return 1 if any(result.failed for result in results) else 0


def add_commands(command: AddCommand) -> None:
    """Add the command to the parser of `npu`."""
    unit = command("unit", _unit)
    add_common(unit)
    unit.add_argument("blocks", nargs="?", default="", help="names, comma list; default all")
    unit.add_argument("--list", action="store_true", help="list the tests and exit")
    unit.add_argument("--tests", default="", help="exact names, comma list; default all")
    unit.add_argument(
        "--time",
        action="store_true",
        help="measure from an edited line to the verdict; build/reports/unit_times.json",
    )
    unit.add_argument("--seeds", type=positive, default=1, help="seeds per test")
    add_keep(unit)
    unit.add_argument("--full", action="store_true", help="the long form of tests that have one")
    unit.add_argument(
        "--together", action="store_true", help="the tests of a block and seed in one process"
    )
