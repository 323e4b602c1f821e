# SPDX-License-Identifier: Apache-2.0
"""A regression on a real cluster: workers that die and freeze, a scheduler that restarts."""

from __future__ import annotations

import os
import signal
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.needs import needs

needs("cluster")

import dask
from distributed.security import Security

from dev.regression import cluster
from dev.regression.errors import ClusterError
from dev.regression.reports import verdicts
from dev.regression.results import Results
from dev.regression.task import Batch, Outcome, Task
from tests.dev.cluster_support import Processes, free_port
from tests.dev.cluster_work import no_room, nothing, outcome_of, some_time


def batches(count: int) -> list[Batch]:
    """Return batches of one task each."""
    return [Batch((Task("rtl", f"test_{number:04}", "fast-a16"),)) for number in range(count)]


@pytest.fixture
def processes(tmp_path: Path) -> Iterator[Processes]:
    """A scheduler with three workers."""
    found = Processes(tmp_path)
    yield found
    found.close()


def run(
    processes: Processes, given: list[Batch], work: cluster.Work, store: Results
) -> tuple[int, list[str]]:
    """Run batches and write results down; return the run and what was said."""
    number = store.begin("full", {}, [task for batch in given for task in batch.tasks])
    notes: list[str] = []
    client = cluster.connect(processes.address)
    here = cluster.Cluster(client, processes.address, notes.append, work, real=False)
    try:
        here.run(given, lambda outcomes: store.add(number, outcomes))
    finally:
        here.client.close(timeout=5)
    return number, notes


def wait_for_results(store: Results, count: int) -> None:
    """Wait until some batches of the first run have ended."""
    look = Results(store.file)
    while len(look.outcomes(1)) < count:
        time.sleep(0.1)
    look.close()


def test_a_killed_and_a_frozen_worker_cost_nothing(
    processes: Processes, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """All results are there once, equal to those of an undisturbed run, and both are named."""
    monkeypatch.setattr(cluster, "SILENCE_S", 4.0)
    given = batches(90)
    store = Results(tmp_path / "results.sqlite")

    def harm() -> None:
        wait_for_results(store, 10)
        processes.kill_worker()
        wait_for_results(store, 20)
        processes.freeze_worker()

    villain = threading.Thread(target=harm)
    villain.start()
    number, notes = run(processes, given, some_time, store)
    villain.join()
    found = store.outcomes(number)
    expected = [outcome_of(task) for batch in given for task in batch.tasks]
    assert verdicts(found) == verdicts(expected)
    assert any("is gone" in note for note in notes), notes
    assert any("has not been heard of" in note for note in notes), notes
    assert len({outcome.worker for outcome in found}) == 3


def test_a_restarted_scheduler_costs_nothing(processes: Processes, tmp_path: Path) -> None:
    """What was out when it went is given out again."""
    given = batches(60)
    store = Results(tmp_path / "results.sqlite")

    def harm() -> None:
        wait_for_results(store, 10)
        processes.restart_scheduler(1.0)

    villain = threading.Thread(target=harm)
    villain.start()
    number, notes = run(processes, given, some_time, store)
    villain.join()
    expected = [outcome_of(task) for batch in given for task in batch.tasks]
    assert verdicts(store.outcomes(number)) == verdicts(expected)
    assert any("given out again" in note for note in notes), notes


def test_ctrl_c_leaves_nothing_behind(processes: Processes) -> None:
    """What has come is written down, and the cluster is free for others at once."""
    written: list[Outcome] = []

    def take(outcomes: list[Outcome]) -> None:
        os.kill(os.getpid(), signal.SIGINT)
        written.extend(outcomes)

    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    client = cluster.connect(processes.address)
    here = cluster.Cluster(client, processes.address, print, some_time, real=False)
    try:
        with pytest.raises(KeyboardInterrupt):
            here.run(batches(200), take)
        assert 1 <= len(written) <= 3
        here.close()
        other = cluster.connect(processes.address)
        time.sleep(0.5)  # more than a batch takes that runs at that moment
        assert not any(other.processing().values())
        other.close(timeout=5)
    finally:
        signal.signal(signal.SIGINT, before)


def test_a_hundred_empty_jobs_a_second(processes: Processes, tmp_path: Path) -> None:
    """The runner itself is no limit."""
    given = batches(600)
    store = Results(tmp_path / "results.sqlite")
    run(processes, batches(30), nothing, store)
    paces = []
    for _ in range(8):  # other work beside it only makes it slower
        begun = time.monotonic()
        number, _ = run(processes, given, nothing, store)
        paces.append(len(given) / (time.monotonic() - begun))
        assert len(store.outcomes(number)) == len(given)
        if paces[-1] >= 100:
            break
    print(f"{max(paces):.0f} empty jobs a second over the cluster")
    assert max(paces) >= 100


@pytest.fixture
def certified(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """The settings of the user's page, with a certificate of this test."""
    made = Security.temporary()
    tls = "DASK_DISTRIBUTED__COMM__TLS__"
    for name, text in (("ca", made.tls_ca_file), ("key", made.tls_client_key)):
        file = tmp_path / f"{name}.pem"
        file.write_text(str(text), encoding="utf-8")
    monkeypatch.setenv("DASK_DISTRIBUTED__COMM__REQUIRE_ENCRYPTION", "true")
    monkeypatch.setenv(f"{tls}CA_FILE", str(tmp_path / "ca.pem"))
    for who in ("SCHEDULER", "WORKER", "CLIENT"):
        monkeypatch.setenv(f"{tls}{who}__CERT", str(tmp_path / "ca.pem"))
        monkeypatch.setenv(f"{tls}{who}__KEY", str(tmp_path / "key.pem"))
    dask.config.refresh()
    yield
    monkeypatch.undo()
    dask.config.refresh()


@pytest.mark.usefixtures("certified")
def test_an_encrypted_cluster(tmp_path: Path) -> None:
    """With the settings of `distributed` it runs; who has no certificate gets no answer."""
    processes = Processes(tmp_path, protocol="tls")
    try:
        given = batches(20)
        store = Results(tmp_path / "results.sqlite")
        number, _ = run(processes, given, nothing, store)
        assert len(store.outcomes(number)) == len(given)
        plain = processes.address.replace("tls", "tcp")
        stranger = {"distributed.comm.require-encryption": False}
        with dask.config.set(stranger), pytest.raises(ClusterError, match="no scheduler answers"):
            cluster.connect(plain, 2.0)
    finally:
        processes.close()


def test_nobody_answers() -> None:
    """One line says which address, and what to do."""
    address = f"tcp://127.0.0.1:{free_port()}"
    with pytest.raises(ClusterError, match=r"no scheduler answers.*dask scheduler"):
        cluster.connect(address, 0.5)


def test_a_batch_that_is_always_lost_ends_the_run(processes: Processes, tmp_path: Path) -> None:
    """After ten attempts, with the reason, and what was finished is there."""
    store = Results(tmp_path / "results.sqlite")
    with pytest.raises(ClusterError, match=r"lost 10 times.*No space left"):
        run(processes, batches(1), no_room, store)
