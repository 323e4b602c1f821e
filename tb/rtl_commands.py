# SPDX-License-Identifier: Apache-2.0
"""The commands of `npu` that run tests on the RTL: run, regress, waves, test, faults."""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import time
from collections.abc import Callable, Sequence

from npu.isa.operands import ARRAY_DIMS
from tb import build, faults, registry, regress, runner, waves
from tb.arguments import UsageError, array_dim, built, check_simulator, names_in, positive
from tb.paths import BUILD, ROOT


def _print_result(result: runner.Result) -> None:
    job = result.job
    verdict = "PASS" if result.passed else "FAIL"
    print(f"{verdict} {job.test.name} seed {job.seed} ({result.seconds:.1f} s)", flush=True)
    if result.output:
        print(result.output.rstrip(), flush=True)
    if not result.passed:
        print(f"     {result.message}", flush=True)
        print(f"     log: {(job.folder / 'log.txt').relative_to(ROOT)}", flush=True)
        print(f"     repeat: {job.repro}", flush=True)
        print(f"     waves:  {job.repro.replace('make ', 'make waves ')}", flush=True)


def _chosen(names: Sequence[str], array_dim: int) -> list[registry.BenchTest]:
    """Return the tests that `names` choose, without names all that are for this chip.

    Raises:
        UsageError: a test that is named is not for a chip with this array.
    """
    tests = registry.discover()
    port = build.Configuration(array_dim=array_dim).scratch_bytes
    if not names:
        return [test for test in tests if test.fits(port)]
    chosen = registry.select(names, tests)
    for test in chosen:
        if not test.fits(port):
            dims = [
                str(dim)
                for dim in ARRAY_DIMS
                if test.fits(build.Configuration(array_dim=dim).scratch_bytes)
            ]
            raise UsageError(
                f"{test.name}: given ARRAY_DIM={array_dim}, allowed {', '.join(dims)}: the others "
                "are built with another command port"
            )
    return chosen


def _run(arguments: argparse.Namespace) -> int:
    """Run tests by name."""
    if arguments.list:
        for test in registry.discover():
            print(f"{test.group:24} {test.name:40} {test.summary}")
        return 0
    check_simulator(arguments.sim)
    chosen = _chosen(names_in(arguments.tests), arguments.array_dim)
    if not chosen:
        raise UsageError("no test to run")
    configuration = built(arguments, arguments.kind)
    seeds = range(arguments.seed, arguments.seed + arguments.seeds)
    jobs = [
        runner.Job(test, configuration, seed, full=arguments.full)
        for test in chosen
        for seed in seeds
    ]
    results = runner.run_all(jobs, arguments.jobs, _print_result)
    failed = [result for result in results if not result.passed]
    print(f"{len(results) - len(failed)} passed, {len(failed)} failed")
    return 1 if failed or not results else 0


def _regress(arguments: argparse.Namespace) -> int:
    """Run all tests on the RTL in full; print what they executed of the instruction set."""
    check_simulator(arguments.sim)
    tests = _chosen([], arguments.array_dim)
    configuration = built(arguments, "fast")
    seeds = range(arguments.seed, arguments.seed + arguments.seeds)
    jobs = [runner.Job(test, configuration, seed, full=True) for test in tests for seed in seeds]
    results = runner.run_all(jobs, arguments.jobs, _print_result)
    rows = regress.merge(results)
    table = regress.render(rows)
    (BUILD / "regress.txt").write_text(table, encoding="utf-8")
    print(table)
    failed = sum(not result.passed for result in results)
    unseen = regress.missing(rows)
    print(
        f"{len(results) - failed} passed, {failed} failed; {len(rows) - len(unseen)} of "
        f"{len(rows)} rows executed"
    )
    for name in unseen:
        print(f"no test executes: {name}")
    return 1 if failed or unseen or not results else 0


