# SPDX-License-Identifier: Apache-2.0
"""Runs batches on a Dask cluster: any scheduler at an address, or one that is started here.

Each batch is a task of `distributed`. What a cluster may do to it costs an attempt and is told: its
worker dies, stops answering, has other versions or other sources, or the scheduler itself restarts.
A result that comes twice counts once, so nothing is lost by giving a batch out again.
"""

from __future__ import annotations

import concurrent.futures
import contextlib
import os
import time
from collections.abc import Callable, Collection, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from functools import partial
from queue import SimpleQueue

import dask
from distributed import Client, Future, LocalCluster, Scheduler, get_worker
from distributed.security import Security

from dev.regression import local, models
from dev.regression.errors import ClusterError
from dev.regression.execute import execute
from dev.regression.fitness import Fitness, fitness
from dev.regression.task import Batch, Outcome
from npu.commands import last_resort
from spec.paths import ROOT
from tb.run import build, interruption

ATTEMPTS = 10
"""How often a batch is given out before its loss is an error."""
SILENCE_S = float(os.environ.get("REGRESS_SILENCE", "30"))
"""A worker that the scheduler has not heard of for so long gets nothing more."""
AHEAD = 6
"""Batches per worker that the scheduler holds: the rest wait here, in order."""
RECONNECT_S = 60.0
LOOK_S = 0.5
"""Between two looks at the workers."""


def build_here(name: str, coverage: bool) -> bytes:
    """Return the simulator of a model, built unless this machine's store has it."""
    build.generate()
    return models.provide(models.configuration_of(name, coverage)).read_bytes()


def run_there(batch: Batch, binary: bytes | None) -> list[Outcome]:
    """Run a batch on a worker; `binary` is its simulator, None for a batch without one."""
    task = batch.tasks[0]
    if binary is not None:
        configuration = models.configuration_of(task.model, batch.coverage)
        if not models.stored(configuration).exists():
            models.keep(configuration, binary)
    return [replace(outcome, worker=get_worker().address) for outcome in execute(batch)]


async def _forget(dask_scheduler: Scheduler, address: str) -> None:
    """Let the scheduler treat a silent worker as dead; a worker that wakes up may come again."""
    await dask_scheduler.remove_worker(address, stimulus_id="regress-silent", expected=True)


Work = Callable[[Batch, bytes | None], list[Outcome]]


@dataclass(frozen=True)
class _Given:
    """Something that is given out.

    Attributes:
        future: of it.
        allowed: addresses of the workers that may do it: those that were fit at that time.
        batch: the batch, None for the build of a model.
        model: the build that it waits for, None for nothing.
    """

    future: Future
    allowed: frozenset[str]
    batch: Batch | None = None
    model: Future | None = None


