# SPDX-License-Identifier: Apache-2.0
"""Runs a regression that is interrupted at random moments: a program, for it forks.

    python -m tests.dev.regression_interrupted FOLDER

Each part runs in a process of its own that gets Ctrl-C or SIGKILL, in turn. It prints how many
results were there each time; the last part is left to the caller.
"""

from __future__ import annotations

import os
import random
import select
import signal
import sys
import time
from pathlib import Path

from dev.regression import known, session
from dev.regression.results import Results
from dev.regression.task import Batch, Outcome
from tests.dev.regression_support import execute, go, tasks_of
from tests.forms import FULL

COUNT, TASK_S, INTERRUPTIONS = 400, 0.008, 24 if FULL else 8
MOMENTS = (0, 1, 5, 10)  # batches begun after the first one, each as often as the others
PATIENCE_S = 20.0
SIGNALS = (signal.SIGINT, signal.SIGKILL)


def part(folder: Path, progress: int) -> None:
    """Run what is left, as a process of its own that nobody listens to."""
    signal.signal(signal.SIGINT, signal.default_int_handler)
    os.write(progress, b".")
    nowhere = os.open(os.devnull, os.O_WRONLY)
    for stream in (1, 2):
        os.dup2(nowhere, stream)

    def work(batch: Batch) -> list[Outcome]:
        time.sleep(TASK_S)
        os.write(progress, b".")
        return execute(batch)

    file = folder / "results.sqlite"
    with session.lock(file):
        go(Results(file), tasks_of(COUNT), folder, work)


def _wait(process: int) -> None:
    """Wait for the end of a part.

    Raises:
        RuntimeError: it does not end.
    """
    end = time.monotonic() + PATIENCE_S
    while os.waitpid(process, os.WNOHANG) == (0, 0):
        if time.monotonic() > end:
            os.kill(process, signal.SIGKILL)
            os.waitpid(process, 0)
            raise RuntimeError("a part does not end when it is told to")
        time.sleep(0.01)


def interrupt(folder: Path, number: signal.Signals, begun: int, rng: random.Random) -> None:
    """Begin a part, and send it a signal at a random moment after so many batches have begun.

    Raises:
        RuntimeError: it makes no progress, has ended by itself, or does not end.
    """
    read, write = os.pipe()
    process = os.fork()
    if not process:
        try:
            part(folder, write)
        finally:
            os._exit(0)
    for _ in range(1 + begun):
        if not select.select([read], [], [], 30.0)[0]:
            raise RuntimeError("no progress")
        os.read(read, 1)
    time.sleep(rng.uniform(0.0, 0.02))
    if os.waitpid(process, os.WNOHANG)[0]:
        raise RuntimeError("too few tasks for so many interruptions")
    os.kill(process, number)
    _wait(process)
    os.close(read)
    os.close(write)


def main(folder: Path) -> int:
    """Interrupt a regression in `folder` again and again; print what was there each time."""
    known.tests()  # read before there are processes
    rng = random.Random(1)
    moments = list(MOMENTS) * (INTERRUPTIONS // len(MOMENTS))
    rng.shuffle(moments)
    for number, begun in enumerate(moments):
        interrupt(folder, SIGNALS[number % len(SIGNALS)], begun, rng)
        store = Results(folder / "results.sqlite")
        states = {run.state for run in store.runs()}
        if not states <= {"interrupted", "running"}:
            raise RuntimeError(f"state {states}")
        print(len(store.outcomes(1)) if store.runs() else 0)
        store.close()
    return 0


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1])))
