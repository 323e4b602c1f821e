# SPDX-License-Identifier: Apache-2.0
"""The commands of `npu` that run tests: test, waves, pytest; and build."""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
from collections.abc import Sequence

from npu.commands.arguments import AddCommand, UsageError, names_in, positive, whole_from
from spec.configurations import USUAL, ChipParameters
from spec.paths import REPORTS, ROOT
from tb.bench.memory_kinds import DRAMS
from tb.run import build, failure_waves, machine, registry, runner, together, units, waves
from tb.run.requests import (
    add_common,
    add_keep,
    build_all,
    built,
    check_simulator,
    chips_of,
    chosen_tests,
    print_result,
    shrink_all,
)
from tb.run.verilator import VerilatorError

BAD_INPUT = (
    UsageError,
    VerilatorError,
    build.BuildError,
    machine.CoreMissingError,
    registry.UnknownTestError,
    units.NoArrayError,
    waves.WaveError,
)
"""What a user can cause, or a tool; the text is what to print."""
SKIPPED = REPORTS / "skipped.json"
"""What the last run of all tests of pytest has skipped: files, and tests as pytest names them."""


def _test(arguments: argparse.Namespace) -> int:
    """Run tests on the RTL by name, all without a name."""
    if arguments.list:
        for test in registry.discover():
            print(f"{test.group:24} {test.name:40} {test.summary}")
        return 0
    check_simulator(arguments.sim)
    chosen = chosen_tests(names_in(arguments.tests), arguments.chip or USUAL)
    if not chosen:
        raise UsageError("no test to run")
    chips = chips_of(chosen, arguments.chip, arguments.kind)
    build_all(chips)
    seeds = range(arguments.seed, arguments.seed + arguments.seeds)
    jobs = [
        runner.Job(
            test,
            chip,
            seed,
            full=arguments.full,
            hostile=arguments.hostile,
            memory=arguments.memory,
            keep=arguments.keep,
        )
        for chip, tests in chips.items()
        for test in tests
        for seed in seeds
    ]
    run_all = together.run_all if arguments.together else runner.run_all
    results = run_all(jobs, arguments.jobs, print_result)
    failed = [result for result in results if not result.passed]
    shrink_all(results)
    print(f"{len(results) - len(failed)} passed, {len(failed)} failed")
    return 1 if failed or not results else 0


def _built_block(test: registry.BenchTest, chip: ChipParameters) -> units.UnitConfiguration:
    """Build the bench of the block that a test is of so that it records waves."""
    (block,) = units.select([units.block_of(test)], chip)
    configuration = units.UnitConfiguration("debug", chip, block=block)
    build.generate()
    build.build(configuration)
    return configuration


def _recorded(
    test: registry.BenchTest, configuration: build.Configuration, arguments: argparse.Namespace
) -> runner.Job:
    """Return the job that records a test."""
    fst = waves.WAVES / f"{test.name}.fst"
    return runner.Job(
        test, configuration, arguments.seed, fst, full=arguments.full, keep=arguments.keep
    )


def _waves(arguments: argparse.Namespace) -> int:
    """Record the waveforms of tests, of blocks too: build/waves/NAME.fst and NAME.gtkw."""
    check_simulator(arguments.sim)
    names, chip = names_in(arguments.tests), arguments.chip or USUAL
    if not names:
        raise UsageError("make waves needs TESTCASE=name")
    chosen = registry.select(names, [*registry.discover(), *units.tests_of()])
    block_tests = [test for test in units.tests_of() if test in chosen]
    for test in block_tests:
        units.select([units.block_of(test)], chip)
    rest = [name for name in names if name not in {test.name for test in block_tests}]
    chips = chips_of(chosen_tests(rest, chip) if rest else [], arguments.chip, "debug")
    missing = build.fst_missing()
    if missing is not None:
        raise build.BuildError(f"waves: {missing}")
    jobs = [_recorded(test, _built_block(test, chip), arguments) for test in block_tests]
    build_all(chips)
    jobs += [_recorded(test, chip, arguments) for chip, each in chips.items() for test in each]
    waves.WAVES.mkdir(parents=True, exist_ok=True)
    results = runner.run_all(jobs, arguments.jobs, print_result)
    for job in jobs:
        if job.waves is not None and job.waves.exists():
            save_file = failure_waves.write_save_file(job, job.waves)
            print(f"waves: gtkwave {save_file.relative_to(ROOT)}")
    return 1 if any(not result.passed for result in results) else 0


