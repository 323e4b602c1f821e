# SPDX-License-Identifier: Apache-2.0
"""Does what runs simulators side by side, and ends all of it when one thing goes wrong."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from functools import partial
from queue import SimpleQueue
from typing import TypeVar

from tb.run import interruption, processes

T = TypeVar("T")


def as_they_end(tasks: Sequence[Callable[[], T]], workers: int, take: Callable[[T], None]) -> None:
    """Do tasks in their order, at most `workers` at a time; hand over results as they come.

    Args:
        tasks: what is to be done, each in a thread.
        workers: tasks side by side.
        take: gets each result, in the thread of the caller.

    The first exception, or an interruption, ends the processes that run, and is raised.
    """
    ended: SimpleQueue[Future[T] | None] = SimpleQueue()
    interrupted = partial(ended.put, None)
    with ThreadPoolExecutor(max(1, workers)) as pool, interruption.heard(interrupted):
        given = [pool.submit(task) for task in tasks]
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
            # A task that loses its simulator may start another one: its tests alone.
            while not all(future.done() for future in given):
                processes.kill_all()
                time.sleep(0.02)
            raise


def in_order(tasks: Sequence[Callable[[], T]], workers: int) -> list[T]:
    """Do tasks as `as_they_end` does; return the results in the order of the tasks."""
    results: dict[int, T] = {}

    def numbered(number: int) -> tuple[int, T]:
        return number, tasks[number]()

    def keep(pair: tuple[int, T]) -> None:
        results.update([pair])

    as_they_end([partial(numbered, number) for number in range(len(tasks))], workers, keep)
    return [results[number] for number in range(len(tasks))]
