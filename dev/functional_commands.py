# SPDX-License-Identifier: Apache-2.0
"""The command `npu coverage`: what the last regression has met of the points of the plan."""

from __future__ import annotations

import argparse

from dev import functional, test_plan
from dev.regression import results, tree
from npu.commands.arguments import AddCommand, UsageError

BAD_INPUT = (UsageError, functional.FunctionalError, results.ResultsError, test_plan.PlanError)
"""What a user can cause, or a tool; the text is what to print."""


def _coverage(arguments: argparse.Namespace) -> int:
    """Merge the points that the last regression has met; build/reports/functional.json."""
    wanted_names = [name.strip() for name in arguments.points.split(",") if name.strip()]
    wanted = functional.items(wanted_names)
    excluded = functional.exclusions()
    if not results.FILE.is_file():
        raise functional.FunctionalError(f"{results.FILE}: no results; run make regress")
    store = results.Results(results.FILE, reading=True)
    try:
        run = next(iter(store.runs()), None)
        if run is None:
            raise functional.FunctionalError(f"{results.FILE}: holds no run; run make regress")
        given, now = run.options.get("design"), tree.read(tree.DESIGN).digest
        if given != now:
            raise functional.FunctionalError(
                f"run {run.number}: given RTL and tests {given}, here they are {now}; "
                "run make regress anew"
            )
        outcomes = store.outcomes(run.number)
    finally:
        store.close()
    functional.sample(row.name for one in outcomes if one.passed for row in one.rows)
    found, problems = functional.judge(wanted, excluded)
    print(functional.text(found))
    if not wanted_names:  # of a part neither report says all
        functional.write(found, problems, run.number)
        standing = test_plan.annotated(test_plan.load(), outcomes, found, run.number)
        test_plan.write_report(standing)
        print(test_plan.text(standing))
    print("\n".join(problems), end="\n" * bool(problems))
    bins, met = sum(one.bins for one in found), sum(one.covered for one in found)
    passed = sum(one.passed for one in outcomes)
    print(f"run {run.number}, {run.tier}, {passed} tests: {met:,} of {bins:,} bins met")
    return 1 if problems or (met < bins and run.options.get("complete")) else 0


def add_commands(command: AddCommand) -> None:
    """Add the command to the parser of `npu`."""
    covered = command("coverage", _coverage)
    covered.add_argument(
        "points", nargs="?", default="", help="groups or points, comma list; default all"
    )
