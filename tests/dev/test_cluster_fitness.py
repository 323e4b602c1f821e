# SPDX-License-Identifier: Apache-2.0
"""A worker whose results could be others gets nothing to do, and is named with the reason."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.needs import needs

needs("cluster")

from dev.regression import cluster, tree
from dev.regression.errors import ClusterError
from dev.regression.fitness import Fitness
from dev.regression.task import Batch, Outcome, Task
from spec.paths import GENERATED, ROOT
from tb.run import build
from tests.dev.cluster_support import Processes
from tests.dev.cluster_work import some_time

BATCHES = [Batch((Task("python", f"tests/{number}.py", "", 1, True),)) for number in range(12)]


def test_what_must_be_equal_is_told() -> None:
    """Another Python, other packages, other sources, no Verilator: which, and what to do."""
    here = Fitness("3.11.7", ("cocotb 2.1.0",), "aa")
    assert here.differs(here) == ""
    cases = {
        "Python 3.12.1, here 3.11.7": Fitness("3.12.1", ("cocotb 2.1.0",), "aa"),
        "cocotb 2.0.0, here cocotb 2.1.0": Fitness("3.11.7", ("cocotb 2.0.0",), "aa"),
        "sources bb, here aa": Fitness("3.11.7", ("cocotb 2.1.0",), "bb"),
        "no verilator": Fitness("3.11.7", ("cocotb 2.1.0",), "aa", "no verilator"),
    }
    for text, theirs in cases.items():
        assert text in theirs.differs(here)


@pytest.fixture
def other_tree(tmp_path: Path) -> Path:
    """A copy of the sources with one more line."""
    copy = tmp_path / "tree"
    for name in (*tree.HOMES, *tree.FILES, "docs"):
        if (ROOT / name).is_dir():
            ignored = shutil.ignore_patterns("__pycache__")
            shutil.copytree(ROOT / name, copy / name, ignore=ignored, dirs_exist_ok=True)
        else:
            shutil.copy(ROOT / name, copy / name)
    build.generate()
    shutil.copytree(GENERATED, copy / "build" / "gen")
    with next((copy / "rtl").rglob("*.sv")).open("a", encoding="utf-8") as source:
        source.write("// another line\n")
    return copy


@pytest.fixture
def processes(tmp_path: Path) -> Iterator[Processes]:
    """A scheduler without workers."""
    found = Processes(tmp_path, workers=0)
    yield found
    found.close()


def run(processes: Processes, notes: list[str]) -> list[Outcome]:
    """Run batches on workers that must be fit; return their outcomes."""
    outcomes: list[Outcome] = []
    client = cluster.connect(processes.address)
    here = cluster.Cluster(client, processes.address, notes.append, some_time)
    try:
        here.run(BATCHES, outcomes.extend)
    finally:
        here.close()
    return outcomes


def test_another_tree(processes: Processes, other_tree: Path) -> None:
    """Beside a worker of the same tree it does nothing; without one the run ends."""
    processes.add_worker()
    processes.add_worker(other_tree)
    processes.await_workers(2)
    notes: list[str] = []
    outcomes = run(processes, notes)
    assert len(outcomes) == len(BATCHES)
    assert len({outcome.worker for outcome in outcomes}) == 1
    (note,) = [note for note in notes if "is left out" in note]
    assert f"here {tree.read().digest}: give it the same commit and changes" in note
    processes.kill_worker()
    with pytest.raises(ClusterError, match=r"no worker fits; tcp://.*: sources "):
        run(processes, notes)
