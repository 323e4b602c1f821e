# SPDX-License-Identifier: Apache-2.0
"""Makes one run out of the shards of a regression, which have run on different machines.

Each shard has left its own database (`SHARD=`); the last run of each is taken. They must be of one
regression: the same tier, sources and options. A shard that is missing makes the whole incomplete.
"""

from __future__ import annotations

import json
import shutil
from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from pathlib import Path

from dev.coverage.points import Points
from dev.regression import reports, session
from dev.regression.results import Note, Results, Run
from dev.regression.task import Outcome, Task
from spec.paths import ROOT


class MergeError(ValueError):
    """Databases that are no shards of one regression."""


@dataclass(frozen=True)
class Share:
    """The last run of a database.

    Attributes:
        file: the database.
        run: its last run.
        number, count: which of how many shards it is; the whole is the first of one.
        tasks: what it was to do.
        outcomes: how its tasks ended, with what they have executed of the design.
        notes: what happened to it.
    """

    file: Path
    run: Run
    number: int
    count: int
    tasks: list[Task]
    outcomes: list[Outcome]
    notes: list[Note]

    @property
    def name(self) -> str:
        """What people call it."""
        return f"shard {self.number}/{self.count}"

    @property
    def identity(self) -> dict[str, object]:
        """What all shards of a regression have in common."""
        options = {k: v for k, v in self.run.options.items() if k not in ("shard", "complete")}
        return {"tier": self.run.tier, "sources": self.run.tree, "shards": self.count, **options}


def run(files: Sequence[str], results: Results, folder: Path = reports.REPORTS) -> int:
    """Merge the last runs of databases into a new run, write its reports; return the exit status.

    Args:
        files: databases, one of each shard.
        results: where the new run is written down.
        folder: of the reports.

    Raises:
        MergeError: they are no shards of one regression.
        ResultsError: one of them is no database of results.
    """
    shares = sorted((_share(Path(file)) for file in files), key=lambda share: share.number)
    first = shares[0]
    for share, after in pairwise(shares):
        for name, value in after.identity.items():
            wanted = share.identity.get(name)
            if value != wanted:
                raise MergeError(
                    f"--merge {after.file}: given {name} {json.dumps(value)}, in {share.file} it "
                    f"is {json.dumps(wanted)}; merge the shards of one regression"
                )
        if after.number == share.number:
            raise MergeError(
                f"--merge {after.file}: given {after.name}, which {share.file} is as well; name "
                "each shard once"
            )
    given = {share.number for share in shares}
    missing = [number for number in range(1, first.count + 1) if number not in given]
    finished = not missing and all(share.run.state == "finished" for share in shares)
    options = first.run.options
    narrow = missing or any(options.get(one) for one in ("filter", "hostile", "memory"))
    complete = first.run.tier != "smoke" and not narrow
    tasks = [task for share in shares for task in share.tasks]
    number = results.begin(
        first.run.tier,
        {**options, "shard": "", "complete": complete},
        tasks,
        first.run.tree,
        first.run.revision,
        any(share.run.dirty for share in shares),
    )
    for share in shares:
        results.add(number, [_moved(outcome, share, number, results) for outcome in share.outcomes])
        for note in share.notes:
            results.note(number, f"{share.name}: {note.text}")
        if share.run.state != "finished":
            results.note(number, f"{share.name} was interrupted")
    for lost in missing:
        results.note(number, f"shard {lost}/{first.count} is missing")
    state = "finished" if finished else "interrupted"
    results.end(number, state, max(share.run.seconds for share in shares))
    plan = session.RegressionPlan(number, tasks, bool(options.get("coverage")), (), complete)
    status = session.conclude(plan, results, results.runs()[0], folder)
    for note in results.notes(number):
        print(note.text)
    return min(status, 1)


def _share(file: Path) -> Share:
    """Read the last run of a database."""
    if not file.is_file():
        raise MergeError(f"--merge {file}: no such file; name the results.sqlite of each shard")
    store = Results(file)
    try:
        found = next(iter(store.runs()), None)
        if found is None:
            raise MergeError(f"--merge {file}: holds no run; leave it out")
        number, _, count = str(found.options.get("shard") or "1/1").partition("/")
        covered = store.covered(found.number)
        outcomes = [_with_points(o, covered.get(o.task.key)) for o in store.outcomes(found.number)]
        tasks, notes = store.tasks(found.number), store.notes(found.number)
        return Share(file, found, int(number), int(count), tasks, outcomes, notes)
    finally:
        store.close()


def _with_points(outcome: Outcome, executed: Points | None) -> Outcome:
    """Return an outcome with the points of the design that its process executed."""
    if executed is None:
        return outcome
    return replace(outcome, covered=executed.encode(), table=executed.table.encode())


def _moved(outcome: Outcome, share: Share, number: int, results: Results) -> Outcome:
    """Return an outcome that says which shard it is of, its log beside the merged results."""
    worker = share.name if outcome.worker == "local" else outcome.worker
    if not outcome.log:
        return replace(outcome, worker=worker)
    source = share.file.parent / "logs" / str(share.run.number) / Path(outcome.log).name
    place = results.file.parent / "logs" / str(number) / source.name
    if not source.is_file():
        return replace(outcome, worker=worker)
    place.parent.mkdir(parents=True, exist_ok=True)
    shutil.copyfile(source, place)
    log = str(place.relative_to(ROOT) if place.is_relative_to(ROOT) else place)
    return replace(outcome, worker=worker, log=log)
