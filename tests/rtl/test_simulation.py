# SPDX-License-Identifier: Apache-2.0
"""Every test on the RTL as a pytest test: one simulation each, on a model built before pytest.

All tests for it run on one size of the array; those of GEMM, of weight formats and of the K/V
cache, which depend on the size, on the others too, and so do those for a command port that only the
others have.
"""

from __future__ import annotations

import os

import pytest

from npu.isa.operands import ARRAY_DIMS
from tb.run import registry, runner
from tb.run.build import Configuration

ARRAY_DIM = int(os.environ.get("ARRAY_DIM", "16"))
CHIP = Configuration(array_dim=ARRAY_DIM)
ON_EACH_SIZE = ["test_formats", "test_gemm", "test_kv"]
ON_OTHER_SIZES = {
    4: ["test_cmd_absent", "test_cop_absent"],
    8: ["test_cmd_registers", "test_cmd_tiles", "test_cop_cases", "test_cop_window"],
    32: ["test_cmd_registers", "test_cmd_tiles"],
}
"""Beside `ON_EACH_SIZE`, by size: `tb.run.build.SCRATCH_BYTES` and `COP_SOURCES`."""
TESTS = registry.discover()
JOBS = [(test, ARRAY_DIM) for test in TESTS if test.fits(CHIP.scratch_bytes, CHIP.cop_sources)] + [
    (test, array_dim)
    for array_dim in ARRAY_DIMS
    if array_dim != ARRAY_DIM
    for test in registry.select([*ON_EACH_SIZE, *ON_OTHER_SIZES.get(array_dim, [])], TESTS)
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
