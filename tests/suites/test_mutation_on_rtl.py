# SPDX-License-Identifier: Apache-2.0
"""A small campaign with a real model: VEC's mutants, and three tests of VEC."""

from __future__ import annotations

from pathlib import Path

import pytest

from dev import mutation, mutation_draw
from dev.mutation_model import Design, MutantConfiguration, write
from dev.mutation_runs import Bench
from dev.mutation_verdict import MISMATCH, UNSEEN
from spec.configurations import USUAL
from tb.run import build, registry

TESTS = ("test_vec_random", "test_gemm_random", "test_program_end_only")
COUNT = 24


def test_what_shows_nowhere_is_noticed_nowhere(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Most mutants of VEC's arithmetic are mismatches; one that never differs never fails."""
    build.generate()
    monkeypatch.setattr(mutation, "HOME", tmp_path)
    design = Design.read()
    drawn = mutation_draw.named(mutation_draw.drawn(design, "suite"), ["npu_vec_pkg", "npu_norm"])
    request = mutation.Request(drawn, COUNT, USUAL, [1], 2, "suite")
    numbers = dict(enumerate(mutation.legal(design, request), 1))
    tests = registry.select(TESTS, registry.discover())

    rtl = write(design, numbers, tmp_path / "model")
    model = MutantConfiguration(rtl=rtl, label="mutants-suite")
    build.build(model)
    bench = Bench(model, tmp_path / "runs", 1, 2)
    bench.run_sound(tests, print)
    assert {*bench.sound} == {*TESTS}
    assert bench.unfit == {}

    verdicts = {n: bench.try_mutant(n, mutant, tests) for n, mutant in numbers.items()}
    fates = [verdict.fate for verdict in verdicts.values()]
    assert fates.count(MISMATCH) >= COUNT // 4
    unseen = [number for number, verdict in verdicts.items() if verdict.fate == UNSEEN]
    assert unseen
    for number in unseen:
        assert bench.first_failure(tests, number) is None, numbers[number].name
