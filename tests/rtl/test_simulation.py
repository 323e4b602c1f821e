# SPDX-License-Identifier: Apache-2.0
"""Every test on the RTL as a pytest test: one simulation each, on a model built before pytest."""

from __future__ import annotations

import os

import pytest

from tb import registry, runner
from tb.build import Configuration

TESTS = registry.discover()


@pytest.fixture(scope="session")
def configuration() -> Configuration:
    """Return the model that `make test` has built."""
    built = Configuration(array_dim=int(os.environ.get("ARRAY_DIM", "16")))
    if not built.binary.exists():
        pytest.fail(
            f"{built.binary} is not built; run make test, or make SIM=verilator TESTCASE=..."
        )
    return built


@pytest.mark.parametrize("test", TESTS, ids=[test.name for test in TESTS])
def test_on_rtl(test: registry.BenchTest, configuration: Configuration) -> None:
    """Run one simulation; its message and the command that repeats it explain a failure."""
    job = runner.Job(test, configuration, int(os.environ.get("SEED", "1")))
    result = runner.run(job)
    if result.output:
        print(result.output)
    assert result.passed, f"{result.message}\nrepeat: {job.repro}"
