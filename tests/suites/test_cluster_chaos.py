# SPDX-License-Identifier: Apache-2.0
"""Tests on the chip on a cluster whose workers are killed every 20 s, its scheduler once.

Half a minute of it, every 10 s; five minutes with NIGHTLY=1.
"""

from __future__ import annotations

import os
import threading
import time
from pathlib import Path

from spec.configurations import USUAL
from tests.needs import needs

needs("cluster")

from dev.regression import batches, cluster, local, models, selection, tiers
from dev.regression.execute import execute
from dev.regression.reports import verdicts
from dev.regression.results import Results
from tb.run import build
from tests.dev.cluster_support import Processes

SECONDS = 300.0 if os.environ.get("NIGHTLY") else 35.0
EVERY_S = 20.0 if os.environ.get("NIGHTLY") else 10.0
TESTS = ["gemm", "registers", "cop", "!long", "!timing"]


def test_all_results_are_there_once(tmp_path: Path) -> None:
    """What is killed is given out again, and the results are those of an undisturbed run."""
    build.generate()
    rounds = 12 if os.environ.get("NIGHTLY") else 1
    seeds = range(1, 1 + rounds)
    tasks = selection.chosen(tiers.tasks_of("smoke", USUAL, seeds), TESTS)
    tasks = [task for task in tasks if task.model == "fast-a16"]
    store = Results(tmp_path / "results.sqlite")
    for configuration in models.needed(tasks, coverage=False):
        models.provide(configuration)
    undisturbed = store.begin("smoke", {}, tasks)
    local.run(
        batches.make(tasks, {}), 2, execute, lambda outcomes: store.add(undisturbed, outcomes)
    )

    processes = Processes(tmp_path)
    notes: list[str] = []
    over = threading.Event()
    killed = [0]

    def harm() -> None:
        begun = time.monotonic()
        while not over.wait(EVERY_S) and time.monotonic() - begun < SECONDS:
            processes.kill_worker()
            processes.add_worker()
            killed[0] += 1
            if killed[0] == 2:
                processes.restart_scheduler(1.0)

    villain = threading.Thread(target=harm)
    disturbed = store.begin("smoke", {}, tasks)
    client = cluster.connect(processes.address, 60.0)
    here = cluster.Cluster(client, processes.address, notes.append)
    begun = time.monotonic()
    try:
        villain.start()
        here.run(batches.make(tasks, {}), lambda outcomes: store.add(disturbed, outcomes))
    finally:
        over.set()
        villain.join()
        here.client.close(timeout=5)
        processes.close()
    seconds = time.monotonic() - begun
    print(f"{len(tasks)} tests in {seconds:.0f} s; {killed[0]} workers killed; {len(notes)} notes")
    assert verdicts(store.outcomes(disturbed)) == verdicts(store.outcomes(undisturbed))
    assert len(store.outcomes(disturbed)) == len(tasks)
    assert killed[0] >= 3, "the run was over before its scheduler had restarted"
    assert any("is gone" in note for note in notes)
    assert any("lost:" in note for note in notes)
