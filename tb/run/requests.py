# SPDX-License-Identifier: Apache-2.0
"""What a command line asks for, as tests to run on a model, and how their results are told."""

from __future__ import annotations

import argparse
import os
from collections.abc import Sequence

from npu.cli.arguments import UsageError, add_array_dim, positive
from npu.isa.operands import ARRAY_DIMS
from npu.paths import ROOT
from tb.run import build, registry, runner


def check_simulator(name: str) -> None:
    """Raise UsageError unless the simulator is the one that there is."""
    if name != "verilator":
        raise UsageError(f"SIM={name}: only SIM=verilator is supported")


def built(arguments: argparse.Namespace, kind: build.Kind) -> build.Configuration:
    """Build a model for the array that is asked for."""
    configuration = build.Configuration(kind=kind, array_dim=arguments.array_dim)
    build.generate()
    build.build(configuration)
    return configuration


def _fits(test: registry.BenchTest, array_dim: int) -> bool:
    chip = build.Configuration(array_dim=array_dim)
    return test.fits(chip.scratch_bytes, chip.cop_sources)


def chosen_tests(names: Sequence[str], array_dim: int) -> list[registry.BenchTest]:
    """Return the tests that `names` choose, without names all that are for this chip.

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
