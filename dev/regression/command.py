# SPDX-License-Identifier: Apache-2.0
"""The command `npu regress`."""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
from collections.abc import Callable, Sequence
from functools import partial

from dev.coverage import changed
from dev.coverage.points import CoverageError
from dev.regression import local, merge, models, results, selection, session, tiers, tree
from dev.regression.errors import ClusterError
from dev.regression.execute import execute
from dev.regression.task import Batch, Task
from npu.commands import build_folder
from npu.commands.arguments import TIERS, AddCommand, UsageError, names_in, whole_from
from spec.configurations import USUAL
from spec.paths import ROOT
from tb.bench.memory_kinds import DRAMS
from tb.run import build, registry, units
from tb.run.requests import add_common, check_simulator
from tb.run.verilator import VerilatorError

BAD_INPUT = (
    UsageError,
    VerilatorError,
    build.BuildError,
    ClusterError,
    CoverageError,
    merge.MergeError,
    registry.UnknownTestError,
    results.ResultsError,
    selection.SelectionError,
    session.BusyError,
    units.UnknownBlockError,
)
"""What a user can cause, or a tool; the text is what to print."""
SEED_MOST, SEEDS_MOST = 1 << 62, 1000
"""The largest seed, which the database can hold, and the most seeds of a test."""


def _regress(arguments: argparse.Namespace) -> int:
    """Run a tier of tests, on this machine or a cluster, and write its reports."""
    check_simulator(arguments.sim)
    tasks = _chosen(arguments)
    if arguments.list:
        return _list(tasks)
    if arguments.digest or arguments.build:
        return _models(tasks, arguments)
    with session.lock(results.FILE):
        store = results.Results(results.FILE)
        try:
            if arguments.merge:
                build_folder.require()
                return merge.run(arguments.merge, store)
            begin = _resumed(store) if arguments.resume else _planned(arguments, tasks, store)
            runner = _runner(arguments)
            build.generate()
            status = session.run(begin(), store, arguments.jobs, runner)
            sys.stdout.flush()
            subprocess.run([sys.executable, "-m", "dev.report"], cwd=ROOT, check=True)
            return status
        finally:
            store.close()


def _chosen(arguments: argparse.Namespace) -> list[Task]:
    """Return the tasks that are asked for.

    Raises:
        UsageError: a seed is too large to be written down.
    """
    if arguments.seed > SEED_MOST:
        raise UsageError(f"SEED: given {arguments.seed}, allowed whole numbers 1 to {SEED_MOST}")
    seeds = range(
        arguments.seed, arguments.seed + (arguments.seeds or tiers.SEEDS.get(arguments.tier, 1))
    )
    memories = arguments.hostile, arguments.memory
    tasks = tiers.tasks_of(arguments.tier, arguments.chip or USUAL, seeds, *memories)
    return selection.shard(selection.chosen(tasks, names_in(arguments.filter)), arguments.shard)


def _list(tasks: Sequence[Task]) -> int:
    """Print what would run."""
    for task in tasks:
        print(task.key)
    print(f"{len(tasks)} tests")
    return 0


def _models(tasks: Sequence[Task], arguments: argparse.Namespace) -> int:
    """Build the simulators of what is asked for, unless only their digest is; print the digest."""
    build.generate()
    needed = models.needed(tasks, arguments.cov)
    for configuration in needed if arguments.build else ():
        models.provide(configuration)
    print(models.digest_of_all(needed))
    return 0


def _planned(
    arguments: argparse.Namespace, tasks: list[Task], store: results.Results
) -> Callable[[], session.RegressionPlan]:
    """Return what writes down a new run and returns what it is to do.

    Raises:
        UsageError: as `_changed_first`.
    """
    first = _changed_first(arguments.changed, store)
    return partial(_begun, arguments, tasks, first, store)


def _begun(
    arguments: argparse.Namespace,
    tasks: list[Task],
    first: Sequence[str],
    store: results.Results,
) -> session.RegressionPlan:
    for run in store.runs():
        if run.state == "running":  # whoever ran it is gone, or would hold the lock
            store.end(run.number, "interrupted", 0.0)
    narrow = arguments.filter or arguments.shard or arguments.hostile or arguments.memory
    options: dict[str, object] = {
        "seeds": arguments.seeds or tiers.SEEDS[arguments.tier],
        "seed": arguments.seed,
        "filter": arguments.filter,
        "shard": arguments.shard,
        "hostile": arguments.hostile,
        "memory": arguments.memory,
        "coverage": arguments.cov,
        "design": tree.read(tree.DESIGN).digest,
        "config": (arguments.chip or USUAL).name,
        "complete": arguments.tier != "smoke" and not narrow,
    }
    sources = tree.read()
    number = store.begin(
        arguments.tier, options, tasks, sources.digest, sources.revision, sources.dirty
    )
    return session.RegressionPlan(number, tasks, arguments.cov, first, bool(options["complete"]))


