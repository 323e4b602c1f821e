# SPDX-License-Identifier: Apache-2.0
"""The command line: `npu <command>` or `python -m tb.cli <command>`; the Makefile calls it."""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
from collections.abc import Callable, Sequence
from dataclasses import asdict
from typing import NoReturn

from npu.isa.operands import ARRAY_DIMS
from tb import build, faults, lint, proofs, registry, regress, runner, sources, synth, waves
from tb.benchmarks import plain, publish, suite
from tb.models import commands as commands_of_models
from tb.paths import BUILD, ROOT
from tb.verilator import VerilatorError


class UsageError(ValueError):
    """A command line that asks for something that there is not."""


class _Parser(argparse.ArgumentParser):
    """Says in one line what is wrong."""

    def error(self, message: str) -> NoReturn:
        self.exit(2, f"{self.prog}: {message}\n")


def _names(text: str) -> list[str]:
    names = [name for name in (part.strip() for part in text.split(",")) if name]
    if text and not names:
        raise UsageError(f"given {text!r}, allowed names separated by commas")
    return names


def _positive(text: str) -> int:
    if not (text.isascii() and text.isdecimal()) or int(text) < 1:
        raise argparse.ArgumentTypeError(f"given {text!r}, allowed 1 and above")
    return int(text)


def _array_dim(text: str) -> int:
    allowed = [str(dim) for dim in ARRAY_DIMS]
    if text not in allowed:
        raise argparse.ArgumentTypeError(f"given {text!r}, allowed {', '.join(allowed)}")
    return int(text)


def _check_simulator(name: str) -> None:
    if name != "verilator":
        raise UsageError(f"SIM={name}: only SIM=verilator is supported")


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


def _configuration(arguments: argparse.Namespace, kind: build.Kind) -> build.Configuration:
    configuration = build.Configuration(kind=kind, array_dim=arguments.array_dim)
    build.generate()
    build.build(configuration)
    return configuration


def _run(arguments: argparse.Namespace) -> int:
    """Run tests by name."""
    if arguments.list:
        for test in registry.discover():
            print(f"{test.group:24} {test.name:40} {test.summary}")
        return 0
    _check_simulator(arguments.sim)
    chosen = _chosen(_names(arguments.tests), arguments.array_dim)
    if not chosen:
        raise UsageError("no test to run")
    configuration = _configuration(arguments, "debug" if arguments.debug else "fast")
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
    _check_simulator(arguments.sim)
    tests = _chosen([], arguments.array_dim)
    configuration = _configuration(arguments, "fast")
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
    _check_simulator(arguments.sim)
    names = _names(arguments.tests)
    if not names:
        raise UsageError("make waves needs TESTCASE=name")
    missing = build.fst_missing()
    if missing is not None:
        raise build.BuildError(missing)
    chosen = _chosen(names, arguments.array_dim)
    configuration = _configuration(arguments, "debug")
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
    _check_simulator(arguments.sim)
    build.generate()
    for array_dim in ARRAY_DIMS:
        build.build(build.Configuration(array_dim=array_dim))
    command = [sys.executable, "-m", "pytest", "-n", str(arguments.jobs), "-q"]
    environment = {
        **os.environ,
        "SEED": str(arguments.seed),
        "ARRAY_DIM": str(arguments.array_dim),
    }
    return subprocess.run(
        [*command, *arguments.paths], cwd=ROOT, env=environment, check=False
    ).returncode


def _faults(arguments: argparse.Namespace) -> int:
    """Plant each fault of faults/ in the RTL; its test must notice."""
    _check_simulator(arguments.sim)
    chosen = faults.discover()
    names = _names(arguments.faults)
    unknown = set(names) - {fault.name for fault in chosen}
    if unknown:
        raise UsageError(f"no fault is called {', '.join(sorted(unknown))}; see faults/")
    if names:
        chosen = [fault for fault in chosen if fault.name in names]
    build.generate()

    def show(verdict: faults.Verdict) -> None:
        word = "noticed" if verdict.noticed else "MISSED "
        lines = verdict.reason.splitlines() or [""]
        print(f"{word} {verdict.fault.name} by {verdict.fault.test.name}", flush=True)
        print(f"        {verdict.fault.summary}", flush=True)
        print(f"        {lines[0][:160]}", flush=True)

    verdicts = faults.run_all(chosen, arguments.array_dim, arguments.seed, show)
    missed = sum(not verdict.noticed for verdict in verdicts)
    print(f"{len(verdicts) - missed} of {len(verdicts)} faults noticed")
    return 1 if missed else 0


def _bench(arguments: argparse.Namespace) -> int:
    """Run the benchmarks: table, bench.json, roofline and timelines in build/reports."""
    configuration = build.Configuration()
    build.generate()
    build.build(configuration)
    try:
        return suite.run(configuration, arguments.jobs)
    except (suite.BenchError, plain.PlainHostError) as error:
        print(f"bench: {error}", file=sys.stderr)
        return 1


def _bench_docs(arguments: argparse.Namespace) -> int:
    """Put the last bench run into docs/performance.md, and lower the bars to its figures."""
    try:
        publish.run(_names(arguments.raised))
    except ValueError as error:
        print(f"bench-docs: {error}", file=sys.stderr)
        return 2
    return 0


