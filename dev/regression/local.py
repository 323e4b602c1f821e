# SPDX-License-Identifier: Apache-2.0
"""Runs batches on this machine, some side by side: each is a process of its own."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial

from dev.regression.task import Batch, Outcome
from tb.run import parallel

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
    parallel.as_they_end([partial(execute, batch) for batch in batches], workers, take)