def _pytest(arguments: argparse.Namespace) -> int:
    """Build what they look for, then run the tests of pytest."""
    check_simulator(arguments.sim)
    paths = _skipped(arguments.paths) if arguments.skipped else list(arguments.paths)
    for path in paths:
        file = path.partition("::")[0]
        if not path.startswith("-") and not (ROOT / file).exists():
            raise UsageError(f"pytest: given {file!r}, allowed files and folders of tests")
    if arguments.skipped and not paths:
        print("nothing was skipped")
        return 0
    build_all([build.Configuration(), machine.MachineConfiguration()])
    command = [sys.executable, "-m", "pytest", "-n", str(arguments.jobs), "-q"]
    if arguments.skipped or not paths:
        command.append(f"--write-skipped={SKIPPED}")
    environment = {
        **os.environ,
        "SEED": str(arguments.seed),
        "CONFIG": (arguments.chip or USUAL).name,
    }
    return subprocess.run([*command, *paths], cwd=ROOT, env=environment, check=False).returncode


def _skipped(paths: Sequence[str]) -> list[str]:
    """Return what the last run of all tests has skipped, files or single tests.

    Raises:
        UsageError: there was no such run, or other tests are named as well.
    """
    if paths:
        raise UsageError(f"pytest --skipped: given {paths[0]!r} as well, allowed nothing else")
    if not SKIPPED.exists():
        raise UsageError("pytest --skipped: given no run of all tests, allowed after make test")
    found: list[str] = json.loads(SKIPPED.read_text(encoding="utf-8"))
    return found


def _build(arguments: argparse.Namespace) -> int:
    """Build a model without running anything."""
    built(arguments, arguments.kind)
    return 0


def add_commands(command: AddCommand) -> None:
    """Add the commands to the parser of `npu`."""
    wave = command("waves", _waves)
    add_common(wave)
    wave.add_argument("tests", nargs="?", default="", help="exact names, comma list")
    add_keep(wave)
    wave.add_argument("--full", action="store_true", help="the long form of tests that have one")
    test = command("test", _test)
    test.add_argument(
        "tests", nargs="?", default="", metavar="TESTS", help="exact names, comma list"
    )
    add_common(test)
    test.add_argument("--list", action="store_true", help="list the tests and exit")
    test.add_argument("--seeds", type=positive, default=1, help="seeds per test")
    test.add_argument("--kind", choices=["fast", "debug"], default="fast", help="of the model")
    test.add_argument("--full", action="store_true", help="the long form of tests that have one")
    test.add_argument(
        "--hostile",
        type=whole_from(0),
        default=0,
        help="seed of a hostile memory; 0: the usual one",
    )
    test.add_argument(
        "--memory",
        choices=DRAMS,
        default="",
        help="a DRAM behind the chip; by default a memory of fixed latency",
    )
    add_keep(test)
    test.add_argument(
        "--together", action="store_true", help="the tests of a chip and seed in one process"
    )
    others = command("pytest", _pytest)
    add_common(others)
    others.add_argument(
        "--skipped", action="store_true", help="only what the last run of all tests has skipped"
    )
    others.add_argument("paths", nargs="*", help="pytest's own paths and options")
    built_only = command("build", _build)
    add_common(built_only)
    built_only.add_argument("kind", nargs="?", choices=["fast", "debug"], default="fast")