def _resumed(store: results.Results) -> Callable[[], session.RegressionPlan]:
    """Return what writes down that the last run goes on, and returns what is left of it.

    Raises:
        UsageError: there is none that was interrupted, or the sources have changed since.
    """
    run = next(iter(store.runs()), None)
    if run is None or run.state == "finished":
        raise UsageError("RESUME=1: no run was interrupted; leave it out")
    if run.tree != tree.read().digest:
        raise UsageError(
            f"RESUME=1: the sources have changed since run {run.number} was interrupted; "
            "its results stay, run make regress anew"
        )
    return partial(_again, run, store)


def _again(run: results.Run, store: results.Results) -> session.RegressionPlan:
    store.again(run.number)
    tasks = store.tasks(run.number)
    options = run.options
    return session.RegressionPlan(
        run.number, tasks, bool(options["coverage"]), (), bool(options["complete"])
    )


def _changed_first(base: str, store: results.Results) -> list[str]:
    """Return the tests that a change concerns, those first that executed most of it.

    Raises:
        UsageError: no run with coverage is in the results.
    """
    if not base:
        return []
    covered_run = next((run for run in store.runs() if store.covered(run.number)), None)
    if covered_run is None:
        raise UsageError(
            f"CHANGED={base}: no run in {store.file} has counted what its tests execute; "
            "run make regress COV=1 once"
        )
    lines = changed.changed_lines(base, covered_run.revision)
    by_lines = changed.by_change(lines, store.covered(covered_run.number), store.seconds())
    print(
        f"CHANGED={base}: {len(lines)} files; tests by what they executed in run "
        f"{covered_run.number}"
    )
    return selection.concerned(store.tasks(covered_run.number), lines, by_lines)


def _runner(arguments: argparse.Namespace) -> session.Runner:
    """Return what runs batches: this machine, or a cluster.

    Raises:
        ClusterError: no scheduler answers.
    """
    if arguments.scheduler:
        try:
            from dev.regression import cluster
        except ImportError as error:
            raise ClusterError(
                f"SCHEDULER={arguments.scheduler}: the package {error.name} is missing: "
                "python3 dev/bootstrap.py cluster"
            ) from None
        return cluster.runner(arguments.scheduler, arguments.jobs)
    return partial(_on_this_machine, arguments.jobs)


def _on_this_machine(
    jobs: int,
    batches: Sequence[Batch],
    take: local.Take,
    _: Callable[[str], None],
) -> None:
    tasks = [task for batch in batches for task in batch.tasks]
    for configuration in models.needed(tasks, any(batch.coverage for batch in batches)):
        models.provide(configuration)
    for configuration in models.looked_for(tasks):
        build.build(configuration)
    local.run(batches, jobs, execute, take)


def add_commands(command: AddCommand) -> None:
    """Add the command to the parser of `npu`."""
    regression = command("regress", _regress)
    add_common(regression)
    regression.add_argument("tier", nargs="?", default="full", help=", ".join(TIERS))
    regression.add_argument(
        "--seeds", type=whole_from(1, SEEDS_MOST), help="seeds per test; default by tier"
    )
    regression.add_argument("--filter", default="", help="names, tags, engines, globs; comma list")
    regression.add_argument("--shard", default="", help="such as 1/4, the first of four shares")
    regression.add_argument("--list", action="store_true", help="list what would run and exit")
    regression.add_argument("--cov", action="store_true", help="count what is executed of the RTL")
    regression.add_argument(
        "--hostile",
        type=whole_from(0, SEED_MOST),
        default=0,
        help="seed of a hostile memory for all tests",
    )
    regression.add_argument(
        "--memory", choices=DRAMS, default="", help="a DRAM behind the chip for all tests"
    )
    regression.add_argument("--changed", default="", help="tests first that a change concerns")
    regression.add_argument("--resume", action="store_true", help="go on with the last run")
    regression.add_argument("--digest", action="store_true", help="digest of its simulators; exit")
    regression.add_argument("--build", action="store_true", help="build its simulators and exit")
    regression.add_argument(
        "--merge", nargs="+", metavar="FILE", help="one run out of the results of all shards"
    )
    regression.add_argument(
        "--scheduler",
        default=os.environ.get("SCHEDULER", ""),
        help="address of a Dask scheduler, or local",
    )
