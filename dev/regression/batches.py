# SPDX-License-Identifier: Apache-2.0
"""Puts tasks together for one process each, the longest first.

A process costs a second to start, so short tests share one; a long one stays alone, or the last
process would run when all others have ended.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from dev.regression import known as known_tests
from dev.regression.task import Batch, Task

BATCH_S = 20.0
"""Seconds of tests that share a process, as far as is known."""
MOST = 24
"""Tests that share a process."""
_GUESS = {"rtl": 2.0, "unit": 4.0, "sweep": 130.0, "python": 60.0, "nightly": 200.0}
_GUESS_LONG = 60.0
"""Seconds of a test that has not run yet; the latter of one tagged `long` in its long form."""


def expected(task: Task, known: Mapping[str, float], long: frozenset[str]) -> float:
    """Return the seconds that a task is expected to take.

    Args:
        task: the task.
        known: what tasks took before, by their keys.
        long: names of the tests that are tagged `long`.
    """
    if task.key in known:
        return known[task.key]
    return _GUESS_LONG if task.full and task.name in long else _GUESS[task.kind]


def make(
    tasks: Sequence[Task],
    known: Mapping[str, float],
    coverage: bool = False,
    first: Sequence[str] = (),
) -> list[Batch]:
    """Return batches of all tasks, the longest first.

    Args:
        tasks: what is to run.
        known: seconds that tasks took before, by their keys.
        coverage: see `Batch`.
        first: tests (`Task.test`) that go before all others, in this order, however long they are.
    """
    tests = known_tests.tests()
    seconds = guesses(tasks, known)
    rank = {test: number for number, test in enumerate(first)}
    place = {task: (rank.get(task.test, len(rank)), -seconds[task], task) for task in tasks}
    parts, shared = list[list[Task]](), dict[tuple[object, ...], list[Task]]()
    for task in sorted(tasks, key=place.__getitem__):
        test = tests.get(task.name)
        if test is None or test.alone or seconds[task] > BATCH_S / 2:
            parts.append([task])
        else:
            # All that a process runs has the largest memory, every byte of which is compared.
            chip = (task.kind, task.model, test.memory_bytes)
            group = (*chip, task.seed, task.full, task.hostile, task.memory)
            shared.setdefault(group, []).append(task)
    parts += _parts(shared.values(), seconds)

    def order(part: list[Task]) -> tuple[int, float, str]:
        ranks = min(rank.get(task.test, len(rank)) for task in part)
        return ranks, -sum(seconds[task] for task in part), part[0].key

    return [Batch(tuple(part), coverage) for part in sorted(parts, key=order)]


def guesses(tasks: Sequence[Task], known: Mapping[str, float]) -> dict[Task, float]:
    """Return how many seconds each task is expected to take."""
    tests = known_tests.tests()
    long = frozenset(name for name, test in tests.items() if "long" in test.tags)
    return {task: expected(task, known, long) for task in tasks}


def _parts(groups: Iterable[list[Task]], seconds: Mapping[Task, float]) -> list[list[Task]]:
    parts: list[list[Task]] = []
    for group in groups:
        part: list[Task] = []
        for task in group:
            filled = sum(seconds[each] for each in part) + seconds[task]
            if part and (filled > BATCH_S or len(part) == MOST):
                parts.append(part)
                part = []
            part.append(task)
        parts.append(part)
    return parts