@dataclass
class Cluster:
    """A client of a scheduler, and what it has given out.

    Attributes:
        client: of `distributed`.
        address: of the scheduler.
        note: says what happens.
        work: what a worker does with a batch.
        real: whether workers simulate: they need models, and must be fit for it.
    """

    client: Client
    address: str
    note: Callable[[str], None]
    work: Work = run_there
    real: bool = True
    _given: dict[Future, _Given] = field(default_factory=dict)
    _coming: dict[concurrent.futures.Future[list[Outcome]], Batch] = field(default_factory=dict)
    _built: dict[tuple[str, bool], _Given] = field(default_factory=dict)
    _checks: dict[str, Future] = field(default_factory=dict)
    _fit: set[str] = field(default_factory=set)
    _unfit: dict[str, str] = field(default_factory=dict)
    _known: set[str] = field(default_factory=set)
    _threads: dict[str, int] = field(default_factory=dict)
    _here: Fitness | None = None
    _looked: float = 0.0

    def run(self, batches: Sequence[Batch], take: local.Take) -> None:
        """Run all batches; hand over their outcomes as they come.

        Raises:
            ClusterError: no worker can run them, or one batch was lost too often.
        """
        waiting = list(reversed(batches))
        finished: set[str] = set()
        # Results are fetched from workers, any of which may fall silent at that moment.
        pool = ThreadPoolExecutor(16, thread_name_prefix="fetch")
        interruptions: SimpleQueue[None] = SimpleQueue()
        try:
            with interruption.heard(partial(interruptions.put, None)):
                while waiting or self._given or self._coming:
                    if not interruptions.empty():
                        raise KeyboardInterrupt
                    outcomes = self._step(pool, waiting)
                    fresh = {one.task.key: one for one in outcomes if one.task.key not in finished}
                    finished.update(fresh)
                    if fresh:
                        take(list(fresh.values()))
                    else:
                        time.sleep(0.002)
        finally:
            pool.shutdown(wait=False, cancel_futures=True)

    def close(self) -> None:
        """Take back what has been given out, and leave the cluster."""
        with contextlib.suppress(Exception):
            self.client.cancel(list(self._given))
            self.client.close(timeout=5)

    def _step(self, pool: ThreadPoolExecutor, waiting: list[Batch]) -> list[Outcome]:
        """Look at the workers, give out what they can take, and return what has come."""
        self._look(waiting)
        self._give(waiting)
        self._fetch(pool, waiting)
        come = [future for future in self._coming if future.done()]
        return [each for future in come for each in self._fetched(future, waiting)]

    def _fetch(self, pool: ThreadPoolExecutor, waiting: list[Batch]) -> None:
        """Fetch the outcomes of batches that have ended."""
        for future in [future for future in self._given if future.done()]:
            batch = self._taken(future)
            if future.status == "finished":
                self._coming[pool.submit(future.result, timeout=SILENCE_S)] = batch
                continue
            raised = future.exception() if future.status == "error" else None
            if isinstance(raised, build.BuildError):
                raise raised
            reason = future.status if raised is None else f"{type(raised).__name__}: {raised}"
            self._lost(batch, reason.splitlines()[0], waiting)

    def _taken(self, future: Future) -> Batch:
        """Return the batch of a future, which is no longer waited for."""
        batch = self._given.pop(future).batch
        if batch is None:
            raise AssertionError(f"{future.key} is no batch")
        return batch

    def _fetched(
        self, future: concurrent.futures.Future[list[Outcome]], waiting: list[Batch]
    ) -> list[Outcome]:
        """Return the outcomes of a batch, none if they were lost on the way."""
        batch = self._coming.pop(future)
        try:
            return future.result()
        except Exception as error:
            self._lost(batch, f"its result: {type(error).__name__}", waiting)
            return []

    def _lost(self, batch: Batch, reason: str, waiting: list[Batch]) -> None:
        name = batch.tasks[0].short
        if batch.attempt >= ATTEMPTS:
            raise ClusterError(
                f"{self.address}: {name} was lost {ATTEMPTS} times, the last time: {reason}; "
                "look at the logs of the workers"
            )
        self.note(f"lost: {name} and what is with it ({reason}); given out again")
        waiting.append(replace(batch, attempt=batch.attempt + 1))

    def _give(self, waiting: list[Batch]) -> None:
        """Give out the next batches, as many as keep the workers busy."""
        able = self._able()
        room = AHEAD * sum(able.values()) - len(self._given) if able else 0
        for _ in range(min(room, len(waiting))):
            batch = waiting.pop()
            key = f"{batch.name}-{batch.attempt}-{time.monotonic_ns()}"
            allowed = frozenset(able)
            model = self._model(batch, allowed)
            future = self.client.submit(
                self.work,
                batch,
                model,
                key=key,
                pure=False,
                workers=sorted(allowed),
                retries=0,
            )
            self._given[future] = _Given(future, allowed, batch, model)

    def _model(self, batch: Batch, allowed: frozenset[str]) -> Future | None:
        """Return the future of a batch's simulator: one build for each, on some worker."""
        name = batch.tasks[0].model
        if not name or not self.real:
            return None
        key = (name, batch.coverage)
        known = self._built.get(key)
        if known is None or known.future.status in ("error", "lost", "cancelled"):
            future = self.client.submit(
                build_here,
                *key,
                key=f"build-{name}-{time.monotonic_ns()}",
                workers=sorted(allowed),
            )
            known = self._built[key] = _Given(future, allowed)
        return known.future

    def _able(self) -> dict[str, int]:
        """Return the threads of the workers that may get batches, by address."""
        return {
            address: threads for address, threads in self._threads.items() if address in self._fit
        }

    def _workers(self) -> dict[str, dict[str, float]]:
        with contextlib.suppress(Exception):
            found: dict[str, dict[str, float]] = self.client.scheduler_info(n_workers=-1)["workers"]
            return found
        return {}

    def _look(self, waiting: list[Batch]) -> None:
        """Notice workers that came, went or fell silent, and a scheduler that restarted."""
        if time.monotonic() - self._looked < LOOK_S:
            return
        self._looked = time.monotonic()
        if self.client.status != "running":
            self._connect_again(waiting)
        workers = self._workers()
        for address in sorted(self._known - workers.keys()):
            self.note(f"worker {address} is gone")
        self._check(workers)
        self._known = set(workers)
        self._threads = {address: int(info["nthreads"]) for address, info in workers.items()}
        self._take_back_orphans(workers, waiting)
        now = time.time()
        for address, info in workers.items():
            if now - float(info.get("last_seen", now)) > SILENCE_S and address in self._known:
                self.note(
                    f"worker {address} has not been heard of for {SILENCE_S:.0f} s: what it has "
                    "is given to others"
                )
                with contextlib.suppress(OSError, TimeoutError):
                    self.client.run_on_scheduler(_forget, address=address)

    def _take_back_orphans(self, workers: Collection[str], waiting: list[Batch]) -> None:
        """Give out again what waits for workers all of which have gone."""
        for key, built in list(self._built.items()):
            if not built.future.done() and built.allowed.isdisjoint(workers):
                del self._built[key]
        models = {built.future for built in self._built.values()}
        for future, given in list(self._given.items()):
            orphan = given.model is not None and given.model not in models
            if not future.done() and (orphan or given.allowed.isdisjoint(workers)):
                batch = self._taken(future)
                future.release()
                self._lost(batch, "its workers are gone", waiting)

    def _check(self, workers: Collection[str]) -> None:
        """Let new workers say what they have; keep away those that would give other results."""
        if not self.real:
            self._fit.update(workers)
            return
        self._here = self._here or fitness()
        for address in set(workers) - self._known:
            self._ask(address)
        for address, future in list(self._checks.items()):
            if address not in workers:
                del self._checks[address]
                continue
            if not future.done():
                continue
            del self._checks[address]
            wrong = ""
            if future.status in ("lost", "cancelled"):
                self._ask(address)
                continue
            if future.status == "finished":
                wrong = future.result(timeout=SILENCE_S).differs(self._here)
            elif future.status == "error":
                wrong = f"it cannot run this project: {future.exception()!r}"
            if wrong:
                self._unfit[address] = wrong
                self.note(f"worker {address} is left out: {wrong}")
            else:
                self._fit.add(address)
        if self._unfit and self._unfit.keys() >= set(workers):
            address, reason = next(iter(self._unfit.items()))
            raise ClusterError(f"{self.address}: no worker fits; {address}: {reason}")

    def _ask(self, address: str) -> None:
        """Let a worker say what it has."""
        self._checks[address] = self.client.submit(
            fitness,
            key=f"fitness-{address}-{time.monotonic_ns()}",
            pure=False,
            workers=[address],
            allow_other_workers=False,
        )

    def _connect_again(self, waiting: list[Batch]) -> None:
        """Connect to a scheduler that has restarted; what it had is given out again."""
        self.note(f"the scheduler at {self.address} is gone; waiting up to {RECONNECT_S:.0f} s")
        lost = [self._taken(future) for future in list(self._given)]
        for kept in (self._given, self._built, self._checks, self._unfit):
            kept.clear()
        for named in (self._known, self._fit):
            named.clear()
        with contextlib.suppress(Exception):
            self.client.close(timeout=1)
        self.client = connect(self.address, RECONNECT_S)
        for batch in lost:
            self._lost(batch, "the scheduler restarted", waiting)


