# SPDX-License-Identifier: Apache-2.0
"""Every test on the RTL as a pytest test: one simulation each, on a model built before pytest.

All tests for it run on one size of the array; those that depend on the size on the others too. A
chip without narrow formats of weights is left to `make regress`.
"""

from __future__ import annotations

import os

import pytest

from tb.run import registry, requests, runner
from tb.run.build import Configuration

ARRAY_DIM = int(os.environ.get("ARRAY_DIM", "16"))
JOBS = [
    (test, chip.array_dim)
    for chip, tests in requests.tests_by_chip(ARRAY_DIM).items()
    if chip.narrow_formats
    for test in tests
]


@pytest.mark.parametrize(
    ("test", "array_dim"), JOBS, ids=[f"{test.name}-a{array_dim}" for test, array_dim in JOBS]
)
def test_on_rtl(test: registry.BenchTest, array_dim: int) -> None:
    """Run one simulation; its message and the command that repeats it explain a failure."""
    built = Configuration(array_dim=array_dim)
    assert built.binary.exists(), f"{built.binary} is not built: run make test"
    job = runner.Job(test, built, int(os.environ.get("SEED", "1")))
    result = runner.run(job)
    if result.output:
        print(result.output)
    assert result.passed, f"{result.message}\nrepeat: {job.repro}"
    assert not list(job.folder.glob("*.bin")), "a run that passed leaves no images"
