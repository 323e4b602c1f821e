# SPDX-License-Identifier: Apache-2.0
"""Runs some benchmarks: those of the nightly tier, or what somebody names while working on it."""

from __future__ import annotations

import json
import sys
from collections.abc import Sequence
from functools import partial
from pathlib import Path

from rich.console import Console

from npu.commands.arguments import TIERS, UsageError, names_in
from npu.commands.progress import step
from spec.paths import REPORTS, ROOT
from tb.benchmarks import soc_benchmarks
from tb.benchmarks.benchmark import Benchmark
from tb.benchmarks.catalogue import CASES, NIGHTLY
from tb.benchmarks.soc_benchmarks import SOC_CASES, SocBenchmark
from tb.benchmarks.suite import TableRow, chip_row, job_of, render, verdict
from tb.run import parallel, runner
from tb.run.machine import MachineConfiguration
from tb.run.registry import near

NIGHTLY_JSON = REPORTS / "bench-nightly.json"


def choose(what: str) -> list[Benchmark | SocBenchmark]:
    """Return the benchmarks that a text names, or the nightly ones; none for the other tiers.

    Raises:
        UsageError: there is none of a name; near ones are listed.
    """
    if what in TIERS:
        return list(NIGHTLY.values()) if what == "nightly" else []
    known: dict[str, Benchmark | SocBenchmark] = {**CASES, **SOC_CASES, **NIGHTLY}
    chosen = list(dict.fromkeys(names_in(what)))
    for name in chosen or [what]:
        if name not in known:
            raise UsageError(
                f"bench: given {name!r}, allowed {', '.join(TIERS)} or names of benchmarks"
                f"{near(name, list(known))} (docs/performance.md has all)"
            )
    return [known[name] for name in chosen]


def run_some(
    cases: Sequence[Benchmark | SocBenchmark],
    machine: MachineConfiguration,
    workers: int,
    report: Path | None = None,
) -> int:
    """Run some benchmarks on built models; return the exit status: 1 if a bar is missed.

    Args:
        cases: which.
        machine: the chip beside a core.
        workers: runs side by side.
        report: where their entries go, None for nowhere.

    Raises:
        BenchError, soc_benchmarks.SocBenchError: as `tb.benchmarks.suite.run`.
    """
    console = Console(width=None if sys.stdout.isatty() else 140)

    def measured(case: Benchmark | SocBenchmark) -> TableRow:
        with step(f"running {case.name}", console=console):
            if isinstance(case, SocBenchmark):
                figures = case.measure(machine)
                return TableRow(soc_benchmarks.entry(case, figures), figures.ran.cycles)
            return chip_row(case, runner.run(job_of(case)))

    rows = parallel.in_order([partial(measured, case) for case in cases], workers)
    entries = [row.entry for row in rows]
    console.print(render(rows))
    if report is not None:
        REPORTS.mkdir(parents=True, exist_ok=True)
        report.write_text(json.dumps(entries, indent=1) + "\n", encoding="utf-8")
        console.print("written:", str(report.relative_to(ROOT)))
    return 1 if any(verdict(entry) is False for entry in entries) else 0
