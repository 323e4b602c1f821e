# SPDX-License-Identifier: Apache-2.0
"""The commands of `npu` and their command lines; those on the RTL and on models are elsewhere."""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
from collections.abc import Callable, Sequence
from dataclasses import asdict
from typing import NoReturn

from tb import build, faults, lint, proofs, registry, room, rtl_commands, sources, synth, waves
from tb.arguments import UsageError, names_in, positive
from tb.benchmarks import bars, plain, publish, suite
from tb.last_resort import Refusal
from tb.models import commands as commands_of_models
from tb.paths import ROOT
from tb.verilator import VerilatorError

REFUSED = (
    UsageError,
    build.BuildError,
    VerilatorError,
    faults.FaultError,
    bars.RaiseError,
    publish.PublishError,
    registry.UnknownTestError,
    room.RoomError,
    synth.SynthesisError,
    waves.WaveError,
    *commands_of_models.BAD_INPUT,
)
"""What a user can cause, or a tool; the text is what to print."""
READ_ONLY = ("asm", "bench-docs", "compile", "disasm", "format", "inspect")
"""Commands that need no folder build/."""


class _Parser(argparse.ArgumentParser):
    """Says in one line what is wrong."""

    def error(self, message: str) -> NoReturn:
        self.exit(2, f"{self.prog}: {message}\n")


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
    publish.run(names_in(arguments.raised))
    return 0


def _synth(arguments: argparse.Namespace) -> int:
    """Synthesise the blocks; print what each uses and write build/reports/synth.json."""
    chosen = synth.BLOCKS
    names = names_in(arguments.blocks)
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
    command = [sys.executable, "-m", "tb.quality"]
    command += [f"--{name}" for name in ("debug", "publish") if vars(arguments)[name]]
    command += ["--tokens", str(arguments.tokens)] if arguments.tokens else []
    # Products this small are slower when they are spread over threads.
    environment = {**os.environ, "OPENBLAS_NUM_THREADS": "1"}
    command += names_in(arguments.models)
    return subprocess.run(command, cwd=ROOT, env=environment, check=False).returncode


def _lint(_: argparse.Namespace) -> int:
    """Check style and types, import rules, generated files."""
    build.generate()
    return lint.run()


def _format(_: argparse.Namespace) -> int:
    """Format SystemVerilog and Python in place."""
    return lint.format_sources()


def _gen(_: argparse.Namespace) -> int:
    """Make the generated files."""
    build.generate()
    return 0


def _parser() -> argparse.ArgumentParser:
    parser = _Parser(prog="npu", description="Tessera: build, run and check.")
    parser.add_argument("--debug", action="store_true", help="show tracebacks; at any place")
    commands = parser.add_subparsers(dest="command", required=True, metavar="COMMAND")

    def command(
        name: str, function: Callable[[argparse.Namespace], int]
    ) -> argparse.ArgumentParser:
        text = (function.__doc__ or "").split("\n")[0]
        added = commands.add_parser(name, help=text, description=text)
        added.set_defaults(function=function, builds=name not in READ_ONLY)
        return added

    rtl_commands.add_commands(command)
    bench = command("bench", _bench)
    cores = len(os.sched_getaffinity(0))
    bench.add_argument("-j", "--jobs", type=positive, default=cores, help="runs side by side")
    documented = command("bench-docs", _bench_docs)
    documented.add_argument(
        "--raise", dest="raised", default="", help="benchmarks whose bar may rise, comma list"
    )
    synthesis = command("synth", _synth)
    synthesis.add_argument("blocks", nargs="?", default="", help="names, comma list; default all")
    synthesis.add_argument("-j", "--jobs", type=positive, default=1, help="blocks side by side")
    synthesis.add_argument(
        "--page", action="store_true", help="write the table of docs/synthesis.md"
    )

    commands_of_models.add_commands(command)

    measured = command("quality", _quality)
    measured.add_argument("models", nargs="?", default="", help="names, comma list; default all")
    measured.add_argument("--tokens", type=positive, help="tokens, at least; default all")
    measured.add_argument("--publish", action="store_true", help="write the figures of README")
    command("lint", _lint)
    command("format", _format)
    command("gen", _gen)
    return parser


def run(arguments: Sequence[str]) -> int:
    """Parse and run one command line; return the exit status.

    Raises:
        Refusal: it asks for something that cannot be done.
    """
    given = _parser().parse_args(arguments)
    try:
        if given.builds and not vars(given).get("list"):
            room.require()
        status: int = given.function(given)
    except REFUSED as error:
        raise Refusal(str(error)) from error
    return status
