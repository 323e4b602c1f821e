# SPDX-License-Identifier: Apache-2.0
"""Runs batches on this machine, some side by side: each is a process of its own."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from functools import partial
from queue import SimpleQueue

from dev.regression import interruption
from dev.regression.task import Batch, Outcome
from tb.run import runner

Execute = Callable[[Batch], list[Outcome]]
Take = Callable[[list[Outcome]], None]


def run(batches: Sequence[Batch], workers: int, execute: Execute, take: Take) -> None:
    """Run batches in their order, at most `workers` at a time; hand over outcomes as they come.

    Args:
        batches: what is to run.
        workers: batches side by side.
        execute: runs a batch.
        take: gets the outcomes of a batch, in the thread of the caller.

    The first exception, or an interruption, ends the simulators that run, and is raised.
    """
    ended: SimpleQueue[Future[list[Outcome]] | None] = SimpleQueue()
    interrupted = partial(ended.put, None)
    with ThreadPoolExecutor(max_workers=workers) as pool, interruption.heard(interrupted):
        given = [pool.submit(execute, batch) for batch in batches]
        try:
            for future in given:
                future.add_done_callback(ended.put)
            for _ in given:
                done = ended.get()
                if done is None:
                    raise KeyboardInterrupt
                take(done.result())
        except BaseException:
            pool.shutdown(wait=False, cancel_futures=True)
            # A batch that loses its simulator would start the next one: its tests alone.
            while not all(future.done() for future in given):
                runner.kill_all()
                time.sleep(0.02)
            raise
