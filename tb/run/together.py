# SPDX-License-Identifier: Apache-2.0
"""Runs several tests in one process of the simulator, whose start costs more than a short test."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial

from spec.paths import ROOT
from tb.run import parallel
from tb.run.build import Configuration
from tb.run.runner import (
    LOG,
    Job,
    TestResult,
    cases_of,
    cycles_of,
    printed,
    reason_of,
    simulate,
    simulator_error,
)


def run(job: Job) -> list[TestResult]:
    """Run a test and its companions in one process.

    Returns:
        the results of those that have run; an error of the simulator keeps the others from it. The
        seconds of each are its own, without the start of the simulator.
    """
    return results_of(job, simulate(job, job.power_ups[0]))


def results_of(job: Job, status: int | str) -> list[TestResult]:
    """Say how the tests of one process ended that ended with `status`, as far as they have run.

    An error of the simulator is that of the first test that has not passed. One that came after
    all tests had passed belongs to none of them, so none has run.
    """
    stopped = simulator_error(job.folder / LOG)
    results: list[TestResult] = []
    for case in cases_of(job.folder):
        message = reason_of(case)
        if message and stopped:
            message = f"the simulator stopped: {stopped}"
        test = next(test for test in job.tests if test.name == case.get("name"))
        one = replace(job, test=test, companions=())
        seconds, cycles = float(case.get("time", "0")), cycles_of([case])
        results.append(TestResult(one, not message, message, printed(one), seconds, cycles))
        if message and stopped:
            return results
    return [] if stopped or (status != 0 and all(each.passed for each in results)) else results


def run_all(
    jobs: Sequence[Job], workers: int, on_result: Callable[[TestResult], None] | None = None
) -> list[TestResult]:
    """Like `runner.run_all`, but the tests of a configuration and seed share a process.

    Raises:
        RuntimeError: the simulator has ended before all of them have run.
    """
    groups: dict[tuple[Configuration, int], list[Job]] = {}
    for job in jobs:
        groups.setdefault((job.configuration, job.seed), []).append(job)

    def one(group: list[Job]) -> list[TestResult]:
        first, *others = group
        results = run(replace(first, companions=tuple(job.test for job in others)))
        for result in results:
            if on_result is not None:
                on_result(result)
        if len(results) < len(group):
            log = (first.folder / LOG).relative_to(ROOT)
            left = len(group) - len(results)
            raise RuntimeError(f"{left} tests have not run: the simulator ended, see {log}")
        return results

    found = parallel.in_order([partial(one, group) for group in groups.values()], workers)
    return [result for results in found for result in results]