def connect(address: str, patience_s: float = 10.0) -> Client:
    """Connect to a scheduler; TLS settings are those of `distributed`'s configuration.

    Raises:
        ClusterError: there is none.
    """
    end = time.monotonic() + patience_s
    while True:
        try:
            return Client(
                address,
                timeout=min(5.0, patience_s),
                security=Security() if address.startswith("tls://") else None,
                set_as_default=False,
            )
        except (OSError, TypeError, ValueError) as error:  # TypeError: TLS without certificates
            if not isinstance(error, OSError) or time.monotonic() > end:
                reason = last_resort.one_line(error)
                raise ClusterError(
                    f"SCHEDULER={address}: no scheduler answers ({reason}); start one with "
                    "`dask scheduler`, or name its address"
                ) from None
            time.sleep(0.5)


@contextmanager
def _cluster(address: str, jobs: int) -> Iterator[str]:
    """Return the address of a scheduler; of one that lives as long as the body for "local"."""
    if address != "local":
        yield address
        return
    with LocalCluster(
        n_workers=jobs, threads_per_worker=1, dashboard_address=None, host="127.0.0.1"
    ) as started:
        yield str(started.scheduler_address)


@contextmanager
def _settings() -> Iterator[None]:
    """Let workers find this tree, and live through the death of others that had the same task."""
    paths = os.pathsep.join([str(ROOT), os.environ.get("PYTHONPATH", "")]).strip(os.pathsep)
    before = os.environ.get("PYTHONPATH")
    os.environ["PYTHONPATH"] = paths
    try:
        with dask.config.set({"distributed.admin.log-length": 100}):
            yield
    finally:
        if before is None:
            del os.environ["PYTHONPATH"]
        else:
            os.environ["PYTHONPATH"] = before


def runner(
    address: str, jobs: int
) -> Callable[[Sequence[Batch], local.Take, Callable[[str], None]], None]:
    """Return what runs batches on the cluster at an address, or on one of `jobs` workers here.

    Raises:
        ClusterError: there is no scheduler at the address.
    """
    if address != "local":
        connect(address).close()

    def run(batches: Sequence[Batch], take: local.Take, note: Callable[[str], None]) -> None:
        with _settings(), _cluster(address, jobs) as found:
            cluster = Cluster(connect(found), found, note)
            try:
                cluster.run(batches, take)
            finally:
                cluster.close()

    return run
