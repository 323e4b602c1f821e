# SPDX-License-Identifier: Apache-2.0
"""What a command line asks for, as tests to run on a model, and how their results are told."""

from __future__ import annotations

import argparse
import os
from collections.abc import Iterable, Sequence

from npu.cli.arguments import UsageError, add_array_dim, positive
from spec.isa.operands import ARRAY_DIMS
from spec.paths import ROOT
from tb.run import build, registry, runner

ON_EACH_SIZE = ("test_formats", "test_gemm", "test_kv")
"""Modules of tests that depend on the size of the array."""
ON_OTHER_SIZES = {
    4: ("test_cmd_absent", "test_cop_absent"),
    8: ("test_cmd_registers", "test_cmd_tiles", "test_cop_cases", "test_cop_window"),
    32: ("test_cmd_registers", "test_cmd_tiles"),
}
"""Beside `ON_EACH_SIZE`, by size: `tb.run.build.SCRATCH_BYTES` and `COP_PORTS`."""


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
    """Build a model for the array that is asked for."""
    configuration = build.Configuration(kind=kind, array_dim=arguments.array_dim)
    build_all([configuration])
    return configuration


def chips_of(
    tests: Iterable[registry.BenchTest], array_dim: int, kind: build.Kind = "fast"
) -> dict[build.Configuration, list[registry.BenchTest]]:
    """Return the chips of a size that tests are for, with and without narrow formats."""
    chips: dict[build.Configuration, list[registry.BenchTest]] = {}
    for test in tests:
        chips.setdefault(build.Configuration(kind, array_dim, test.narrow_formats), []).append(test)
    return chips


def tests_by_chip(array_dim: int) -> dict[build.Configuration, list[registry.BenchTest]]:
    """Return the chips that everything is tested on, and what runs on each: all tests on one."""
    chips = chips_of(chosen_tests([], array_dim), array_dim)
    for other in ARRAY_DIMS:
        if other != array_dim:
            chips |= chips_of(
                chosen_tests([*ON_EACH_SIZE, *ON_OTHER_SIZES.get(other, ())], other), other
            )
    return chips


def _fits(test: registry.BenchTest, array_dim: int) -> bool:
    chip = build.Configuration(array_dim=array_dim)
    return test.fits(chip.scratch_bytes, chip.cop_sources, test.narrow_formats)


def chosen_tests(names: Sequence[str], array_dim: int) -> list[registry.BenchTest]:
    """Return the tests that `names` choose, without names all that are for this size.

    Raises:
        UsageError: a test that is named is not for a chip with this array.
    """
    tests = registry.discover()
    if not names:
        return [test for test in tests if _fits(test, array_dim)]
    chosen = registry.select(names, tests)
    for test in chosen:
        if not _fits(test, array_dim):
            dims = [str(dim) for dim in ARRAY_DIMS if _fits(test, dim)]
            raise UsageError(
                f"{test.name}: given ARRAY_DIM={array_dim}, allowed {', '.join(dims)}: the others "
                "are built with another command port or coprocessor"
            )
    return chosen


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


def add_common(parser: argparse.ArgumentParser) -> None:
    """Add what all commands on the RTL take."""
    cores = len(os.sched_getaffinity(0))
    parser.add_argument("--sim", default="verilator", help="simulator; only verilator")
    add_array_dim(parser)
    parser.add_argument("--seed", type=positive, default=1, help="first seed")
    parser.add_argument("-j", "--jobs", type=positive, default=cores, help="runs side by side")
