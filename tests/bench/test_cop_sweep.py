# SPDX-License-Identifier: Apache-2.0
"""A sample of the sweep over the coprocessor's functions; that it finds what is wrong."""

from __future__ import annotations

from pathlib import Path

import mpmath
import numpy as np
import pytest

from golden.coprocessor.boundaries import NEAREST
from spec.isa import generate
from spec.paths import GENERATED
from tb.cop_datapath import model, sweep
from tb.run import build

SAMPLE = 3_000_000
REACHED = {
    "exp_float32": 0.127,
    "exp_q16_16": 0.0003,
    "gelu_float32": 0.136,
    "rsqrt_float32": 0.49,
    "rsqrt_q16_16": 0.49,
}
"""Least share of inputs that go through the datapath."""

RANGES = {"exp_float32": (0x32800000, 0x42AE0000), "gelu_float32": (0x30000000, 0x41600000)}
"""First and last of the inputs of which no result is special or subnormal."""
EXACT = {
    "exp_float32": mpmath.exp,
    "gelu_float32": lambda x: x * mpmath.erfc(-x / mpmath.sqrt(2)) / 2,
}


@pytest.fixture(autouse=True, scope="module")
def _tables() -> None:
    build.generate()


@pytest.mark.parametrize("function", model.FUNCTIONS)
def test_sample(function: str) -> None:
    """No input of a sample has a wrong result."""
    found = sweep.run(function, SAMPLE, seed=7, workers=2)
    assert found.findings() == []
    assert found.inputs >= SAMPLE
    assert found.reached > REACHED[function] * found.inputs


@pytest.mark.parametrize("function", NEAREST)
def test_near(function: str) -> None:
    """The inputs nearest to a boundary are right; golden decides those that double does not."""
    found = sweep.Sweep(function)
    for x in NEAREST[function]:
        found.add(model.sweep(function, x, 1, 1), 1)
    assert not found.wrong
    assert sorted(found.near) == sorted(NEAREST[function])


@pytest.mark.parametrize("function", ["exp_float32", "gelu_float32"])
def test_error(function: str) -> None:
    """What is rounded is off by less than 2^-58 of the result; the nearest boundary is at 2^-53."""
    first, last = RANGES[function]
    x = np.random.default_rng(5).integers(first, last, 2000, np.uint32)
    x[::2] |= np.uint32(1 << 31)
    _, raw = model.compute(function, x)
    assert raw.all()
    for bits, value, number in zip(x, raw.tolist(), x.view(np.float32).tolist(), strict=True):
        with mpmath.workprec(200):
            true = abs(EXACT[function](mpmath.mpf(number)))
            left = value << 64 - value.bit_length()
            off = float(left - mpmath.ldexp(mpmath.frexp(true)[0], 64))
        assert abs(off) * 2.0**-64 < 2.0**-59, f"{function} of {bits:#010x}: off by {off} * 2^-64"


def test_finds_fault(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A bit that is wrong in a coefficient of Mills' ratio is seen in GELU, and nowhere else."""
    text = (GENERATED / "npu_cop_tables.h").read_text(encoding="utf-8")
    head, mills = text.split("kMills[2560] = {\n", 1)
    first = mills.split("\n", 1)[0]
    number = int(first.removeprefix("    UINT64_C(").removesuffix("),"), 16)
    changed = mills.replace(first, first.replace(f"{number:#x}", f"{number ^ 1 << 40:#x}"), 1)
    generate.write_if_changed(tmp_path / "npu_cop_tables.h", f"{head}kMills[2560] = {{\n{changed}")
    model.compile_library(tmp_path, tmp_path / "model.so")
    faulty = model.load(tmp_path / "model.so")
    monkeypatch.setattr(model, "library", lambda: faulty)
    assert sweep.run("gelu_float32", SAMPLE).wrong
    assert not sweep.run("exp_float32", SAMPLE // 10).wrong
