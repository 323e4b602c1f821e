# SPDX-License-Identifier: Apache-2.0
"""How long a regression takes on more workers, modelled from what its tests took."""

from __future__ import annotations

import heapq
from collections.abc import Mapping, Sequence

from dev.regression import batches
from dev.regression.task import Outcome

START_S = 1.0
"""Seconds from giving out a batch to its first test: the simulator, Python and the bench."""


def makespan(parts: Sequence[float], workers: int) -> float:
    """Return the time until all parts have ended, each given to the first worker that is free.

    Args:
        parts: seconds of each, in the order in which they are given out.
        workers: side by side, each as fast as one alone.
    """
    free = [0.0] * workers
    for seconds in parts:
        heapq.heapreplace(free, free[0] + seconds)
    return max(free)


def modelled(outcomes: Sequence[Outcome], workers: Sequence[int]) -> dict[int, float]:
    """Return the seconds that the same tests would take, by the number of workers.

    Args:
        outcomes: how the tests ended; only their seconds count.
        workers: numbers of workers.
    """
    known: Mapping[str, float] = {outcome.task.key: outcome.seconds for outcome in outcomes}
    given = batches.make([outcome.task for outcome in outcomes], known)
    parts = [START_S + sum(known[task.key] for task in batch.tasks) for batch in given]
    return {count: makespan(parts, count) for count in workers}


def efficiency(outcomes: Sequence[Outcome], workers: int) -> float:
    """Return the share of the time of so many workers in which they would work."""
    times = modelled(outcomes, (1, workers))
    return times[1] / (workers * times[workers]) if outcomes else 1.0
