# SPDX-License-Identifier: Apache-2.0
"""What a command line asks for, as tests to run on a model, and how their results are told."""

from __future__ import annotations

import argparse
import os
from collections.abc import Iterable, Sequence

from npu.commands.arguments import UsageError, add_config, positive
from spec.configurations import CHIPS, USUAL, ChipParameters
from spec.paths import ROOT
from tb.bench.scenes import Keep, last_of
from tb.run import build, registry, runner, shrinking


def check_simulator(name: str) -> None:
    """Raise UsageError unless the simulator is the one that there is."""
    if name != "verilator":
        raise UsageError(f"SIM={name}: only SIM=verilator is supported")


def build_all(chips: Iterable[build.Configuration]) -> None:
    """Build the models of chips."""
    build.generate()
    for chip in chips:
        build.build(chip)


def built(arguments: argparse.Namespace, kind: build.Kind) -> build.Configuration:
    """Build a model of the chip that is asked for."""
    configuration = build.Configuration(kind, arguments.chip or USUAL)
    build_all([configuration])
    return configuration


def chips_of(
    tests: Iterable[registry.BenchTest], chip: ChipParameters | None, kind: build.Kind = "fast"
) -> dict[build.Configuration, list[registry.BenchTest]]:
    """Return the models that tests run on.

    Args:
        tests: to run.
        chip: that they run on; None for the usual one, or where a test is not for it, the first
            that it is for.
        kind: of the models.

    Raises:
        UsageError: a test is not for the chip.
    """
    chips: dict[build.Configuration, list[registry.BenchTest]] = {}
    for test in tests:
        fitting = [each for each in CHIPS.values() if test.fits(each)]
        if chip is not None and chip not in fitting:
            names = ", ".join(each.name for each in fitting)
            raise UsageError(
                f"{test.name}: given CONFIG={chip.name}, allowed {names}: the others are built "
                "with another command port, coprocessor or other formats"
            )
        chips.setdefault(build.Configuration(kind, chip or fitting[0]), []).append(test)
    return chips


def tests_by_chip(
    chip: ChipParameters = USUAL,
) -> dict[build.Configuration, list[registry.BenchTest]]:
    """Return the models that everything is tested on, and what runs on each: on one all tests."""
    chips = chips_of(chosen_tests([], chip), chip)
    for other in CHIPS.values():
        if other != chip:
            tests = registry.select(other.tests, registry.discover())
            chips |= chips_of([test for test in tests if test.fits(other)], other)
    return chips


def chosen_tests(names: Sequence[str], chip: ChipParameters) -> list[registry.BenchTest]:
    """Return the tests that `names` choose, without names all that are for a chip."""
    tests = registry.discover()
    return registry.select(names, tests) if names else [t for t in tests if t.fits(chip)]


def print_result(result: runner.TestResult) -> None:
    """Say how a run ended and how to repeat it."""
    job = result.job
    verdict = "PASS" if result.passed else "FAIL"
    print(f"{verdict} {job.test.name} seed {job.seed} ({result.seconds:.1f} s)", flush=True)
    if result.output:
        print(result.output.rstrip(), flush=True)
    if not result.passed:
        print(f"     {result.message}", flush=True)
        print(f"     log: {(job.folder / 'log.txt').relative_to(ROOT)}", flush=True)
        print(f"     repeat: {job.repro}", flush=True)
        words = job.repro.replace("make unit ", "make ")
        print(f"     waves:  {words.replace('make ', 'make waves ')}", flush=True)


def shrink_all(results: Iterable[runner.TestResult]) -> None:
    """Say with how few parts of its scene each random test still fails that draws scenes.

    Raises:
        UsageError: a test was told which scene to run, and draws none.
    """
    for result in results:
        job = result.job
        if result.passed and job.keep and last_of(job.folder) is None:
            raise UsageError(f"KEEP={job.keep}: {job.test.name} draws no scenes")
        if result.passed or not shrinking.has_scene(result):
            continue
        print(f"shrinking the scene of {job.test.name} ...", flush=True)
        print(shrinking.shrink(result, runner.run) or "it fails only behind the scenes before it")


def _keep(text: str) -> str:
    try:
        return str(Keep.parse(text)) if text else ""
    except ValueError as error:
        raise argparse.ArgumentTypeError(str(error)) from None


def add_keep(parser: argparse.ArgumentParser) -> None:
    """Add what commands take that run a random test by name."""
    parser.add_argument(
        "--keep",
        type=_keep,
        default="",
        help="which scene of a random test runs, and which of its parts, as a failure tells it",
    )


def add_common(parser: argparse.ArgumentParser) -> None:
    """Add what all commands on the RTL take."""
    cores = len(os.sched_getaffinity(0))
    parser.add_argument("--sim", default="verilator", help="simulator; only verilator")
    add_config(parser, None)
    parser.add_argument("--seed", type=positive, default=1, help="first seed")
    parser.add_argument("-j", "--jobs", type=positive, default=cores, help="runs side by side")
