# SPDX-License-Identifier: Apache-2.0
"""Everything that the compiler makes is, bit for bit, what it was: see compiler_digests.py."""

from dataclasses import replace

import pytest

from npu.compiler import compile_model
from tb.benchmarks import measured_models
from tests.needs import needs
from tests.python.compiler import compiler_digests

FROM_ONNX = ("benchmark net_", "benchmark mlperf_")
"""How cases begin whose networks are read from ONNX."""


@pytest.mark.parametrize("name", compiler_digests.cases())
def test_same_as_before(name: str) -> None:
    """Words, texts, streams, tables, caches, shares and maps of tensors."""
    if name.startswith(FROM_ONNX):
        needs("graphs")
    found, wanted = compiler_digests.cases()[name](), compiler_digests.load()[name]
    parts = {*found, *wanted}
    other = sorted(part for part in parts if found.get(part) != wanted.get(part))
    assert not other, (
        f"{name}: {len(other)} of {len(parts)} are not what they were, the first is {other[0]!r}; "
        f"if they are to change: python -m {compiler_digests.__name__}"
    )


def test_the_file_has_every_case() -> None:
    """No case is left out, and none is of old."""
    assert compiler_digests.load().keys() == compiler_digests.cases().keys()


def test_one_bit_is_seen() -> None:
    """A program with one bit of one word changed has another digest."""
    program = compile_model(measured_models.tiny("gpt2")).decode().program.instructions
    whole = compiler_digests.words(program)
    for at in (0, len(program) // 2, len(program) - 1):
        changed = replace(program[at], n=program[at].n ^ 1)
        assert compiler_digests.words([*program[:at], changed, *program[at + 1 :]]) != whole
