# SPDX-License-Identifier: Apache-2.0
"""The commands of `npu` that run the benchmarks: bench, bench-docs."""

from __future__ import annotations

import argparse
import os
import sys

from npu.commands.arguments import TIERS, AddCommand, UsageError, names_in, positive
from npu.firmware.compile import FirmwareError
from tb.benchmarks import bars, cpp_host, publish, soc_benchmarks, some, suite
from tb.benchmarks.soc_benchmarks import SocBenchmark
from tb.run import build
from tb.run.machine import MachineConfiguration
from tb.run.verilator import VerilatorError
from tb.soc.program_run import MachineError

BAD_INPUT = (UsageError, VerilatorError, build.BuildError, bars.RaiseError, publish.PublishError)
"""What a user can cause, or a tool; the text is what to print."""


def _bench(arguments: argparse.Namespace) -> int:
    """Run a tier of benchmarks: table, bench.json, roofline, timelines; or some by name."""
    chosen = some.choose(arguments.what)
    full = arguments.what == "full"
    build.generate()
    cases = chosen or suite.chosen(full=full).values()
    suite.build_for(case for case in cases if not isinstance(case, SocBenchmark))
    machine = MachineConfiguration()
    if not chosen or any(isinstance(case, SocBenchmark) for case in chosen):
        build.build(machine)
    try:
        if chosen:
            report = some.NIGHTLY_JSON if arguments.what == "nightly" else None
            return some.run_some(chosen, machine, arguments.jobs, report)
        return suite.run(machine, arguments.jobs, full=full)
    except (
        suite.BenchError,
        soc_benchmarks.SocBenchError,
        MachineError,
        FirmwareError,
        cpp_host.PlainHostError,
    ) as error:
        print(f"bench: {error}", file=sys.stderr)
        return 1


def _bench_docs(arguments: argparse.Namespace) -> int:
    """Put the last bench run into docs/performance.md, and lower the bars to its figures."""
    publish.run(names_in(arguments.raised))
    return 0


def add_commands(command: AddCommand) -> None:
    """Add the commands to the parser of `npu`."""
    bench = command("bench", _bench)
    cores = len(os.sched_getaffinity(0))
    bench.add_argument("-j", "--jobs", type=positive, default=cores, help="runs side by side")
    text = f"{', '.join(TIERS)} (full); or names of benchmarks, comma list, of which only the table"
    bench.add_argument("what", nargs="?", default="full", metavar="TIER|NAMES", help=text)
    documented = command("bench-docs", _bench_docs)
    documented.add_argument(
        "--raise", dest="raised", default="", help="benchmarks whose bar may rise, comma list"
    )