def _waves(arguments: argparse.Namespace) -> int:
    """Record the waveform of one test: build/waves/NAME.fst and NAME.gtkw."""
    check_simulator(arguments.sim)
    names = names_in(arguments.tests)
    if not names:
        raise UsageError("make waves needs TESTCASE=name")
    missing = build.fst_missing()
    if missing is not None:
        raise build.BuildError(missing)
    chosen = _chosen(names, arguments.array_dim)
    configuration = built(arguments, "debug")
    waves.WAVES.mkdir(parents=True, exist_ok=True)
    jobs = [
        runner.Job(test, configuration, arguments.seed, waves.WAVES / f"{test.name}.fst")
        for test in chosen
    ]
    results = runner.run_all(jobs, arguments.jobs, _print_result)
    for job in jobs:
        if job.waves is not None and job.waves.exists():
            save_file = waves.write_save_file(job.waves)
            print(f"waves: gtkwave {save_file.relative_to(ROOT)}")
    return 1 if any(not result.passed for result in results) else 0


def _test(arguments: argparse.Namespace) -> int:
    """Build, then run everything under pytest: simulator-free tests and all tests on the RTL.

    All sizes of the array are built, because the tests of GEMM run on each of them.
    """
    check_simulator(arguments.sim)
    build.generate()
    for edge in ARRAY_DIMS:
        build.build(build.Configuration(array_dim=edge))
    command = [sys.executable, "-m", "pytest", "-n", str(arguments.jobs), "-q"]
    environment = {
        **os.environ,
        "SEED": str(arguments.seed),
        "ARRAY_DIM": str(arguments.array_dim),
    }
    return subprocess.run(
        [*command, *arguments.paths], cwd=ROOT, env=environment, check=False
    ).returncode


def _build(arguments: argparse.Namespace) -> int:
    """Build a model without running anything."""
    built(arguments, arguments.kind)
    return 0


def _faults(arguments: argparse.Namespace) -> int:
    """Plant each fault of faults/ in the RTL; its test must notice."""
    check_simulator(arguments.sim)
    chosen = faults.discover()
    names = names_in(arguments.faults)
    unknown = set(names) - {fault.name for fault in chosen}
    if unknown:
        raise UsageError(f"no fault is called {', '.join(sorted(unknown))}; see faults/")
    if names:
        chosen = [fault for fault in chosen if fault.name in names]
    build.generate()

    started = time.monotonic()
    verdicts = faults.run_all(
        chosen,
        arguments.array_dim,
        arguments.seed,
        arguments.jobs,
        lambda line: print(line, flush=True),
    )
    missed = [verdict for verdict in verdicts if not verdict.noticed]
    for verdict in missed:
        print(verdict)
    minutes = (time.monotonic() - started) / 60
    print(f"{len(verdicts) - len(missed)} of {len(verdicts)} faults noticed in {minutes:.1f} min")
    return 1 if missed else 0


def _common(parser: argparse.ArgumentParser) -> None:
    cores = len(os.sched_getaffinity(0))
    parser.add_argument("--sim", default="verilator", help="simulator; only verilator")
    parser.add_argument("--array-dim", type=array_dim, default=16, help="4, 8, 16 or 32")
    parser.add_argument("--seed", type=positive, default=1, help="first seed")
    parser.add_argument("-j", "--jobs", type=positive, default=cores, help="runs side by side")


def add_commands(command: Callable[..., argparse.ArgumentParser]) -> None:
    """Add the commands to the parser of `npu`; `command(name, function)` returns a new parser."""
    run = command("run", _run)
    _common(run)
    run.add_argument("tests", nargs="?", default="", help="exact names, comma list; default all")
    run.add_argument("--list", action="store_true", help="list the tests and exit")
    run.add_argument("--seeds", type=positive, default=1, help="seeds per test")
    run.add_argument("--kind", choices=["fast", "debug"], default="fast", help="of the model")
    run.add_argument("--full", action="store_true", help="the long form of tests that have one")
    regression = command("regress", _regress)
    _common(regression)
    regression.add_argument("--seeds", type=positive, default=1, help="seeds per test")
    wave = command("waves", _waves)
    _common(wave)
    wave.add_argument("tests", nargs="?", default="", help="exact names, comma list")
    test = command("test", _test)
    _common(test)
    test.add_argument("paths", nargs="*", help="pytest's own paths and options")
    built_only = command("build", _build)
    _common(built_only)
    built_only.add_argument("kind", nargs="?", choices=["fast", "debug"], default="fast")
    fault = command("faults", _faults)
    _common(fault)
    fault.add_argument("faults", nargs="?", default="", help="names, comma list; default all")
