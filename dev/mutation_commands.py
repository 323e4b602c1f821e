# SPDX-License-Identifier: Apache-2.0
"""The command `npu mutation`: how many unseen faults of the RTL the tests notice."""

from __future__ import annotations

import argparse
import time

from dev import mutation, mutation_common, mutation_draw, mutation_report, mutation_verdict
from dev.coverage.changed import lines_since
from dev.coverage.points import CoverageError
from dev.mutation_model import Design
from dev.regression import tree
from npu.commands.arguments import AddCommand, UsageError, names_in, positive
from spec.configurations import CHIPS, USUAL
from tb.run import build, registry
from tb.run.requests import add_common, check_simulator, chosen_tests
from tb.run.verilator import VerilatorError

BAD_INPUT = (
    CoverageError,
    UsageError,
    VerilatorError,
    build.BuildError,
    mutation_draw.MutationError,
    registry.UnknownTestError,
)
"""What a user can cause, or a tool; the text is what to print."""


def _mutation(arguments: argparse.Namespace) -> int:
    """Draw small faults of the RTL; say which no test notices; build/reports/mutation.json."""
    check_simulator(arguments.sim)
    if arguments.common:
        return _common(arguments)
    sources = tree.read(mutation.SOURCES)
    seed = arguments.draw or sources.revision or sources.digest
    names = names_in(arguments.mutants)
    mutation_draw.check_files(names)
    chip = arguments.chip or USUAL
    tests = chosen_tests(names_in(arguments.tests), chip)
    equivalents = mutation_verdict.equivalents()
    lines = lines_since(arguments.changed) if arguments.changed else {}
    design = Design.read()
    mutants = mutation_draw.drawn(design, seed)
    if names:
        mutants = mutation_draw.named(mutants, names)
    if arguments.changed:
        mutants = mutation_draw.changed(mutants, lines)
    exact = {mutant.name for mutant in mutants} & {*names}
    count = arguments.count or (len(exact) if exact else mutation.COUNT)
    build.generate()

    started = time.monotonic()
    seeds = range(arguments.seed, arguments.seed + arguments.seeds)
    request = mutation.Request(
        mutants, count, chip, seeds, arguments.jobs, sources.digest, arguments.patience
    )
    print(f"{min(count, len(mutants))} of {len(mutants)} mutants, drawn by {seed}", flush=True)
    campaign = mutation.Campaign(design, request, lambda line: print(line, flush=True), tests)
    verdicts = campaign.run(equivalents)
    if arguments.chip is None:
        verdicts = mutation.on_others(campaign, verdicts, CHIPS.values())
    minutes = (time.monotonic() - started) / 60
    report = mutation_report.MutationReport(
        sources.digest,
        sources.revision,
        seed,
        list(seeds),
        chip.name,
        f"COUNT={count} CHANGED={arguments.changed} MUTANTS={arguments.mutants}",
        round(minutes, 1),
        len(tests) - len(campaign.unfit),
        campaign.unfit,
        verdicts,
    )
    report.write()
    alive = [verdict for verdict in verdicts if verdict.survives]
    for verdict in alive:
        print(f"rtl/{verdict.file}:{verdict.line}: {verdict}")
    print(mutation_report.table(verdicts))
    print(f"{mutation_report.summary(verdicts)}; {minutes:.1f} min")
    return 1 if alive or campaign.unfit else 0


def _common(arguments: argparse.Namespace) -> int:
    """Change each value of the common sources; say which change nobody notices."""
    names = names_in(arguments.mutants)
    shown = {(each.file, each.line, each.change) for each in mutation_verdict.equivalents()}
    chosen = [
        change
        for change in mutation_common.all_changes(names)
        if (change.file, change.old_line, change.what) not in shown
    ]
    build.generate()
    hold = bool(names) or mutation_common.interfaces_hold()
    found = mutation_common.run(chosen, arguments.jobs, lambda line: print(line, flush=True))
    mutation_report.write_common(found)
    missed = [name for name, who in found.items() if not who]
    for name in missed:
        print(f"nobody notices {name}")
    print(f"{len(found) - len(missed)} of {len(found)} changes of common sources are noticed")
    return 0 if hold and not missed else 1


def add_commands(command: AddCommand) -> None:
    """Add the command to the parser of `npu`."""
    mutants = command("mutation", _mutation)
    add_common(mutants)
    mutants.add_argument("mutants", nargs="?", default="", help="mutants or files; default drawn")
    mutants.add_argument(
        "--common",
        action="store_true",
        help="change values of the common sources instead; named ones are files of Python",
    )
    mutants.add_argument("--count", type=positive, help=f"mutants; default {mutation.COUNT}")
    mutants.add_argument("--draw", default="", help="what they are drawn by; default the commit")
    mutants.add_argument("--changed", default="", help="only lines that differ from this commit")
    mutants.add_argument("--seeds", type=positive, default=1, help="seeds of the tests")
    mutants.add_argument(
        "--patience",
        type=positive,
        default=mutation.PATIENCE_S,
        help=f"seconds of tests for a mutant; default {mutation.PATIENCE_S}",
    )
    mutants.add_argument("--tests", default="", help="tests of the chip, comma list; default all")