def _synth(arguments: argparse.Namespace) -> int:
    """Synthesise the blocks; print what each uses and write build/reports/synth.json."""
    chosen = synth.BLOCKS
    names = _names(arguments.blocks)
    unknown = set(names) - {block.name for block in chosen}
    if unknown:
        allowed = ", ".join(repr(block.name) for block in chosen)
        raise UsageError(f"given {sorted(unknown)[0]!r}, allowed {allowed}")
    if names:
        chosen = tuple(block for block in chosen if block.name in names)
    build.generate()
    print(f"yosys {synth.tool_version()}; its first run on a machine unpacks for some minutes")
    synth.check_planted()
    print(f"{len(synth.PLANTED)} planted faults are refused, a known module is counted right")
    proofs.check()
    print(
        f"{len(proofs.OUTPUTS)} proofs of the arithmetic hold, "
        f"{len(proofs.PLANTED)} planted faults are refuted"
    )
    results, refused = synth.run(chosen, arguments.jobs, lambda line: print(line, flush=True))
    rows = [asdict(figures) for figures in results]
    print(synth.render(rows))
    if names:
        return 1 if refused else 0
    synth.save(results)
    covered = {module for figures in results for module in figures.modules}
    missing = synth.uncovered(covered, sources.rtl_sources())
    for path in missing:
        print(f"in no block: {path.relative_to(ROOT)}")
    print(f"{len(results)} blocks synthesised, {len(refused)} refused, {len(missing)} files unused")
    if arguments.page and not refused:
        synth.write_page(rows)
    return 1 if refused or missing else 0


def _quality(arguments: argparse.Namespace) -> int:
    """Compare the integer networks with float32 on held-out text; build/reports/quality.json."""
    command = [sys.executable, "-m", "tb.quality", "--tokens", str(arguments.tokens)]
    # Products this small are slower when they are spread over threads.
    environment = {**os.environ, "OPENBLAS_NUM_THREADS": "1"}
    command += _names(arguments.models)
    return subprocess.run(command, cwd=ROOT, env=environment, check=False).returncode


def _lint(_: argparse.Namespace) -> int:
    """Check style and types, import rules, generated files."""
    build.generate()
    return lint.run()


def _format(_: argparse.Namespace) -> int:
    """Format SystemVerilog and Python in place."""
    return lint.format_sources()


def _build(arguments: argparse.Namespace) -> int:
    """Build a model without running anything."""
    _configuration(arguments, arguments.kind)
    return 0


def _gen(_: argparse.Namespace) -> int:
    """Make the generated files."""
    build.generate()
    return 0


def _parser() -> argparse.ArgumentParser:
    parser = _Parser(prog="npu", description="Tessera: build, run and check.")
    commands = parser.add_subparsers(dest="command", required=True, metavar="COMMAND")

    def command(
        name: str, function: Callable[[argparse.Namespace], int]
    ) -> argparse.ArgumentParser:
        text = (function.__doc__ or "").split("\n")[0]
        added = commands.add_parser(name, help=text, description=text)
        added.set_defaults(function=function)
        return added

    def common(added: argparse.ArgumentParser) -> None:
        cores = len(os.sched_getaffinity(0))
        added.add_argument("--sim", default="verilator", help="simulator; only verilator")
        added.add_argument("--array-dim", type=_array_dim, default=16, help="4, 8, 16 or 32")
        added.add_argument("--seed", type=_positive, default=1, help="first seed")
        added.add_argument("-j", "--jobs", type=_positive, default=cores, help="runs side by side")

    run = command("run", _run)
    common(run)
    run.add_argument("tests", nargs="?", default="", help="exact names, comma list; default all")
    run.add_argument("--list", action="store_true", help="list the tests and exit")
    run.add_argument("--seeds", type=_positive, default=1, help="seeds per test")
    run.add_argument("--debug", action="store_true", help="use the debug build")
    run.add_argument("--full", action="store_true", help="the long form of tests that have one")

    regression = command("regress", _regress)
    common(regression)
    regression.add_argument("--seeds", type=_positive, default=1, help="seeds per test")

    wave = command("waves", _waves)
    common(wave)
    wave.add_argument("tests", nargs="?", default="", help="exact names, comma list")

    test = command("test", _test)
    common(test)
    test.add_argument("paths", nargs="*", help="pytest's own paths and options")

    built = command("build", _build)
    common(built)
    built.add_argument("kind", nargs="?", choices=["fast", "debug"], default="fast")

    fault = command("faults", _faults)
    common(fault)
    fault.add_argument("faults", nargs="?", default="", help="names, comma list; default all")

    bench = command("bench", _bench)
    cores = len(os.sched_getaffinity(0))
    bench.add_argument("-j", "--jobs", type=_positive, default=cores, help="runs side by side")
    documented = command("bench-docs", _bench_docs)
    documented.add_argument(
        "--raise", dest="raised", default="", help="benchmarks whose bar may rise, comma list"
    )
    synthesis = command("synth", _synth)
    synthesis.add_argument("blocks", nargs="?", default="", help="names, comma list; default all")
    synthesis.add_argument("-j", "--jobs", type=_positive, default=1, help="blocks side by side")
    synthesis.add_argument(
        "--page", action="store_true", help="write the table of docs/synthesis.md"
    )

    commands_of_models.add_commands(command)

    measured = command("quality", _quality)
    measured.add_argument("models", nargs="?", default="", help="names, comma list; default all")
    measured.add_argument("--tokens", type=_positive, default=1 << 16, help="tokens, at least")
    command("lint", _lint)
    command("format", _format)
    command("gen", _gen)
    return parser


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command; return the exit status."""
    arguments = _parser().parse_args(argv)
    BUILD.mkdir(exist_ok=True)
    try:
        status: int = arguments.function(arguments)
    except (
        UsageError,
        build.BuildError,
        VerilatorError,
        registry.UnknownTestError,
        faults.FaultError,
        synth.SynthesisError,
        *commands_of_models.BAD_INPUT,
    ) as error:
        print(f"npu: {error}", file=sys.stderr)
        return 2
    except KeyboardInterrupt:
        print("npu: interrupted", file=sys.stderr)
        return commands_of_models.INTERRUPTED
    return status


if __name__ == "__main__":
    sys.exit(main())
