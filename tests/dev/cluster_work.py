# SPDX-License-Identifier: Apache-2.0
"""What workers of a cluster do in tests of the cluster: little, and a known result."""

from __future__ import annotations

import time
import zlib

from distributed import get_worker

from dev.regression.task import Batch, ExecutedRow, Outcome, Task


def outcome_of(task: Task, worker: str = "local", attempt: int = 1) -> Outcome:
    """Return the outcome that follows from the name of a task; every seventh fails."""
    number = zlib.crc32(task.key.encode())
    failed = number % 7 == 0
    message = f"number {number}" if failed else ""
    rows = () if failed else (ExecutedRow("GEMM", number % 100 + 1, 1),)
    return Outcome(
        task,
        "failed" if failed else "passed",
        message,
        0.01,
        number,
        rows,
        repeat=f"make TESTCASE={task.name}",
        worker=worker,
        attempt=attempt,
    )


def nothing(batch: Batch, _: bytes | None = None) -> list[Outcome]:
    """End at once."""
    return [outcome_of(task) for task in batch.tasks]


def some_time(batch: Batch, _: bytes | None) -> list[Outcome]:
    """Take a tenth of a second for each task, on a worker."""
    time.sleep(0.1 * len(batch.tasks))
    return [outcome_of(task, get_worker().address, batch.attempt) for task in batch.tasks]


def no_room(batch: Batch, _: bytes | None) -> list[Outcome]:
    """Fail as a worker does that has no room."""
    raise OSError(28, "No space left on device", batch.name)
